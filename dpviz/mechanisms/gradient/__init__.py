"""The gradient family of mechanisms."""
