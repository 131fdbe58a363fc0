"""What every room uses: defaults, messages, names of slices, the door to unstable Polars."""
