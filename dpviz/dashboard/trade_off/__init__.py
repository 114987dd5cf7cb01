"""The page Trade-off."""
