"""The output family of mechanisms."""
