"""The input family of mechanisms."""
