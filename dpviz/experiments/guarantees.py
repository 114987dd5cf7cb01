"""Guarantees of all mechanisms side by side: how far each is proved, and the accuracy that it leaves."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace

import numpy as np
from numpy.typing import NDArray

from dpviz.common.progress import Monitor, part, silent
from dpviz.common.validate import InvalidInput
from dpviz.experiments.resolve import resolve
from dpviz.experiments.run import run_epsilons
from dpviz.experiments.setup import setup_for
from dpviz.experiments.spec import RunSpec
from dpviz.mechanisms import Calibration, list_mechanisms


@dataclass(frozen=True, eq=False)
class Guaranteed:
    """One mechanism's guarantee.

    Attributes:
        spec: the run that it belongs to: the mechanism's default hyperparameters, or those asked for.
        calibration: None where the budget cannot be met.
        problem: why it cannot, "" where it can.
    """

    spec: RunSpec
    calibration: Calibration | None
    problem: str = ""


def guarantees(spec: RunSpec) -> list[Guaranteed]:
    """Calibrates every mechanism that protects something and fits the model; looks at public facts only.

    Args:
        spec: its data, model, budget and seeds; its own mechanism keeps its hyperparameters, the others have their defaults.
    """
    setting = setup_for(spec).problem.setting
    found = []
    for name, cls in list_mechanisms().items():
        if cls.family == "reference" or cls.refusal(setting) is not None:
            continue
        own = replace(spec, mechanism=name, params=spec.params if name == spec.mechanism else {})
        try:
            found.append(Guaranteed(own, own.build().calibrate(setting, resolve(own).budget)))
        except InvalidInput as problem:
            found.append(Guaranteed(own, None, f"{problem.cause}. {problem.fix}"))
    return found


@dataclass(frozen=True, eq=False)
class Measured:
    """Guarantees with accuracies.

    Attributes:
        found: all guarantees.
        accuracy: mechanism id -> (S,) test accuracies in [0, 1]; none where training failed.
        non_private, majority: test accuracies of the baselines.
    """

    found: Sequence[Guaranteed]
    accuracy: Mapping[str, NDArray[np.float64]]
    non_private: float
    majority: float


def watch(spec: RunSpec, monitor: Monitor = silent) -> Iterator[Measured]:
    """The guarantees of all mechanisms, then the accuracies of one mechanism after the other; yields what is known so far.

    Args:
        spec: as for `guarantees`.
        monitor: told of progress; raises to cancel.
    """
    found, shared = guarantees(spec), setup_for(spec)
    baselines = shared.non_private.accuracy, shared.majority.accuracy
    known: dict[str, NDArray[np.float64]] = {}
    yield Measured(found, known, *baselines)
    for k, one in enumerate(found):
        if one.calibration is None:
            continue
        inside = part(monitor, k / len(found), 1 / len(found))
        try:
            (result,) = run_epsilons(one.spec, [one.spec.epsilon], instances=False, monitor=inside)
        except (InvalidInput, FloatingPointError):  # it diverges here; the others are known all the same
            continue
        known = known | {one.spec.mechanism: result.accuracy}
        yield Measured(found, known, *baselines)
