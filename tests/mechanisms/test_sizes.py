"""How many rows, steps, seeds, budgets or threads are worked on at once changes no model; progress rises.

Tests of the noise use few rows and one budget: a mistake beyond one block, or at the smaller of two budgets, would not be seen.
Here every size at which work is cut is made so small that few rows are cut, too, and every budget is trained alone.
"""

import importlib
import sys
from typing import Any

import numpy as np
import pytest
from support import ONE_OF_EACH_FAMILY, make_problem, options
from support_noise_recipes import RECIPES

import dpviz
from dpviz.common.random import spawn
from dpviz.mechanisms import Training
from dpviz.mechanisms.all_rows import seeds_together
from dpviz.models import get_model
from dpviz.models.problem import Problem
from dpviz.privacy.budget import Budget

ALL = dpviz.list_mechanisms()
MECHANISMS, MODELS = "dpviz.mechanisms.", "dpviz.models."
#: (module, name of the size, what it is made), for results that stay up to rounding
SIZES: list[tuple[str, str, int]] = [
    (MECHANISMS + "gradient.bassily_sgd", "_CHUNK", 7),
    (MECHANISMS + "gradient.dp_agd", "_WORK", 1),
    (MECHANISMS + "local.local_reports", "_BLOCK", 40),
    (MODELS + "rows", "_BLOCK_ROWS", 1),  # 256 at least
    (MODELS + "solvers.many", "_REPLICAS", 1),
    (MODELS + "solvers.many", "_SAMPLE", 100),
    ("dpviz.common.threads", "THREADS_FROM", 1),
    ("dpviz.common.threads", "MOST_GROUPS", 2),
    (MECHANISMS + "all_rows", "_PART", 1),
]
#: the same for how sums are made: all in double, full gradients in single, and without the zeros of the rows
SUMS: list[tuple[str, str, int]] = [
    (MECHANISMS + "gradient.noisy_sgd", "SINGLE_ROWS", 0),
    (MECHANISMS + "all_rows", "_SINGLE_FROM", 0),
    (MODELS + "products", "_LEAST_ENTRIES", 0),
    (MODELS + "products", "_MOST_FILLED", 2),
]
#: reports of blocks are drawn one after the other, so that other blocks are other draws
OTHER_DRAWS = {"ldp-duchi": "_BLOCK"}


def released(name: str, params: dict[str, Any], *, alone: bool = False) -> np.ndarray:
    """(E, S, m) parameters, or (E, S, 1) labels, of two budgets and three seeds, trained together or budget by budget."""
    few = params.get("mode") == "faithful"
    problem = make_problem(n=40 if few else 300, d=4)
    built = ALL[name].from_params(RECIPES[name][1] | params)
    calibrations = [built.calibrate(problem.setting, Budget(e, 1e-5)) for e in (1.0, 8.0)]
    together = [[one] for one in calibrations] if alone else [calibrations]
    fits = [built.fit(Training(problem, part, spawn(5, 3), record=False)) for part in together]
    return np.concatenate([f.theta if f.constant_label is None else f.constant_label[:, :, None] for f in fits])


def shrink(patch: pytest.MonkeyPatch, sizes: list[tuple[str, str, int]]) -> None:
    """Sets sizes where they are declared and wherever they were imported."""
    for place, size, value in sizes:
        before = getattr(importlib.import_module(place), size)
        for key, module in list(sys.modules.items()):
            if key == place or (key.startswith("dpviz") and not size.startswith("_") and getattr(module, size, None) == before):
                patch.setattr(module, size, value)
    threads = importlib.import_module("dpviz.common.threads")
    patch.setattr(threads, "processors", lambda: 3)


@pytest.mark.parametrize("name", ALL)
def test_neither_sizes_of_blocks_nor_other_budgets_change_a_model(name: str, monkeypatch: pytest.MonkeyPatch) -> None:
    for params in options(name) if name in ONE_OF_EACH_FAMILY else [{}]:
        whole = released(name, params)
        with monkeypatch.context() as patch:
            shrink(patch, [size for size in SIZES if size[1] != OTHER_DRAWS.get(name)])
            alone = released(name, params, alone=True)
            np.testing.assert_allclose(alone, whole, rtol=1e-4, atol=1e-4, err_msg=str(params))
        if ALL[name].family in ("gradient", "input"):
            with monkeypatch.context() as patch:
                shrink(patch, SUMS)
                np.testing.assert_allclose(released(name, params), whole, rtol=1e-3, atol=1e-3, err_msg=str(params))


ALL = dpviz.list_mechanisms()


@pytest.mark.parametrize("name", ALL)
def test_shares_of_the_work_rise_from_0_to_1(name: str) -> None:
    problem, mechanism, seen = make_problem(n=300, d=4), ALL[name](), [0.0]
    calibrations = [mechanism.calibrate(problem.setting, Budget(epsilon, 1e-5)) for epsilon in (1.0, 8.0)]
    mechanism.fit(Training(problem, calibrations, spawn(0, 3), monitor=seen.append))
    assert (np.diff(seen) >= -1e-12).all()
    assert seen[-1] <= 1
    assert len(seen) < 3 or seen[-1] > 0.7, "the last report is from near the end"


@pytest.mark.parametrize(("model_id", "lengths"), [("logistic", [10]), ("mlp", [2, 3, 2, 3])])
def test_seeds_of_linear_models_train_in_one_group(model_id: str, lengths: list[int]) -> None:
    problem = Problem(make_problem(n=60).rows, get_model(model_id), 1e-2)
    found = seeds_together(Training(problem, [], spawn(0, 10)))
    assert [part.stop - part.start for part in found] == lengths
