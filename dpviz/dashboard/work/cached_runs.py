"""Runs that were computed before. Keys are `RunSpec.key()` strings, never arrays; memory is bounded.

Where a run is too slow to be computed while somebody moves a slider, the budgets around the present one are computed
ahead in the background, each exactly as `dpviz.run` computes it.
"""

from __future__ import annotations

import threading
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from typing import Any
from weakref import WeakSet

import numpy as np
from numpy.typing import NDArray

import dpviz
from dpviz.common.memory import Cache
from dpviz.common.progress import Monitor, silent
from dpviz.experiments.resolve import resolve
from dpviz.experiments.setup import Baseline
from dpviz.experiments.spec import RunSpec
from dpviz.mechanisms import Calibration

Floats = NDArray[np.float64]

MAX_BYTES = 256 << 20
#: slower than this, a slider would stutter; much slower, computing ahead would take minutes
AHEAD_FROM, AHEAD_TO = 0.06, 3.0


@dataclass(frozen=True, eq=False)
class Outcome:
    """A `dpviz.Result` without its data and rows, small enough to keep; see there.

    Attributes:
        seconds: how long it took to compute.
    """

    spec: RunSpec
    theta: Floats
    accuracy: Floats
    train_accuracy: Floats
    objective: Floats
    optimality_gap: Floats
    expected_accuracy: float | None
    calibration: Calibration
    non_private: Baseline
    majority: Baseline
    seconds: float


class Cancelled(Exception):
    """The computation is not wanted any more."""


_store: Cache[Outcome] = Cache("runs", MAX_BYTES, lambda made: made.theta.nbytes + 4096)
_lock = threading.RLock()
_drawing: WeakSet[threading.Thread] = WeakSet()


def outcome(spec: RunSpec, monitor: Monitor = silent) -> Outcome:
    """The outcome of a run, from memory where it is there."""
    key = resolve(spec).key()
    found = _store.get(key)
    if found is not None:
        return found
    return _ahead.in_front(
        lambda: _store.compute(key, lambda listen: _compute(spec, listen), owner=spec.dataset, monitor=monitor)
    )


def stored(spec: RunSpec) -> Outcome | None:
    """The outcome if it is in memory."""
    return _store.get(resolve(spec).key())


def prepare(spec: RunSpec, epsilons: Sequence[float]) -> None:
    """Computes a run's other budgets in the background, nearest first; a later call replaces an earlier one."""
    present = stored(spec)
    if present is not None and AHEAD_FROM <= present.seconds <= AHEAD_TO:
        order = sorted(epsilons, key=lambda e: abs(np.log(e / spec.epsilon)))
        _ahead.want([replace(spec, epsilon=e) for e in order if e != spec.epsilon])


def attend() -> None:
    """Says that this thread draws a page for somebody; call at the start of a page. It ends when the thread does."""
    with _lock:
        _drawing.add(threading.current_thread())


def somebody_waits() -> bool:
    """Whether a page is being drawn, or a run computed, for somebody in front."""
    with _lock:
        drawing = list(_drawing)
    return _ahead.busy() or any(thread.is_alive() for thread in drawing)


def clear() -> None:
    """Forgets everything."""
    _store.clear()


def _compute(spec: RunSpec, monitor: Monitor) -> Outcome:
    start = time.perf_counter()
    (result,) = dpviz.run_epsilons(spec, [spec.epsilon], instances=False, monitor=monitor)
    return Outcome(
        spec=spec,
        theta=result.theta,
        accuracy=result.accuracy,
        train_accuracy=result.train_accuracy,
        objective=result.objective,
        optimality_gap=result.optimality_gap,
        expected_accuracy=result.expected_accuracy,
        calibration=result.calibration,
        non_private=result.non_private,
        majority=result.majority,
        seconds=time.perf_counter() - start,
    )


class _Ahead:
    """One background thread that steps aside while somebody waits in front."""

    def __init__(self) -> None:
        self._condition = threading.Condition()
        self._wanted: list[RunSpec] = []
        self._turn = 0
        self._waiting = 0
        self._thread: threading.Thread | None = None

    def want(self, specs: list[RunSpec]) -> None:
        with self._condition:
            if self._wanted and specs and _family(self._wanted[0]) == _family(specs[0]):
                self._wanted = specs  # the same run at another budget: what is under way stays useful
            else:
                self._wanted = specs
                self._turn += 1
            if self._thread is None:
                self._thread = threading.Thread(target=self._work, name="dpviz-ahead", daemon=True)
                self._thread.start()
            self._condition.notify_all()

    def in_front(self, compute: Callable[[], Outcome]) -> Outcome:
        with self._condition:
            self._waiting += 1
        try:
            return compute()
        finally:
            with self._condition:
                self._waiting -= 1
                self._condition.notify_all()

    def busy(self) -> bool:
        return self._waiting > 0

    def _work(self) -> None:
        while True:
            with self._condition:
                self._condition.wait_for(lambda: self._wanted and self._waiting == 0)
                spec, turn = self._wanted.pop(0), self._turn
            try:
                if stored(spec) is not None:
                    continue
            except dpviz.InvalidInput:  # the file or the upload is gone
                continue

            def step_aside(done: float, turn: int = turn) -> None:
                with self._condition:
                    self._condition.wait_for(lambda: self._waiting == 0)
                    if turn != self._turn:
                        raise Cancelled

            try:
                # not inside `compute`: somebody in front who wants the same run must not wait for a thread that steps aside
                _store.put(resolve(spec).key(), _compute(spec, step_aside), owner=spec.dataset)
            except Cancelled:
                continue
            except (dpviz.InvalidInput, ArithmeticError, RuntimeError, MemoryError):
                # whoever moves there computes it again and is told
                with self._condition:
                    self._wanted.clear()


def _family(spec: RunSpec) -> dict[str, Any]:
    # the spec of another session: its rows may be gone, so neither load nor validate them
    return spec.to_dict() | {"epsilon": None}


_ahead = _Ahead()
