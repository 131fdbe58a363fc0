"""A page on a log: counted once, asked in parts, summed up in words, written in three formats."""
