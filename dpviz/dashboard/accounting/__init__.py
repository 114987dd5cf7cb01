"""The page Privacy accounting."""
