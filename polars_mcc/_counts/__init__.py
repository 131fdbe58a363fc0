"""A log, cut into slices → pairs (slice, gold, pred, n) → classes (slice, label). All exact."""
