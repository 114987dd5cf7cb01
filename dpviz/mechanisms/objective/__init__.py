"""The objective family of mechanisms."""
