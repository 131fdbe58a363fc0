"""The door: a frame, what its columns mean, and what is wrong with either."""
