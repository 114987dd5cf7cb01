"""From specs to results: trains and measures a run, and compares it with the baselines."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass, field, fields, replace
from functools import cached_property, lru_cache
from typing import Any

import numpy as np
import pandas as pd
from numpy.typing import NDArray

from dpviz.common.arrays import Floats
from dpviz.common.progress import Monitor, ignore, track
from dpviz.common.random import spawn
from dpviz.common.validate import InvalidInput, check_integer
from dpviz.experiments.run.measure import Trained, instance_table, train
from dpviz.experiments.run.metrics import METRICS, all_metrics, measure_models
from dpviz.experiments.run.resolve import ResolvedRun, automatic_lam, preparations_of, resolve
from dpviz.experiments.run.settings import AS_DECLARED
from dpviz.experiments.run.setup import Baseline, Setup, setup_for, setup_of
from dpviz.experiments.run.spec import RunSpec
from dpviz.mechanisms import Calibration, Fit, IndividualBudget, Mechanism, NoiseRecord, OutputNoise, Training, protection
from dpviz.mechanisms.attack import Attacker, epsilon_for
from dpviz.models import MODELS, Setting, get_model
from dpviz.preparing.base import Facts
from dpviz.privacy.budget import Budget, row_budget
from dpviz.privacy.individual import IndividualEpsilon


@dataclass(frozen=True, eq=False)
class NoiselessRun:
    """Models trained without noise.

    Attributes:
        theta: (S, m) parameters.
        labels: (S,) labels where a label is released in the place of a model, else None.
    """

    theta: Floats
    labels: Floats | None

    @classmethod
    def select(cls, fit: Fit, e: int) -> NoiselessRun:
        """The replicas of budget e."""
        return cls(fit.theta[e], None if fit.constant_label is None else fit.constant_label[e])


@dataclass(frozen=True, eq=False)
class Result:
    """The result of a run. S seeds, m parameters.

    Attributes:
        spec: the run, its dataset under its canonical name.
        theta: (S, m) released parameters.
        train_accuracy: (S,) training accuracies in [0, 1].
        objective: (S,) training objectives.
        optimality_gap: (S,) objective minus its least value without privacy, both at the run's lambda; that of `non_private`
            differs where the method's rule asks for more lambda. Where the objective is convex the gap is >= 0 up to the
            solver's tolerance; for a network it may be below 0.
        expected_accuracies: (S,) test accuracy averaged over all noise draws in closed form, given the seed's training
            randomness; None where there is no closed form.
        expected_balanced_accuracies: the same for balanced accuracy.
        calibration: how the noise was set, and what is guaranteed; its budget has an automatic delta filled in.
        instances: training rows by row id: label, visits, times_noised, noise_norm, passed, clipped (share of its gradients
            that were clipped, NaN where that is not recorded), rule_margin (means over the seeds), margin
            of the private models (mean) and of the non-private one, and correct (share of seeds that predict the row right).
            Not private: it shows data.
        non_private: the minimiser without privacy; for a network the best of three long trainings.
        majority: the most frequent label.
        replicas: which of the spec's replicas these are, range(S) unless only a part was trained.
        record: what happened to each row, per seed; None where `instances` was switched off.
        labels: (S,) labels in {-1, +1} where a label was released in the place of a model, else None.
        distribution: of the released parameters, where it is known in closed form; its scale has one entry.
        noiseless_run: the same training without noise, where it was asked for.
        held: data, split and problem, as long as the result; None in what is kept in memory (`without_rows`).
    """

    spec: RunSpec
    theta: Floats
    train_accuracy: Floats
    objective: Floats
    optimality_gap: Floats
    expected_accuracies: Floats | None
    expected_balanced_accuracies: Floats | None
    calibration: Calibration
    instances: pd.DataFrame
    non_private: Baseline
    majority: Baseline
    replicas: range
    record: NoiseRecord | None = None
    labels: Floats | None = None
    distribution: OutputNoise | None = None
    noiseless_run: NoiselessRun | None = None
    held: Setup | None = field(default=None, repr=False)

    @property
    def setup(self) -> Setup:
        """Data, split and problem."""
        return setup_for(self.spec) if self.held is None else self.held

    def without_rows(self) -> dict[str, Any]:
        """The fields of a result that is kept: it finds its rows in the cache of `setup_for`, and they go with their dataset."""
        return {one.name: getattr(self, one.name) for one in fields(Result) if one.name != "held"}

    @cached_property
    def accuracy(self) -> Floats:
        """(S,) test accuracies in [0, 1]."""
        return self.metrics_in(("accuracy",))[METRICS["accuracy"].column].to_numpy(float)

    @property
    def expected_accuracy(self) -> float | None:
        """The mean of `expected_accuracies`."""
        return self.expected_value("accuracy")

    @cached_property
    def metrics(self) -> pd.DataFrame:
        """(S rows) every metric on the test rows as a float, one column each (`Metric.column`); computed when first asked for.

        NaN where a metric has no value: measures of ranks and probabilities for a released label, measures of
        probabilities for models without. Computed from private rows; epsilon does not cover it.
        """
        return self.metrics_in(tuple(METRICS))

    def metrics_in(self, metrics: Sequence[str]) -> pd.DataFrame:
        """`metrics` in these measures only, which may have levels of their own (`get_metric`)."""
        setup = self.setup
        return measure_models(setup.problem.model, self.theta, setup.test, self.labels, metrics)

    def expected_value(self, metric: str) -> float | None:
        """The mean of a metric (its id) over all noise draws in closed form; None where there is none."""
        values = {"accuracy": self.expected_accuracies, "balanced-accuracy": self.expected_balanced_accuracies}.get(metric)
        return None if values is None else float(values.mean())

    @cached_property
    def individual(self) -> IndividualEpsilon | None:
        """Individual epsilon of each training row, in the order of `instances`; None where the mechanism has none.

        A diagnostic that reveals data; computed when first asked for.
        """
        if self.record is None:
            return None
        mechanism = self.spec.build()
        if not isinstance(mechanism, IndividualBudget):
            return None
        return protection.individual(mechanism, self.setup.problem, self.calibration, self.theta, self.record)


def run(spec: RunSpec, monitor: Monitor = ignore) -> Result:
    """Trains one model for each noise draw of a run, and measures them on the test rows.

    Args:
        spec: the run.
        monitor: receives progress, a share in [0, 1]; raises to cancel.

    Returns:
        Accuracies, calibration, models and what happened to each training row.

    Raises:
        InvalidInput: the run does not fit the data, or its budget cannot be met; it names the field and what to do.

    >>> run(RunSpec("teaching", mechanism="output-gaussian", seeds=3)).accuracy.shape
    (3,)
    """
    return run_epsilons(spec, [resolve(spec).spec.epsilon], monitor=monitor)[0]


def run_epsilons(
    spec: RunSpec,
    epsilons: Sequence[float],
    *,
    instances: bool = True,
    replicas: range | None = None,
    noiseless_runs: bool = False,
    monitor: Monitor = ignore,
) -> list[Result]:
    """The same run at several epsilons, trained as one matrix computation for all that have the same rows and mechanism.

    Methods that do not join regularisations (`Mechanism.joins_lams`) train those of one regularisation together.

    Args:
        spec: its own epsilon is not used.
        epsilons: budgets.
        instances: whether to keep what happened to each row; without, `Result.instances` has no rows.
        replicas: the part of range(spec.seeds) to train, all by default. Replica s is the same whichever others are trained,
            up to the rounding of the matrix products.
        noiseless_runs: whether to train each without noise as well, on the same batches and in the same passes.
        monitor: receives progress; raises to cancel.
    """
    found = resolve(spec)
    runs = [found.change_epsilon(epsilon) for epsilon in epsilons]
    setups = [setup_of(r) for r in runs]
    groups: dict[tuple[str, float, int], list[int]] = {}
    for e, (r, setup) in enumerate(zip(runs, setups, strict=True)):
        lam = 0.0 if r.spec.build().joins_lams else r.lam
        groups.setdefault((r.spec.mechanism, lam, id(setup.problem.rows)), []).append(e)
    made: dict[int, Result] = {}
    for places, inside in track(monitor, groups.values()):
        results = _run_together(
            [runs[e] for e in places], [setups[e] for e in places], instances, replicas, noiseless_runs, inside
        )
        made |= zip(places, results, strict=True)
    return [made[e] for e in range(len(runs))]


def _run_together(
    runs: Sequence[ResolvedRun],
    setups: Sequence[Setup],
    instances: bool,
    replicas: range | None,
    noiseless_runs: bool,
    monitor: Monitor,
) -> list[Result]:
    """Runs that differ in their budgets alone."""
    spec = runs[0].spec
    shared, problems, mechanism = setups[0], [setup.problem for setup in setups], spec.build()
    calibrations = [cached_calibration(mechanism, problem.setting, r.budget) for problem, r in zip(problems, runs, strict=True)]
    chosen = range(spec.seeds) if replicas is None else replicas
    streams = spawn(spec.seed, spec.seeds)[chosen.start : chosen.stop]
    noiseless = [calibration.noiseless() for calibration in calibrations] if noiseless_runs else []
    every = problems + problems[: len(noiseless)] if mechanism.joins_lams else ()
    together = _train(mechanism, Training(problems[0], calibrations + noiseless, streams, instances, monitor, every))
    trained = together.first(len(runs))
    fit = trained.fit
    expected, balanced = trained.expected_accuracies(shared.test)
    return [
        Result(
            spec=r.spec,
            theta=fit.theta[e],
            train_accuracy=trained.train_accuracy[e],
            objective=trained.objective[e],
            optimality_gap=trained.optimality_gap[e],
            expected_accuracies=None if expected is None else np.broadcast_to(expected[e], len(chosen)),
            expected_balanced_accuracies=None if balanced is None else np.broadcast_to(balanced[e], len(chosen)),
            calibration=calibrations[e],
            instances=instance_table(setups[e], fit, e) if instances else pd.DataFrame(),
            non_private=setups[e].non_private,
            majority=shared.majority,
            replicas=chosen,
            record=fit.record.select(e) if instances else None,
            labels=None if fit.constant_label is None else fit.constant_label[e],
            distribution=None if fit.distribution is None else fit.distribution.select(e),
            noiseless_run=NoiselessRun.select(together.fit, len(runs) + e) if noiseless_runs else None,
            held=setups[e],
        )
        for e, r in enumerate(runs)
    ]


@lru_cache(maxsize=512)
def cached_calibration(mechanism: Mechanism, setting: Setting, budget: Budget) -> Calibration:
    """`Mechanism.calibrate`, kept: cells of one sweep ask for the same budgets for other seeds."""
    return protection.calibrate(mechanism, setting, budget)


def _train(mechanism: Mechanism, training: Training) -> Trained:
    """Trains after the optimum was found, and listens to both."""
    problem, monitor = training.problem, training.monitor
    first = 0.0 if problem.model.convex or problem.solved else 0.5  # share of the progress that the optimum takes
    problem.find_optimum(lambda share: monitor(first * share))
    return train(mechanism, replace(training, monitor=lambda share: monitor(first + (1 - first) * share)))


def tabulate(results: Sequence[Result], metrics: Sequence[str] = ()) -> pd.DataFrame:
    """One row per seed of each result, with the columns of `dpviz.sweep`; results on the same rows are measured in one pass.

    Args:
        metrics: ids of further metrics, with levels of their own.
    """
    first = results[0]
    if any(r.setup.test is not first.setup.test for r in results):  # each in private ranges of its own
        return pd.concat([tabulate([r], metrics) for r in results], ignore_index=True)
    labels = None if first.labels is None else np.concatenate([r.labels for r in results if r.labels is not None])
    theta = np.concatenate([r.theta for r in results])
    measured = measure_models(first.setup.problem.model, theta, first.setup.test, labels, all_metrics(metrics))
    right = measured.pop(METRICS["accuracy"].column)
    beside = [str(name) for name in measured]
    base = first.setup.baselines_in(all_metrics(metrics)) if metrics else first.setup.baselines
    each = [_seeds(r) for r in results]
    table = pd.DataFrame({name: np.concatenate([columns[name] for columns in each]) for name in each[0]})
    table.insert(7, "accuracy", right.to_numpy(float))
    return table.assign(
        **{name: measured[name].to_numpy() for name in beside},
        **{f"non_private_{name}": float(base.at["non-private", name]) for name in beside},
        **{f"majority_{name}": float(base.at["majority", name]) for name in beside},
    )


def _seeds(r: Result) -> dict[str, NDArray[Any]]:
    """Columns, an entry per seed: what is known of a result beside the metrics on the test rows; NaN for what there is not."""
    cal = r.calibration
    claimed, proved = (math.nan if budget is None else budget.epsilon for budget in (cal.claimed_budget, cal.proved_budget))
    exact = (r.expected_accuracies, r.expected_balanced_accuracies)
    accuracy, balanced = (math.nan if values is None else values for values in exact)
    columns: dict[str, Any] = {
        "dataset": r.spec.dataset,
        "model": r.spec.model,
        "mechanism": r.spec.mechanism,
        "epsilon": r.spec.epsilon,
        "delta": r.calibration.budget.delta,
        "lam": r.setup.problem.lam,
        "seed": np.array(r.replicas),
        "train_accuracy": r.train_accuracy,
        "objective": r.objective,
        "optimality_gap": r.optimality_gap,
        "expected_accuracy": accuracy,
        "sensitivity": cal.sensitivity,
        "noise_scale": cal.noise_scale,
        "claimed_epsilon": claimed,
        "proved_epsilon": proved,
        "status": cal.status.value,
        "neighbouring": cal.neighbouring.value,
        "non_private_accuracy": r.non_private.accuracy,
        "majority_accuracy": r.majority.accuracy,
        "expected_balanced_accuracy": balanced,
    }
    return {name: np.broadcast_to(column, len(r.replicas)) for name, column in columns.items()}


def public_setting(spec: RunSpec, n: int, d: int) -> Setting:
    """The setting of a run with n training rows and d features, without any data; an automatic lambda is that of its rule.

    Raises:
        InvalidInput: the mechanism refuses the model.
    """
    spec.build().require(get_model(spec.model).setting(n, d, spec.lam or 1.0))
    total = row_budget(spec.epsilon, spec.delta, n)
    facts = Facts(n, total, features=d - spec.intercept)
    preparations = tuple(each.cost(facts) for each in preparations_of(spec, facts)[0])
    lam = spec.lam or automatic_lam(spec.build(), spec.model, n, d, total, preparations=preparations)
    return replace(get_model(spec.model).setting(n, d, lam), preparations=preparations)


def calibrate(
    mechanism: str,
    *,
    n: int,
    d: int,
    epsilon: float | None = None,
    delta: float | None = None,
    lam: float = 0.0,
    model: str = "logistic",
    ranges: str = AS_DECLARED,
    attacker: str = "",
    **params: Any,
) -> Calibration:
    """A mechanism's calibration for given public facts, without any data.

    Args:
        n: training rows.
        d: features, the intercept included.
        attacker: in the place of epsilon, the strongest attacker that is tolerated, such as "tpr=0.05@fpr=0.01", "advantage=0.1"
            or "accuracy=0.55": the least noise that excludes better ones (`dpviz.mechanisms.attack`).
        ranges: "private" where a tenth of the budget pays for private ranges.
        lam: l2 regularisation; 0 for the mechanism's rule (with an attacker in the place of epsilon, at epsilon = 1).
        params: knobs of the mechanism.

    Raises:
        InvalidInput: whatever `run` refuses: a value out of its range, delta not below 1/n, a model that does not fit.

    >>> calibrate("output-gaussian", n=1000, d=10, epsilon=1.0, lam=0.01).status.value
    'proved'
    """
    if (epsilon is None) == (not attacker):
        raise InvalidInput("epsilon", "and a tolerated attacker exclude each other", "Give one of them.")
    spec = RunSpec(
        mechanism=mechanism,
        model=model,
        epsilon=1.0 if epsilon is None else epsilon,
        delta=delta,
        lam=lam,
        ranges=ranges,
        params=params,
    )
    n, d = (check_integer(name, value, 1, 2**53) for name, value in (("n", n), ("d", d)))
    built, budget = spec.build(), row_budget(spec.epsilon, spec.delta, n)
    setting = public_setting(spec, n, d)
    if attacker:
        budget = Budget(epsilon_for(Attacker.parse(attacker), built, setting, budget.delta), budget.delta)
    return protection.calibrate(built, setting, budget)


def list_models() -> dict[str, str]:
    """Labels of all models by id."""
    return {name: model.label for name, model in MODELS.items()}
