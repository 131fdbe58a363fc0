"""Standard errors and intervals of one score, in arrays."""
