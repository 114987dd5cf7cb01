"""Shared parts of the local methods: everyone sends one noisy report, and all that follows is post-processing.

Sums over all rows of reports' noise, drawn without the noise of any row, and the noise of rows given these sums.
"""

import math
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy.linalg import solve_triangular

from dpviz.common.random import generator, single_normals, substreams
from dpviz.common.validate import InvalidInput
from dpviz.mechanisms.base import Floats, Streams, knob
from dpviz.mechanisms.calibration import BOUNDED_ROWS, PUBLIC_N_IF_SHUFFLED, SINGLE_PRECISION
from dpviz.mechanisms.capabilities import DeclaresEvent, NoisesRows, ProtectsQuery
from dpviz.models import Rows, Setting
from dpviz.models.problem import Problem

SHUFFLED: str = "a trusted shuffler hides which report is whose, and no one else sees the reports before that"
ROOT2 = math.sqrt(2)
_BLOCK = 8192


@dataclass(frozen=True)
class LocalMechanism(ProtectsQuery, DeclaresEvent, NoisesRows):
    """Knobs of the local methods; not a mechanism itself."""

    family = "local"
    supposes = (BOUNDED_ROWS, PUBLIC_N_IF_SHUFFLED, SINGLE_PRECISION)

    release: str = knob(
        "record",
        "Report",
        "What a person reports: the signed record y·x (a network needs features and label), or the gradient "
        "at the current model (one-pass SGD).",
        options=("record", "gradient"),
    )
    training: str = knob(
        "surrogate",
        "Training",
        "On reported records: a quadratic surrogate, corrected for the bias of the noise, or the plain objective.",
        options=("surrogate", "plain"),
    )
    batches: int = knob(20, "Batches", "Steps of the single pass (gradient reports only).", low=1, high=1000, log=True)
    step_size: float = knob(
        1.0, "Step size", "Size of a step (gradient reports only).", low=0.01, high=10.0, log=True, unit="1/L"
    )
    epsilon_is: str = knob(
        "local",
        "ε is",
        "Whether ε bounds what one report tells, or what all reports tell once they are shuffled.",
        options=("local", "central by shuffling"),
    )

    @property
    def central(self) -> bool:
        """True where the budget is that of the shuffled reports."""
        return self.epsilon_is != "local"

    def query_in_words(self, setting: Setting) -> tuple[str, str, float]:
        """(query, where its sensitivity comes from, sensitivity) of one person's report before noise."""
        if not setting.linear:
            # only a linear score makes y x say all about (x, y)
            return "one person's features and label (x, y)", "|x| <= 1 and |y| = 1, so any two are at most 2√2 apart", 2 * ROOT2
        if self.release == "record":
            return "one person's signed record y·x", "|y x| <= 1, so any two records are at most 2 apart", 2.0
        return (
            "one person's gradient at the current model",
            "gradients are at most G long, so any two are at most 2G apart",
            2.0 * setting.G,
        )

    def check(self, setting: Setting) -> None:
        """Refuses more batches than rows, and gradients without a bound."""
        if self.release == "gradient" and not setting.linear:
            raise InvalidInput("release", f"gradients of {setting.model!r} have no bound", 'Choose "record": features and label.')
        if self.release == "gradient" and self.batches > setting.n:
            raise InvalidInput("batches", f"{self.batches} batches for {setting.n} rows", f"Choose at most {setting.n}.")

    def learns(self, setting: Setting) -> tuple[str, ...]:
        """Notes on how a model that is not linear learns from reports."""
        if setting.linear:
            return ()
        return (
            "The network is trained on the reported features with the sign of the reported label, as they are; the surrogate "
            "is for linear models.",
        )

    def signed_records(self, problem: Problem) -> Floats:
        """(n, d) signed records y x, or (n, d + 1) features and label where the score is not linear; before noise."""
        if problem.setting.linear:
            return problem.rows.signed_rows
        return np.column_stack([problem.rows.X, problem.rows.y])

    def learn(self, problem: Problem, reports: Floats, stream: np.random.SeedSequence) -> Floats:
        """(m,) the model's own minimiser on noisy reports, as if they were records; signed ones have the label +1."""
        if problem.setting.linear:
            return problem.model.minimise(Rows(reports, np.ones(problem.n)), problem.lam)
        start = problem.model.initial(problem.m, [stream])[0]
        rows = Rows(reports[:, :-1], np.where(reports[:, -1] >= 0, 1.0, -1.0))
        return problem.model.minimise(rows, problem.lam, start)

    def rows_in_words(self, setting: Setting) -> str:
        if not setting.linear:
            return "Released is one report of features and label; shown are the features. The label of a report is as noisy."
        if self.release == "record":
            return (
                "Released is one report of the signed record y·x, label included. Shown is that report with this row's own label "
                "multiplied in again, for which the label must be known; without it the side of a row stays hidden."
            )
        return (
            "Released is one noisy gradient per person, taken at the model of the step in which the person reports. It is no "
            "row and has no units of the data; the person's own values never leave them. The table has the norm of the noise."
        )

    def query(self, problem: Problem, theta: Floats, streams: Streams) -> Floats:
        if self.release == "record":
            records = self.signed_records(problem)
            return np.broadcast_to(records.ravel(), (len(theta), records.size))
        # linear models: a row's gradient points along -y x
        norms = problem.model.gradient_norms(theta, problem.rows).T[:, :, None]
        directions = problem.rows.signed_rows / np.maximum(problem.rows.norms, 1e-300)[:, None]
        return (-norms * directions).reshape(len(theta), -1)


def row_blocks(n: int) -> Iterator[slice]:
    """Rows in pieces that stay in the cache."""
    for start in range(0, n, _BLOCK):
        yield slice(start, min(start + _BLOCK, n))


_MANY, _APART = 1 << 20, 1e-3  # entries of rows, and the least of their singular values over the largest, for single precision
_LEAST = 1e-12  # of the largest eigenvalue: below, rounding of the sums over rows is all there is


class NoiseSums:
    """sum z_i, sum v_i z_i' and sum z_i z_i' for z_i ~ N(0, I) and known rows v_i, from their exact joint distribution [ours].

    Let U (n, r) be an orthonormal basis of the columns of A = [1, V], so that A = U F'. In any orthonormal basis Z (n, d) has
    independent standard normal entries: N = U'Z and the part beside it, Q R with orthonormal Q, are independent. Then

        A'Z = F N,      Z'Z = N'N + R'R,      Z = U N + Q R,

    where R (min(n - r, d), d) is upper triangular: chi-distributed on the diagonal, with n - r - i degrees of freedom in row i,
    normal beside it (Bartlett 1933), and Q is uniform among what is orthogonal to U.
    """

    def __init__(self, rows: Floats, moment: Floats) -> None:
        """
        Args:
            rows: (n, d) V.
            moment: (d, d) V'V.
        """
        n, total = len(rows), rows.sum(axis=0)
        value, basis = np.linalg.eigh(np.block([[np.array([[n]]), total[None]], [total[:, None], moment]]))
        kept = value > _LEAST * value[-1]
        self._rows, self._root, self._basis = rows, np.sqrt(value[kept]), basis[:, kept]

    def _parts(self, stream: np.random.SeedSequence) -> tuple[Floats, Floats]:
        """N and R."""
        rng, (n, d), r = generator(stream), self._rows.shape, len(self._root)
        inside, k = rng.standard_normal((r, d)), min(n - r, d)
        beside = np.triu(rng.standard_normal((k, d)), 1)
        np.fill_diagonal(beside, np.sqrt(rng.chisquare(n - r - np.arange(k))))
        return inside, beside

    def draw(self, stream: np.random.SeedSequence) -> tuple[Floats, Floats, Floats]:
        """(d,) the sum of z, (d, d) of v z', (d, d) of z z'."""
        inside, beside = self._parts(stream)
        sums = (self._basis * self._root) @ inside
        return sums[0], sums[1:], inside.T @ inside + beside.T @ beside

    def rows(self, stream: np.random.SeedSequence) -> NDArray[np.floating]:
        """(n, d) noise with the sums of `draw`; in single precision where rows are many and no columns nearly dependent."""
        inside, beside = self._parts(stream)
        kind: Any = np.float32 if self._rows.size > _MANY and self._root[0] > _APART * self._root[-1] else np.float64
        rows, basis = self._rows.astype(kind), self._basis / self._root
        others: Any = single_normals(substreams(stream, 1)[0])((len(rows), len(beside))).astype(kind, copy=False)
        # Q = (E - U U'E) L'^-1 for normal draws E and the Cholesky factor L of the Gram matrix of E - U U'E
        known = basis.T @ np.vstack([others.sum(axis=0, dtype=float), rows.T @ others])
        root = np.linalg.cholesky((others.T @ others).astype(float) - known.T @ known)
        among = solve_triangular(root, beside, lower=True, trans="T") if len(beside) else beside
        first, *rest = basis @ (inside - known @ among)
        return np.asarray(others @ among.astype(kind) + rows @ np.array(rest, kind) + first.astype(kind))
