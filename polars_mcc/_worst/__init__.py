"""The search for bad slices, for `worst`."""
