"""The first page: one run."""
