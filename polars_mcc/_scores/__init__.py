"""Classes, and pairs where they must be → scores: a row per slice."""
