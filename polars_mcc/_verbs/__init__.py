"""The verbs, one file each: the signature, the docstring and the query."""
