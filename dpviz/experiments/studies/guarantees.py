"""Guarantees of all mechanisms side by side: how far each is proved, and how useful it leaves the model."""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace

import pandas as pd

from dpviz.common.memory import Cache
from dpviz.common.progress import Monitor, ignore, part
from dpviz.common.validate import InvalidInput
from dpviz.experiments.run.metrics import METRICS, all_metrics
from dpviz.experiments.run.resolve import resolve
from dpviz.experiments.run.run import run_epsilons
from dpviz.experiments.run.setup import setting_of, setup_for
from dpviz.experiments.run.spec import RunSpec
from dpviz.experiments.studies.majority_baseline import NoBetter, guessing
from dpviz.mechanisms import Calibration, list_mechanisms, protection
from dpviz.mechanisms.attack import Attacker, epsilon_for


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


def guarantees(spec: RunSpec, attacker: Attacker | None = None, monitor: Monitor = ignore) -> list[Guaranteed]:
    """Calibrates every mechanism that protects something and fits the model; looks at public facts only.

    Args:
        spec: its data, model, budget and seeds; its own mechanism keeps its hyperparameters, the others have their defaults.
        attacker: in the place of the budget's epsilon, the strongest attacker that is tolerated: each mechanism has the largest
            epsilon, its own, with which none does better.
        monitor: receives progress; raises to cancel.
    """
    shared = setting_of(spec)
    rows, known = [], list_mechanisms()
    for k, (name, cls) in enumerate(known.items()):
        monitor(k / len(known))
        if cls.family == "reference" or cls.refusal(shared) is not None:
            continue
        own = replace(spec, mechanism=name, params=spec.params if name == spec.mechanism else {})
        try:
            asked = resolve(own)
            setting = replace(shared, lam=asked.lam)  # each method has its own regularisation
            if attacker is not None:  # that of the epsilon asked for, where the rule would give another one at the epsilon found
                found = epsilon_for(attacker, own.build(), setting, asked.budget.delta)
                own, asked = replace(own, epsilon=found, lam=setting.lam), asked.change_epsilon(found)
            rows.append(Guaranteed(own, protection.calibrate(own.build(), setting, asked.budget)))
        except InvalidInput as problem:
            rows.append(Guaranteed(own, None, f"{problem.cause}. {problem.fix}"))
    return rows


@dataclass(frozen=True, eq=False)
class Measured:
    """Guarantees with measures of usefulness on the test rows.

    Attributes:
        found: all guarantees.
        metrics: mechanism id -> every metric of its noise draws, as `Result.metrics`; none where training failed.
        baselines: every metric of "non-private" and "majority", as `Setup.baselines`.
        expected: mechanism id -> metric id -> mean over all noise draws in closed form; what is missing has none.
        poor: mechanism id -> metric id -> why it is no better than the majority label, of those that are not.
    """

    found: Sequence[Guaranteed]
    metrics: Mapping[str, pd.DataFrame]
    baselines: pd.DataFrame
    expected: Mapping[str, Mapping[str, float]]
    poor: Mapping[str, Mapping[str, NoBetter]] = field(default_factory=dict)


def watch(
    spec: RunSpec, monitor: Monitor = ignore, metrics: Sequence[str] = (), attacker: Attacker | None = None
) -> Iterator[Measured]:
    """The guarantees of all mechanisms, then the metrics of one mechanism after the other; yields what is known so far.

    Args:
        spec: as for `guarantees`.
        monitor: receives progress; raises to cancel.
        metrics: ids of further metrics than all standard ones, with levels of their own.
        attacker: as for `guarantees`.
    """
    first = 0.0 if attacker is None else 0.4  # share of the time that the search for each epsilon takes
    promises, shared = guarantees(spec, attacker, part(monitor, 0.0, first)), setup_for(spec)
    tables: dict[str, pd.DataFrame] = {}
    exact: dict[str, Mapping[str, float]] = {}
    poor: dict[str, Mapping[str, NoBetter]] = {}
    wanted = all_metrics(metrics)
    baselines = shared.baselines_in(wanted) if metrics else shared.baselines
    yield Measured(promises, tables, baselines, exact)
    for k, one in enumerate(promises):
        if one.calibration is None:
            continue
        inside = part(monitor, first + (1 - first) * k / len(promises), (1 - first) / len(promises))
        try:
            table, means, no_better = _usefulness(one.spec, wanted, baselines, inside)
        except (InvalidInput, FloatingPointError):  # it diverges here; the others are known all the same
            continue
        name = one.spec.mechanism
        tables, exact = tables | {name: table}, exact | {name: means}
        poor = poor | ({name: no_better} if no_better else {})
        yield Measured(promises, tables, baselines, exact, poor)


#: one mechanism's part of `Measured`: metrics, means in closed form, and in which metrics it is no better than the majority label
_Usefulness = tuple[pd.DataFrame, Mapping[str, float], Mapping[str, NoBetter]]
_known: Cache[_Usefulness] = Cache("guarantees", 32 << 20, lambda made: int(made[0].memory_usage().sum()) + 4096)


def _usefulness(spec: RunSpec, metrics: Sequence[str], baselines: pd.DataFrame, monitor: Monitor) -> _Usefulness:
    """Trains and measures a run, unless that was done for the table beside another method."""

    def make(listen: Monitor) -> _Usefulness:
        (result,) = run_epsilons(spec, [spec.epsilon], instances=False, monitor=listen)
        means = {name: mean for name in METRICS if (mean := result.expected_value(name)) is not None}
        table = result.metrics_in(metrics)
        return table, means, guessing(result, metrics, table, baselines)

    return _known.compute((resolve(spec).key(), *metrics), make, owner=spec.dataset, monitor=monitor)
