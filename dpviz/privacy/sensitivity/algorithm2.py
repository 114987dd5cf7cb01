"""Sensitivity of mini-batch SGD per batch position: Algorithm 2 of Chen, Lee, Kifer (AISTATS 2019).

`Algorithm2.by_position` is its closed form, `Algorithm2.trace` keeps what happens on the way. Both include the averaging and the
restarts of Algorithm 3.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from dpviz.common.arrays import Floats
from dpviz.common.validate import InvalidInput, check_integer, check_range, positive

LIMIT = 10**9  # largest count of passes, batches or steps that is taken for meant


def contraction(step: Floats | float, mu: float, L: float) -> Floats:
    """rho = max(|1 - eta mu|, |1 - eta L|): how much one gradient step brings two runs together (Chen 2019, Lemma 2)."""
    eta = np.asarray(step, float)
    return np.maximum(np.abs(1.0 - eta * mu), np.abs(1.0 - eta * L))


def geometric(rho: Floats | float, terms: int) -> Floats:
    """1 + rho + ... + rho^(terms-1) for rho >= 0, accurate also near and at rho = 1."""
    r = np.asarray(rho, float)
    with np.errstate(over="ignore", divide="ignore", invalid="ignore"):
        total = np.expm1(terms * log_factor(r)) / (r - 1)
    return np.where(r == 1, float(terms), total)


def log_factor(rho: Floats) -> Floats:
    """ln rho, accurate near 1; a large negative number at rho = 0, so that 0 * ln 0 = 0 and rho^0 = 1."""
    safe = np.maximum(rho, 1e-300)
    return np.where(safe > 0.5, np.log1p(np.maximum(safe, 0.5) - 1), np.log(safe))


def check_convexity(mu: float, L: float, *, strongly: bool = False) -> None:
    """Refuses constants that are not 0 <= mu <= L, L > 0; with `strongly` also mu = 0."""
    positive("L", L)
    if not 0 <= mu <= L or (strongly and mu == 0):
        cause = f"must lie in {'(' if strongly else '['}0, L = {L:g}], got {mu!r}"
        raise InvalidInput("mu", cause, "Use a strongly convex objective: a regularisation above 0." if strongly else "Check mu.")


def epoch_steps(epochs: int, eta0: float, restart: int, decay: float = 1.0) -> Floats:
    """(T,) step sizes eta0/h^decay, h = 1, 2, ... counted anew after every `restart` epochs (0: never)."""
    h = np.arange(check_integer("epochs", epochs, 1, LIMIT))
    return np.asarray(positive("eta0", eta0) / (1.0 + (h % restart if restart else h)) ** decay)


@dataclass(frozen=True)
class Trace:
    """The recursion as it runs. K points in time, J positions.

    Attributes:
        epoch: (K,) time in epochs; update k of epoch s is at s - 1 + k/m.
        value: (K, J) bound on the distance of the two runs.
        positions: (J,) batch positions from 1 that hold the replaced row.
        event: (K,) "start", "update" or "average".
        expands: (K, J) whether the replaced row was used in this update.
        step: (K,) step size of the update, NaN at the others.
        rho: (K,) contraction of the update, NaN at the others.
        restarts: epochs after which the step size starts anew.
    """

    epoch: Floats
    value: Floats
    positions: NDArray[np.intp]
    event: NDArray[np.str_]
    expands: NDArray[np.bool_]
    step: Floats
    rho: Floats
    restarts: tuple[int, ...]

    @classmethod
    def build(
        cls,
        epoch: Floats,
        value: Floats,
        positions: NDArray[np.intp],
        event: Sequence[str],
        steps: Floats,
        rho: Floats,
        batches: int,
        restarts: tuple[int, ...] = (),
    ) -> Trace:
        """A trace from the step sizes and contractions of its updates, which use the batches in turn."""
        update = np.array(event) == "update"
        step, contracted = np.full((2, len(event)), np.nan)
        step[update], contracted[update] = steps, rho
        expands = np.zeros(value.shape, bool)
        expands[update] = np.arange(len(steps))[:, None] % batches == positions - 1
        return cls(epoch, value, positions, np.array(event), expands, step, contracted, restarts)


@dataclass(frozen=True)
class Algorithm2:
    """Mini-batch SGD in passes over fixed batches, with the averaging and the restarts of Algorithm 3.

    Attributes:
        epochs: T.
        batches: m.
        eta0: first step size; epoch h after a restart uses eta0/h^decay. The recursion holds for any sequence of steps.
        decay: from 0, steps of one size, to 1.
        batch_size: size of the smallest batch, nu.
        mu, L: strong convexity (may be 0) and smoothness.
        G: bound on a row's gradient.
        tau: epochs between averagings and restarts, 0 for neither.
        average, restart: switch one of the two off (Algorithm 3 does both).

    Raises:
        InvalidInput: a value that means nothing.
    """

    epochs: int
    batches: int
    eta0: float
    batch_size: float
    mu: float
    L: float
    G: float = 1.0
    tau: int = 0
    average: bool = True
    restart: bool = True
    decay: float = 1.0

    def __post_init__(self) -> None:
        check_integer("epochs", self.epochs, 1, LIMIT)
        check_integer("batches", self.batches, 1, LIMIT)
        check_integer("tau", self.tau, 0, LIMIT)
        for name in ("eta0", "batch_size", "G"):
            positive(name, getattr(self, name))
        check_range("decay", self.decay, 0, 1)
        check_convexity(self.mu, self.L)

    @property
    def steps(self) -> Floats:
        """(T,) step sizes."""
        return epoch_steps(self.epochs, self.eta0, self.tau if self.restart else 0, self.decay)

    def by_position(self) -> Floats:
        """(m,) bound on the distance of two runs, by the position of the batch with the replaced row, in closed form [ours].

        Without averaging Delta[j] = sum_s a_s rho_s^(m-j) prod_{s'>s} rho_{s'}^m, a_s = 2 eta_s G/batch_size. A window
        of tau epochs that ends in averaging is affine, D -> A D + B[j]; windows with restarts are all alike, so W of
        them give B[j] (1 + A + ... + A^(W-1)). Epochs after the last whole window are plain. Infinite where it exceeds a double.
        """
        m, tau, steps = self.batches, self.tau, self.steps
        log_rho = log_factor(contraction(steps, self.mu, self.L))
        added = 2 * self.G / self.batch_size * steps
        with np.errstate(over="ignore", under="ignore", invalid="ignore"):
            if not (tau and self.average):
                return _plain(added, log_rho, m)
            windows, delta = self.epochs // tau, np.zeros(m)
            if windows:
                shape = (1 if self.restart else windows, tau)
                whole_windows = slice(math.prod(shape))
                shrink, grown = _windows(added[whole_windows].reshape(shape), log_rho[whole_windows].reshape(shape), m)
                if self.restart:
                    delta = grown[0] * geometric(shrink[0], windows)
                else:
                    for a, b in zip(shrink, grown, strict=True):
                        delta = a * delta + b
            rest = slice(windows * tau, self.epochs)
            if windows * tau < self.epochs:
                delta = np.exp(m * log_rho[rest].sum()) * delta + _plain(added[rest], log_rho[rest], m)
        return np.where(np.isnan(delta), np.inf, delta)

    def trace(self, positions: Sequence[int] | None = None) -> Trace:
        """Every update, one curve per batch position.

        Args:
            positions: batch positions from 1 to m; at most 12 evenly spaced ones where not given.

        Raises:
            InvalidInput: a position that is none, or more than ten million numbers would have to be kept.
        """
        m, tau, steps = self.batches, self.tau, self.steps
        chosen = _positions(positions, m)
        if self.epochs * m * len(chosen) > 10**7:
            cause = f"{self.epochs} epochs of {m} batches are too many to keep"
            raise InvalidInput("epochs", cause, "Give fewer epochs or positions.")
        k = np.arange(1, m + 1)[:, None]
        delta, window = np.zeros(len(chosen)), np.zeros(len(chosen))
        values, times, events = [delta[None]], [np.zeros(1)], ["start"]
        for s, (eta, rho) in enumerate(zip(steps, contraction(steps, self.mu, self.L).tolist(), strict=True)):
            hit = np.where(k >= chosen, rho ** np.maximum(k - chosen, 0), 0.0)
            path = rho**k * delta + 2 * eta * self.G / self.batch_size * hit
            values.append(path)
            times.append(s + k[:, 0] / m)
            events += ["update"] * m
            delta = path[-1]
            window = window + path.sum(axis=0)
            if tau and (s + 1) % tau == 0:
                if self.average:
                    delta = window / (m * tau)
                    values.append(delta[None])
                    times.append(np.array([s + 1.0]))
                    events.append("average")
                window = np.zeros(len(chosen))
        restarts = tuple(range(tau, self.epochs, tau)) if tau and self.restart else ()
        updates = np.repeat(steps, m), np.repeat(contraction(steps, self.mu, self.L), m)
        return Trace.build(np.concatenate(times), np.concatenate(values), chosen, events, *updates, m, restarts)


def _positions(positions: Sequence[int] | None, m: int) -> NDArray[np.int_]:
    """The positions asked for, or at most 12 evenly spaced ones."""
    if positions is None:
        return np.unique(np.round(np.linspace(1, m, min(m, 12)))).astype(int)
    chosen = np.array(positions, int)
    if len(chosen) == 0 or chosen.min() < 1 or chosen.max() > m:
        raise InvalidInput("positions", f"must lie between 1 and {m}", "Give batch positions counted from 1.")
    return chosen


def _powers(log_weight: Floats, log_rho: Floats, count: int) -> Floats:
    """(..., count) sums over s of weight_s rho_s^i for i = 0 .. count-1; s is the last axis of both arguments.

    i = r q + b splits the power in two, so that sqrt(count) instead of count exponentials are needed per s, and one
    small matrix product does the rest.
    """
    r = max(1, math.isqrt(count))
    coarse = np.exp(log_weight[..., None, :] + np.arange(0, count, r)[:, None] * log_rho[..., None, :])
    fine = np.exp(log_rho[..., None] * np.arange(r))
    product = coarse @ fine
    return product.reshape(*product.shape[:-2], -1)[..., :count]


def _plain(added: Floats, log_rho: Floats, m: int) -> Floats:
    """(m,) sensitivity after epochs without averaging, from equal starts."""
    later = log_rho[::-1].cumsum()[::-1] - log_rho
    return _powers(np.log(added) + m * later, log_rho, m)[::-1]


def _windows(added: Floats, log_rho: Floats, m: int) -> tuple[Floats, Floats]:
    """(W,) A and (W, m) B of windows D -> A D + B that end in averaging all their m tau iterates.

    In an epoch that starts at D the iterates sum to D rho (1-rho^m)/(1-rho) + a (1-rho^(m-j+1))/(1-rho).

    Args:
        added, log_rho: (W, tau) per epoch of each window.
    """
    tau = added.shape[1]
    through = np.exp(m * log_rho)
    visited = np.exp(log_rho) * geometric(np.exp(log_rho), m)
    # what a distance of 1 at the end of epoch h adds to the sums of the later epochs of its window
    one = len(added) == 1  # plain floats are ten times faster than arrays of one number
    backwards = [values[0, ::-1].tolist() if one else values.T[::-1] for values in (visited, through)]
    carried = [0.0 if one else np.zeros(len(added))]
    for sums, factor in zip(*backwards, strict=True):
        carried.append(sums + factor * carried[-1])
    beyond = np.array(carried[::-1]).reshape(tau + 1, -1)
    own = np.cumsum(_powers(np.log(added), log_rho, m), axis=-1)  # the geometric sums, without cancellation
    with np.errstate(divide="ignore"):
        later = _powers(np.log(added) + np.log(beyond[1:].T), log_rho, m)
    return beyond[0] / (m * tau), (own + later)[:, ::-1] / (m * tau)
