"""Mini-batch gradient descent (SGD) of linear models without noise: all replicas of a run train together."""

from __future__ import annotations

import itertools
import time
from collections.abc import Sequence

import numpy as np
from numpy.typing import NDArray

from dpviz.common.progress import Monitor, silent
from dpviz.common.random import generator, substreams
from dpviz.common.threads import THREADS_FROM, map_streams, processors
from dpviz.models.compiled.rows import CompiledRows, Descent, in_whole_lanes, loss_of
from dpviz.models.problem import Problem
from dpviz.models.sparse import Products

Floats = NDArray[np.float64]

_CHUNK_BYTES = 1 << 26  # permuted copies of the rows held at once
_FEW = 512  # rows of a batch x budgets: up to here replicas are faster together, above it one after the other without zeros
_GATHERED_BYTES = 1 << 22  # batches of all replicas that are gathered for one update
_BLOCK_ROWS = 1024  # stay in the cache between an update's two products
_SPARSE_BLOCK_ROWS = 8192  # the same for rows without their zeros
_PHRASES_FROM = 64  # rows of a batch from which it pays to spell the phrases of each update
_REPORT_SECONDS = 0.1
_REPORT_ENTRIES = 10_000_000  # times groups of 16 trainings: what compiled updates read between two reports, in less than 0.1 s


def permutations(streams: Sequence[np.random.SeedSequence], n: int) -> NDArray[np.intp]:
    """(S, n) one secret uniform order per stream, independent of the stream's noise."""
    return np.stack([generator(substreams(stream, 1)[0]).permutation(n) for stream in streams])


def minibatch_descent(
    problem: Problem,
    steps: Floats,
    batches: int,
    orders: NDArray[np.intp] | None = None,
    *,
    average_every: int = 0,
    stops: Sequence[int] = (),
    monitor: Monitor = silent,
) -> Floats:
    """Passes over fixed, balanced batches from 0: w <- w - eta (mean data gradient of the batch + lam w).

    Double precision throughout, because rounding is not part of any sensitivity proof. (On 39,000 rows single
    precision moved the result by 0.1 % of the sensitivity: small, but without a worst-case bound.)

    Args:
        steps: (T m,) step size of every update, T passes over m batches; or (E, T m), for E trainings on the same batches.
        batches: m; sizes are floor(n/m) or ceil(n/m), the larger ones first.
        orders: (S, n) order of the rows per replica; None is one replica with the rows as they stand.
        average_every: epochs after which the iterate becomes the mean of the iterates since the last averaging
            (Chen 2019, Algorithm 3, line 13); 0 for never.
        stops: with (T m,) lengths, E numbers of updates after each of which a training ends: the shorter ones are the beginnings
            of the longest, so that all are one training.

    Returns:
        (S, m) parameters, or (E, S, m).
    """
    lengths, rows = np.atleast_2d(steps), problem.rows
    count, most = 1 if orders is None else len(orders), -(-problem.n // batches)  # rows in a batch
    # large batches of a dense table are faster by common products
    if (rows.compiled or (rows.many and most * len(lengths) <= _FEW)) and loss_of(problem.model.loss) is not None:
        out = _train_compiled(problem, lengths, batches, orders, average_every, stops, monitor)
        return out if steps.ndim == 2 or stops else out[0]
    heavy = most * problem.m * len(lengths) >= THREADS_FROM
    at_once = 0 if orders is None or stops else _at_once(problem, most, count, len(lengths))
    together, size = at_once > 0, max(1, min(at_once, -(-count // processors()) if heavy else count))
    whole = None if together else rows.products(np.float64, slice(0, problem.n))

    def work(g: int, tick: Monitor) -> Floats:
        part = slice(g * size, min((g + 1) * size, count))
        if whole is None and orders is not None:
            return _train_many(problem, orders[part], lengths, batches, average_every, tick)
        assert whole is not None
        own = whole if orders is None else whole.ordered(orders[part.start])
        return _train(problem, own, lengths, batches, average_every, stops, tick)[:, None]

    copied = 0 if whole is None else whole.nbytes
    parallel = heavy and copied <= _CHUNK_BYTES
    out = np.concatenate(map_streams(work, -(-count // size), monitor, parallel=parallel), axis=1)
    monitor(1.0)
    return out if steps.ndim == 2 or stops else out[0]


def _at_once(problem: Problem, most: int, count: int, budgets: int) -> int:
    """Of `count` replicas, how many gather their batches, of at most `most` rows, for common products; 0: each trains by itself.

    The number of processors has no say: the last bits of the two ways differ.
    """
    few, row = most * budgets <= _FEW, problem.rows.X[0].nbytes
    copies = 0 if problem.rows.sparse else _CHUNK_BYTES // (problem.n * row)
    if few and copies < count:
        copies = max(1, _GATHERED_BYTES // (most * row))
    return min(copies, count) if few or min(copies, count) > 1 else 0


def _bounds(n: int, batches: int) -> list[int]:
    small, larger = divmod(n, batches)
    return [k * small + min(k, larger) for k in range(batches + 1)]


def _train_compiled(
    problem: Problem,
    steps: Floats,
    batches: int,
    orders: NDArray[np.intp] | None,
    average_every: int,
    stops: Sequence[int],
    monitor: Monitor,
) -> Floats:
    """(E, S, m) one replica after the other, by compiled loops; several at once as far as copies of the rows have room."""
    rows = problem.rows
    whole, bounds, lengths = None, _bounds(problem.n, batches), in_whole_lanes(steps, few=True)
    if rows.compiled:  # phrases are spelled for each batch
        long = problem.n >= _PHRASES_FROM * batches
        whole = rows.for_loops(np.float64)[0] if long else rows.products(np.float64, slice(0, problem.n))
    entries = rows.X.size if whole is None else whole.nbytes // 12  # 8 bytes a number and 4 for its column
    updates, some = len(lengths), max(1, _REPORT_ENTRIES * batches // (entries * -(-lengths.shape[1] // 16)))

    def ordered(order: NDArray[np.intp] | None) -> CompiledRows | Floats:
        """The rows in the order in which they are taken: one after the other in memory, as every pass reads them."""
        if isinstance(whole, CompiledRows):
            return whole if order is None else whole.ordered(order)
        if order is None:
            return rows.signed
        copy = rows.X.take(order, axis=0)
        copy *= rows.y.take(order)[:, None]
        return copy

    def work(s: int, tick: Monitor) -> Floats:
        own, ends = ordered(None if orders is None else orders[s]), dict[int, Floats]()
        descent = Descent(own, problem.model.loss, bounds, lengths, problem.lam, average_every * batches)
        for first, last in itertools.pairwise(sorted({*range(0, updates, some), *stops, updates})):
            descent.go(first, last)
            ends[last] = descent.w[:, 0].copy()
            tick(last / updates)
        return np.array([ends[stop] for stop in stops]) if stops else descent.w[:, : len(steps)].T

    copied = rows.X.nbytes if whole is None else whole.nbytes
    trained = map_streams(work, 1 if orders is None else len(orders), monitor, parallel=copied <= _CHUNK_BYTES)
    monitor(1.0)
    return np.stack(trained, axis=1)


def _train(
    problem: Problem,
    rows: Products,
    steps: Floats,
    batches: int,
    average_every: int,
    stops: Sequence[int],
    monitor: Monitor,
) -> Floats:
    """(E, m) one order of the rows: two products an update."""
    loss, bounds, window = problem.model.loss, _bounds(problem.n, batches), average_every * batches
    eta_of = problem.rows.columns(steps)  # (T m, W), one step length for each lane
    ends: dict[int, Floats] = {}
    most = _SPARSE_BLOCK_ROWS if problem.rows.sparse else _BLOCK_ROWS
    parts = [
        ([rows.cut(slice(k, min(k + most, b))) for k in range(a, b, most)], float(b - a)) for a, b in itertools.pairwise(bounds)
    ]
    w = problem.rows.columns(np.zeros((len(steps), problem.m)))
    gradient, total, last = np.zeros_like(w), np.zeros_like(w), time.monotonic()
    buffer = np.empty((min(most, -(-problem.n // batches)), w.shape[1]))
    for t in range(steps.shape[1]):
        eta, (batch, size) = eta_of[t], parts[t % batches]
        gradient.fill(0.0)
        for part in batch:
            part.add(part.slopes(w, loss, buffer[: len(part)]), gradient)
        gradient *= eta / size
        w *= 1 - eta * problem.lam
        w -= gradient
        if window:
            total += w
            if (t + 1) % window == 0:
                w, total = total / window, np.zeros_like(total)
        if t + 1 in stops:
            ends[t + 1] = w[:, 0].copy()
        if time.monotonic() - last > _REPORT_SECONDS:
            monitor(t / steps.shape[1])
            last = time.monotonic()
    return np.array([ends[stop] for stop in stops]) if stops else w[:, : len(steps)].T


def _train_many(
    problem: Problem, orders: NDArray[np.intp], steps: Floats, batches: int, average_every: int, monitor: Monitor
) -> Floats:
    """(E, R, m) replicas with their own orders of the rows, (R, n), in step."""
    slope_inplace, rows = problem.model.loss.slope_inplace, problem.rows
    bounds, window = _bounds(problem.n, batches), average_every * batches

    def gather(k: int) -> Floats:
        index = orders[:, bounds[k] : bounds[k + 1]]
        batch = rows.X.take(index, axis=0)
        batch *= rows.y.take(index)[:, :, None]
        return batch

    fits = len(orders) * rows.X.size * rows.X.itemsize <= _CHUNK_BYTES
    kept = [gather(k) for k in range(batches)] if fits else []
    w, total = np.zeros((len(orders), problem.m, len(steps))), np.zeros((len(orders), problem.m, len(steps)))
    last = time.monotonic()
    for t, eta in enumerate(steps.T):
        batch = kept[t % batches] if kept else gather(t % batches)
        slope = slope_inplace(batch @ w)
        gradient = slope.transpose(0, 2, 1) @ batch
        w *= 1 - eta * problem.lam
        w -= eta / batch.shape[1] * gradient.transpose(0, 2, 1)
        if window:
            total += w
            if (t + 1) % window == 0:
                w, total = total / window, np.zeros_like(total)
        if time.monotonic() - last > _REPORT_SECONDS:
            monitor(t / steps.shape[1])
            last = time.monotonic()
    return w.transpose(2, 0, 1)
