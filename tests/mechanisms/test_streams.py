"""Streams of random numbers are independent: one is exchanged, and everything that belongs to the others stays."""

import sys
from typing import Any

import numpy as np
import pytest
from support import make_problem
from support_noise_recipes import RECIPES

import dpviz
from dpviz.common import random
from dpviz.common.random import spawn
from dpviz.mechanisms import Training
from dpviz.privacy.budget import Budget

Key = tuple[int, ...]
ALL = dpviz.list_mechanisms()
#: how much one stream is asked for depends on what another drew: steps are taken until the budget is spent
ADAPTIVE = {"dp-agd"}


def trained(name: str, exchanged: Key | None, monkeypatch: pytest.MonkeyPatch) -> tuple[np.ndarray, dict[Key, Any]]:
    """Released parameters of three replicas, and for every stream where its generator stood at the end.

    Args:
        exchanged: the key of the stream that is replaced by one of another seed.
    """
    original, made = random.generator, {}

    def generator(stream: np.random.SeedSequence) -> np.random.Generator:
        key = tuple(stream.spawn_key)
        other = np.random.SeedSequence(99, spawn_key=key) if key == exchanged else stream
        made[key] = original(other)
        return made[key]

    mechanism = ALL[name].from_params(RECIPES[name][1])
    problem = make_problem(n=40, d=4, model="logistic")
    _ = problem.optimum
    training = Training(problem, [mechanism.calibrate(problem.setting, Budget(1.0, 1e-5))], spawn(5, 3), record=False)
    with monkeypatch.context() as patch:
        for module in list(sys.modules.values()):
            if getattr(module, "generator", None) is original:
                patch.setattr(module, "generator", generator)
        fit = mechanism.fit(training)
    released = fit.theta[0] if fit.constant_label is None else fit.constant_label[0][:, None]
    return released, {key: rng.bit_generator.state for key, rng in made.items()}


@pytest.mark.parametrize("name", ALL)
def test_a_stream_that_is_exchanged_moves_its_own_replica_and_no_other_stream(name: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """At the defaults; `test_noise_law.py` looks at the streams of every option."""
    before, ends = trained(name, None, monkeypatch)
    moved = []
    for exchanged in [key for key in ends if key[0] == 1]:
        after, others = trained(name, exchanged, monkeypatch)
        # replicas share a solver's stopping rule, so the others stay to its tolerance and not to the last bit
        assert np.allclose(before[[0, 2]], after[[0, 2]], rtol=1e-7, atol=1e-9), "the other replicas stay"
        moved.append(not np.allclose(before[1], after[1], rtol=1e-4))
        assert set(others) == set(ends)
        if name not in ADAPTIVE:
            assert all(others[key] == ends[key] for key in ends if key != exchanged), "the other streams stay"
    # a label may well be the same, and so may the rows that a noisy rule lets pass
    assert not moved or any(moved) or before.shape[1] == 1


def test_a_stream_that_depends_on_another_is_noticed(monkeypatch: pytest.MonkeyPatch) -> None:
    """The control: a purpose whose draws are continued by the next replica's."""
    before, ends = trained("dp-sgd", None, monkeypatch)
    shared = np.random.default_rng(1)
    original = random.generator

    def careless(stream: np.random.SeedSequence) -> np.random.Generator:
        return shared if len(stream.spawn_key) == 2 and stream.spawn_key[1] == 1_000_001 else original(stream)

    module = sys.modules["dpviz.mechanisms.gradient.noisy_sgd"]
    with monkeypatch.context() as patch:
        patch.setattr(module, "generator", careless)
        mechanism = ALL["dp-sgd"].from_params(RECIPES["dp-sgd"][1])
        problem = make_problem(n=40, d=4, model="logistic")
        cal = mechanism.calibrate(problem.setting, Budget(1.0, 1e-5))
        one, two = (mechanism.fit(Training(problem, [cal], spawn(5, 3), record=False)).theta[0] for _ in range(2))
    assert not np.array_equal(one[[0, 2]], two[[0, 2]])
    assert ends
    assert not np.array_equal(before, one)
