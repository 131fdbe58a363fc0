"""The search for slices that are behind: count every slice, test it, list each cause once."""
