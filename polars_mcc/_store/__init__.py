"""Counts that are kept: where they are, and which of them are of which input."""
