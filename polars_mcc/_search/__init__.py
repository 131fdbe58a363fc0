"""The search for slices that fall behind: counted in steps, weighed, and listed once each."""
