"""The verbs: a file each, with the signature, the docstring and the plan."""
