"""Answers and queries made visible: tables, a page, a progress bar."""
