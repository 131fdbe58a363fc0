"""Stores of counts: the files of a store, and which counts belong to which input."""
