"""Solvers that bring many objectives to their minimum together."""
