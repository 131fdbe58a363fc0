"""Every metric: its definition, how names find it, and its exact value."""
