"""A user's frame, and what its columns mean."""
