"""Pairs and classes → how sure a score is, and a difference of two."""
