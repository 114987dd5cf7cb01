"""A cell that is quick to compute."""

import dpviz
from dpviz.experiments.sweeps.cells import Cell

SPEC = dpviz.RunSpec("teaching", mechanism="dp-gd", seeds=3)


CELL = Cell(SPEC, (0.1, 1.0), range(3))
