"""The page Sensitivity and rates."""
