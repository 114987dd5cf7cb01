"""One run row by row: influence, noise, rules, individual epsilon, and a plane to draw the rows in.

What is computed is kept within bounds, under `RunSpec.key()`. The influence belongs to the non-private fit, so one entry
serves every mechanism and every epsilon. All of it is read off private rows.
"""

import hashlib
from dataclasses import dataclass, replace
from functools import cached_property
from typing import Any

import numpy as np
import pandas as pd
from numpy.typing import ArrayLike, NDArray

from dpviz.common.arrays import Floats
from dpviz.common.memory import Cache
from dpviz.common.progress import Monitor, ignore, part
from dpviz.common.random import spawn
from dpviz.datasets import Dataset
from dpviz.experiments.run.resolve import fit_key, resolve
from dpviz.experiments.run.run import Result, run
from dpviz.experiments.run.setup import calibration_of, setting_of, setup_for
from dpviz.experiments.run.spec import RunSpec
from dpviz.influence import Influence, Retrained, influence_of
from dpviz.mechanisms import HasRule, NoisesRows, NoisesShare, ProtectsQuery, list_mechanisms, protection
from dpviz.mechanisms.attack import Attack, strongest_attack
from dpviz.mechanisms.base import NoiseRecord, RuleView
from dpviz.mechanisms.knobs import Changes

Plane = tuple[NDArray[np.float32], tuple[float, float]]  # (n, 2) points, share of the variance on each axis

MAX_BYTES = 256 << 20
#: rows x rows x parameters up to which every row is retrained without being asked for
EXACT_WORK = 1e8
#: rows retrained on larger sets
SAMPLE = 200
#: the same for networks, whose every row is a training run: rows of a sample, rows x parameters of one person's run and
#: rows x rows x parameters of a sample's that are retrained without being asked for
NETWORK_SAMPLE, NETWORK_PERSON, NETWORK_WORK = 40, 1e7, 5e7
#: gradients to which a network is retrained, relative to the row's own: its influence is no closer than that
NETWORK_TOLERANCE = 1e-4


@dataclass(frozen=True, eq=False, kw_only=True)
class Inspected(Result):
    """One run, row by row. n training rows, S seeds; arrays go by position in the training rows.

    Attributes:
        record: what happened to each row, per seed; always there.
        noise_count: (n,) how often noise was put on the row, mean over the seeds; None where noise is not put on rows.
        ever: (n,) whether that happened in any seed; None likewise.
        first: (n,) the first seed in which it happened, -1 where in none; None likewise.
        views: the rules that decide which rows receive noise, the one in use first; None where there is none.
        attack: the best possible attack on any row; None where nothing is proved.
    """

    record: NoiseRecord
    noise_count: Floats | None
    ever: NDArray[np.bool_] | None
    first: NDArray[np.intp] | None
    views: tuple[RuleView, ...] | None
    attack: Attack | None

    @property
    def row_ids(self) -> NDArray[np.intp]:
        """(n,) ids of the training rows, ascending."""
        return self.instances.index.to_numpy()

    @property
    def timeline(self) -> NDArray[Any] | None:
        """(S, rounds) rows that received noise, or what `record.timeline_counts` says, per round; or None."""
        return None if self.record.timeline is None else self.record.timeline[0]

    @cached_property
    def epsilon(self) -> Floats | None:
        """(n,) individual epsilon, mean over the seeds."""
        return None if self.individual is None else self.individual.epsilon.mean(axis=0)

    @cached_property
    def rms_noise(self) -> float:
        """Root mean square distance of the released parameters from their mean; NaN for one seed."""
        return noise_size(self.theta)

    def position(self, row_id: int) -> int:
        """Position of a training row's id."""
        return int(np.searchsorted(self.row_ids, row_id))

    @property
    def size(self) -> int:
        """Bytes, roughly."""
        total = float(self.instances.memory_usage().sum() + 4 * self.theta.nbytes)
        kept = (*vars(self.record).values(), *([] if self.individual is None else vars(self.individual).values()))
        total += sum(value.nbytes for value in kept if isinstance(value, np.ndarray))
        return int(total) + sum(3 * v.statistic.nbytes for v in self.views or ()) + 65536


_runs: Cache[Inspected] = Cache("runs row by row", MAX_BYTES, lambda made: made.size)
_influences: Cache[Influence] = Cache(
    "influence", MAX_BYTES, lambda made: 12 * 8 * made.problem.n + 16 * len(made.theta) ** 2 + made.problem.rows.X.nbytes
)
_retrained: Cache[Retrained] = Cache("retraining without a row", MAX_BYTES, lambda made: 2 * made.theta.nbytes + 4096)
_noisy: Cache[Floats] = Cache("rows with noise", MAX_BYTES, lambda made: made.nbytes + 64)
_planes: Cache[tuple[NDArray[np.float32], tuple[float, float]]] = Cache(
    "principal planes", 64 << 20, lambda made: made[0].nbytes + 64
)


def inspect(spec: RunSpec, monitor: Monitor = ignore) -> Inspected:
    """The run with what happened to every row, from memory where it is there."""
    return _runs.compute(resolve(spec).key(), lambda listen: _inspect(spec, listen), owner=spec.dataset, monitor=monitor)


def _inspect(spec: RunSpec, monitor: Monitor) -> Inspected:
    result = run(spec, monitor=lambda share: monitor(0.9 * share))
    record, n = result.record, result.setup.problem.n
    assert record is not None
    met = record.times_noised
    # methods that know no noise on rows say None; those that could put it there but did not say 0
    noise_count = None if met is None else np.broadcast_to(met[0].mean(axis=0, dtype=float), (n,)).copy()
    ever = None if met is None else np.broadcast_to((met[0] > 0).any(axis=0), (n,)).copy()
    first = None if met is None or ever is None else np.where(ever, np.broadcast_to((met[0] > 0).argmax(axis=0), (n,)), -1)
    mechanism = spec.build()
    return Inspected(
        **result.without_rows(),
        noise_count=noise_count,
        ever=ever,
        first=first,
        attack=strongest_attack(mechanism, result.setup.problem.setting, result.calibration),
        views=mechanism.rule_views(result.setup.problem, result.calibration) if isinstance(mechanism, HasRule) else None,
    )


def row_influence(spec: RunSpec) -> Influence:
    """Influence of every training row on the non-private model."""

    def make(listen: Monitor) -> Influence:
        made = influence_of(setup_for(spec).problem)
        _ = made.order, made.leverage  # what every panel needs
        return made

    return _influences.compute(fit_key(spec), make, owner=spec.dataset)


def inspect_with_influence(spec: RunSpec, monitor: Monitor = ignore) -> tuple[Inspected, Influence]:
    """`inspect` and `row_influence`."""
    return inspect(spec, part(monitor, 0.0, 0.8)), row_influence(spec)


def noise_size(theta: Floats) -> float:
    """Root mean square distance of parameters (seeds, m) from their mean; NaN for one seed."""
    seeds = len(theta)
    return float(np.linalg.norm(theta - theta.mean(axis=0)) / (seeds - 1) ** 0.5) if seeds > 1 else float("nan")


def retrain_without(spec: RunSpec, positions: ArrayLike, monitor: Monitor = ignore) -> Retrained:
    """Exact minimisers without each of these training rows; for networks, where training on from the same point leads.

    Raises:
        InvalidInput: the network's training without privacy reached no minimum.
    """
    at, influence = np.asarray(positions, np.intp), row_influence(spec)
    if influence.leaders is not None and np.array_equal(at, influence.leaders.index):
        return influence.leaders
    tolerance = 1e-9 if influence.problem.model.convex else NETWORK_TOLERANCE
    return _retrained.compute(
        _rows_key(spec, at),
        lambda listen: influence.leave_one_out(at, tolerance=tolerance, monitor=listen),
        owner=spec.dataset,
        monitor=monitor,
    )


def cheap(influence: Influence) -> bool:
    """True where retraining without one row or two is cheap enough to do it without being asked."""
    return influence.problem.model.convex or influence.problem.n * influence.problem.m <= NETWORK_PERSON


def is_retrained(spec: RunSpec, positions: ArrayLike) -> bool:
    """True where `retrained` has it in memory."""
    return _rows_key(spec, np.asarray(positions, np.intp)) in _retrained


def _rows_key(spec: RunSpec, at: NDArray[np.intp]) -> str:
    return f"{fit_key(spec)}|{hashlib.sha256(at.tobytes()).hexdigest()}"


def validation_rows(spec: RunSpec) -> NDArray[np.intp]:
    """Positions to validate the influence on: all rows of small sets; else the most influential and evenly spread ranks."""
    influence = row_influence(spec)
    n = influence.problem.n
    if influence.problem.model.convex and n**2 * influence.problem.m <= EXACT_WORK:
        return np.arange(n)
    half = sample(influence) // 2
    order = influence.order
    ranks = np.unique(np.r_[np.arange(min(half, n)), np.linspace(0, n - 1, half).astype(int)])
    return np.sort(order[ranks])


def sample(influence: Influence) -> int:
    """Rows that are retrained where all are too many."""
    return SAMPLE if influence.problem.model.convex else NETWORK_SAMPLE


def is_cheap(influence: Influence, count: int) -> bool:
    """True where retraining without each of `count` rows is cheap enough to do it without being asked."""
    return influence.problem.n * influence.problem.m * count <= (EXACT_WORK if influence.problem.model.convex else NETWORK_WORK)


def approximation(influence: Influence) -> str:
    """The reason why the influence is approximate even to first order, "" where it is not."""
    if influence.exact_curvature:
        return ""
    form = " in Kronecker factors (EKFAC)" if influence.solver == "factored" else ""
    return f"approximate: its curvature is the Gauss–Newton matrix{form}, not the Hessian"


def noisy_rows(spec: RunSpec, replica: int = 0) -> Floats | None:
    """(n, d) rows as one replica saw them after its noise; None where noise is not put on rows."""

    mechanism = spec.build()
    if not isinstance(mechanism, NoisesRows):
        return None

    def make(_: Monitor) -> Floats:
        problem = setup_for(spec).problem
        made = mechanism.noisy_rows(problem, calibration_of(spec), spawn(spec.seed, spec.seeds)[replica])
        return np.empty(0) if made is None else made

    noisy = _noisy.compute(f"{resolve(spec).key()}|{replica}", make, owner=spec.dataset)
    return noisy if noisy.size else None


def principal_plane(rows: Floats) -> Plane:
    """Rows in the plane of their two principal components, and the share of the variance on each axis.

    The sign of an axis is fixed by its largest loading, so that the picture does not flip from run to run.

    Args:
        rows: (n, d), d >= 1; with d = 1 the second axis is 0.
    """
    centred = rows - rows.mean(axis=0)
    values, vectors = np.linalg.eigh(centred.T @ centred)
    axes = vectors[:, ::-1][:, :2]
    axes = axes * np.sign(axes[np.abs(axes).argmax(axis=0), np.arange(axes.shape[1])])
    points = np.zeros((len(rows), 2), np.float32)
    points[:, : axes.shape[1]] = centred @ axes
    total = max(float(values.sum()), 1e-300)
    top = [*(float(v) / total for v in values[::-1][:2]), 0.0]
    return points, (top[0], top[1])


def plane(spec: RunSpec) -> Plane:
    """`principal_plane` of a run's training rows: the same for every model, mechanism and budget."""

    def make(_: Monitor) -> Plane:
        setup = setup_for(spec)
        return principal_plane(setup.dataset.X[setup.split.train])

    return _planes.compute(fit_key(spec.restrict(Changes.DATA)), make, owner=spec.dataset)


def noising_rows(spec: RunSpec, share: float) -> list[RunSpec]:
    """The run with each method that puts noise on rows and fits its model; on a share of the rows where a method takes one."""
    setting, runs = setting_of(spec), []
    for name, cls in list_mechanisms().items():
        if issubclass(cls, NoisesRows | HasRule | NoisesShare) and cls.refusal(setting) is None:
            knobs = cls.noising(share) if issubclass(cls, NoisesShare) else {}
            runs.append(replace(spec, mechanism=name, params=knobs))
    return runs


def one_step(spec: RunSpec) -> pd.DataFrame | None:
    """The quantity that receives noise, at parameters 0, before and after noise.

    For gradient methods this is the mean clipped gradient of the first step, for output methods the trained parameters.

    Returns:
        One row per coordinate: before, and "draw 1" .. "draw S" after the noise of each of at most ten draws. None where the
        method has no query with one number for each parameter, or its noise is not drawn once for all coordinates.
    """
    mechanism, calibration = spec.build(), calibration_of(spec)
    if not isinstance(mechanism, ProtectsQuery) or not calibration.noise_family.closed_form or calibration.noise_scale == 0:
        return None
    problem, streams = setup_for(spec).problem, spawn(spec.seed, spec.seeds)[:10]
    mechanism = protection.settle(mechanism, problem.setting, calibration.budget)
    before = mechanism.query(problem, np.zeros((1, problem.m)), streams[:1])[0]
    if before.shape != (problem.m,):
        return None
    noise = calibration.noise_scale * calibration.noise_family.sample(streams, problem.m)
    after = {f"draw {k + 1}": before + part for k, part in enumerate(noise)}
    return pd.DataFrame({"before": before} | after)


def own_ids(dataset: Dataset) -> pd.Series | None:
    """The table's own id of each row: the first column that is not trained on and has another value in every row."""
    columns = () if dataset.beside is None else (dataset.beside[name] for name in dataset.beside)
    return next((column.astype(str) for column in columns if column.nunique() == dataset.n), None)


def row_name(dataset: Dataset, row_id: int) -> str:
    """The name of a row: the table's own id where it has one, its row id otherwise."""
    own = own_ids(dataset)
    return f"Row {row_id}" if own is None else f"{own.name} {own[row_id]}"


def unusual_columns(spec: RunSpec, row_id: int, most: int = 3) -> list[tuple[str, Any, Any]]:
    """The columns in which a row differs most from a typical one: (column, its value, the typical value).

    Typical is the median of a column of numbers, the most frequent value of others, over the training rows. Numbers are
    compared in interquartile ranges; another word counts by how rare it is (its negative log share).
    """
    setup = setup_for(spec)
    frame = setup.dataset.frame.iloc[:, :-1]
    training, mine = frame.iloc[setup.split.train], frame.iloc[row_id]
    differences = []
    for name in frame:
        column, value = training[name], mine[name]
        if pd.api.types.is_numeric_dtype(column) and not pd.api.types.is_bool_dtype(column):
            low, typical, high = (float(q) + 0.0 for q in np.nanquantile(column.to_numpy(float), (0.25, 0.5, 0.75)))
            distance = abs(float(value) - typical) / max(high - low, 1e-9 * max(abs(typical), 1.0))
        else:
            typical = column.mode().iloc[0]
            distance = 0.0 if value == typical else -float(np.log(max((column == value).mean(), 1e-12)))
        differences.append((distance, str(name), value, typical))
    differences.sort(key=lambda one: -one[0])
    return [(name, value, typical) for _, name, value, typical in differences[:most]]
