"""Pairs and classes → standard errors and intervals of scores, and of their differences."""
