"""The page Influence and noise."""
