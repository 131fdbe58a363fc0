"""Files, folders and buckets → a log."""
