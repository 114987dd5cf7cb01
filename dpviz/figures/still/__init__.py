"""Figures as static pictures, for paper and for readers without JavaScript."""

from dpviz.figures.still.picture import picture, pictures

__all__ = ["picture", "pictures"]
