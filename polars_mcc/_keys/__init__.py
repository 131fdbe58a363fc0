"""The kinds of keys, a file each."""
