"""All figures, paper by paper; `dpviz.papers.figures.base` says what an entry means."""

from dpviz.papers.figures import chen, kang
from dpviz.papers.figures.base import Figure

FIGURES: tuple[Figure, ...] = (*chen.FIGURES, *kang.FIGURES)
TIMES = chen.TIMES
