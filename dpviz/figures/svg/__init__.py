"""Figures as static pictures, for paper and for readers without JavaScript."""

from dpviz.figures.svg.picture import picture

__all__ = ["picture"]
