"""The local family of mechanisms."""
