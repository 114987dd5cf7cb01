"""The reference family of mechanisms."""
