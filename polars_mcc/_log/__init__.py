"""A frame and the roles of its columns: described, checked, or refused with an error."""
