"""Sensitivity: the largest change of a release when one row is replaced."""
