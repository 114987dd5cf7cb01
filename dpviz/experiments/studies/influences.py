"""Influence of every training row, asked of a problem, a run or a dataset."""

import numpy as np
from numpy.typing import NDArray

from dpviz import influence
from dpviz.common.validate import check_instance
from dpviz.datasets import Dataset
from dpviz.experiments.run.setup import setup_for
from dpviz.experiments.run.spec import RunSpec
from dpviz.models.problem import Problem


def influence_of(
    of: Problem | RunSpec | Dataset | str, theta: NDArray[np.float64] | None = None, *, solver: str = "auto"
) -> influence.Influence:
    """Influence of every training row; see `dpviz.influence.influence_of`.

    Args:
        of: a problem, a run, whose training rows, model and regularisation are taken, or a dataset or its name, for a run
            with the defaults.
        theta: (m,) the parameters at which to look; the non-private minimiser by default.
        solver: "auto", "dense", "cg" or "factored".

    Raises:
        InvalidInput: the run does not fit what is there, or theta or the solver does not fit the problem.

    >>> influence_of("teaching").norm.shape
    (320,)
    >>> int(influence_of("breast-cancer").frame()["rank"].idxmin())  # a row id, as on the pages
    213
    """
    if isinstance(of, Dataset | str):
        of = RunSpec(of)
    if isinstance(of, RunSpec):
        setup = setup_for(of)
        return influence.influence_of(setup.problem, theta, solver=solver, row_ids=setup.split.train)
    return influence.influence_of(check_instance("of", of, Problem), theta, solver=solver)
