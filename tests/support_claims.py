"""Claims tested on stand-ins for methods, whose accuracy is known."""

import zlib
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np
import pandas as pd
from support_stand_in import StandIn

import dpviz
from dpviz.experiments.run.setup import Setup
from dpviz.mechanisms import Mechanism, Training, get_mechanism
from dpviz.mechanisms.base import Fit, NoiseRecord
from dpviz.papers.claims import Verdict, list_claims
from dpviz.papers.claims.context import Context, Measured


def planted(claim: str, **swaps: Any) -> Verdict:
    """A claim's verdict with alternatives in place of the real things."""
    names = {name.replace("-", "_"): name for name in dpviz.list_mechanisms()}
    return list_claims()[claim].test(Context(swaps={names.get(name, name): swap for name, swap in swaps.items()}))


def instead(name: str) -> Callable[[dict[str, Any]], Mechanism]:
    """Another mechanism with default knobs, whatever knobs are asked for."""
    return lambda knobs: get_mechanism(name).from_params({})


@dataclass(frozen=True)
class Toward(StandIn):
    """The minimiser, moved a share of the way to zero, with a little noise: accuracy and gap are known."""

    def fit(self, training: Training) -> Fit:
        sign = float(getattr(self, "sign", 1.0))
        draws = np.array([np.random.default_rng(s).standard_normal(training.problem.m) for s in training.streams])
        theta = sign * training.problem.optimum + 1e-4 * draws
        return Fit(np.repeat(theta[None], len(training.calibrations), axis=0), NoiseRecord("x"))


def toward(sign: float) -> Callable[[dict[str, Any]], Mechanism]:
    return lambda knobs: type("Toward", (Toward,), {"sign": sign})()


@dataclass(frozen=True, eq=False)
class Untrained(Context):
    """A context that trains nothing: accuracies and gaps are drawn from what was asked for. A census has a tenth of its rows.

    Attributes:
        asked: what was chosen from for the usual and for the full test.
    """

    asked: list[object] = field(default_factory=list)

    def choose(self, usual: Any, full: Any) -> Any:
        self.asked.append((usual, full))
        rows = isinstance(usual, tuple) and isinstance(usual[0], int) and usual[0] >= 1000
        return tuple(n // 10 for n in usual) if rows else super().choose(usual, full)

    def data(self, usual: tuple[str, ...], full: tuple[str, ...]) -> tuple[str, ...]:
        self.asked.append((usual, full))
        return super().data(usual, full)

    def setup(self, dataset: str, *rest: Any, **how: Any) -> tuple[Setup, float]:
        return super().setup(dataset.replace("000", "00"), *rest, **how)

    def measure(self, mechanism: Mechanism, dataset: str, epsilons: Sequence[float], seeds: int, **how: Any) -> Measured:
        self.monitor(1.0)
        asked = repr((mechanism, dataset, [f"{e:.6g}" for e in epsilons], seeds, self.seed, sorted(how.items())))
        rng = np.random.default_rng(zlib.crc32(asked.encode()))
        accuracy = rng.uniform(0.6, 0.9, (len(epsilons), 1)) + rng.normal(0.0, 0.01, (len(epsilons), seeds))
        beside = {"split": how.get("split", 0), "optimum": 0.3, "non_private_accuracy": 0.95, "majority_accuracy": 0.55}
        baselines = pd.DataFrame(beside, index=range(seeds))
        return Measured(accuracy, 10 ** (-10 * accuracy), baselines, dataset, how.get("model", "logistic"), tuple(epsilons))
