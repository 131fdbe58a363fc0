"""A score against another: difference, test, requirement."""
