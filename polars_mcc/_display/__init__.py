"""Answers as tables, charts and arrays; progress."""
