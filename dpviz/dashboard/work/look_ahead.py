"""Runs at other budgets, computed before anybody asks for them: moving the slider of a slow run does not stutter.

Each is computed exactly as `dpviz.run` computes it, as a job of low priority.
"""

import json
import math
from collections.abc import Iterator, Sequence
from contextlib import suppress
from dataclasses import replace

from dpviz.common.progress import Monitor
from dpviz.common.validate import InvalidInput
from dpviz.dashboard.work import cached_runs, watching
from dpviz.dashboard.work.job import Job
from dpviz.dashboard.work.pool import pool
from dpviz.experiments.run.spec import RunSpec

#: seconds of a run: below the first a slider does not stutter, above the second computing ahead would take minutes
FROM, TO = 0.06, 3.0
NEAREST = 12  # budgets that are computed ahead, on both sides of the present one
_PLACE = "dpviz.look-ahead"


class LookAhead(Job[None]):
    """One run at several budgets, each kept in the cache of runs.

    Attributes:
        wanted: specs still to be computed, the next one first.
    """

    def __init__(self, specs: Sequence[RunSpec]) -> None:
        family = {key: value for key, value in specs[0].to_dict().items() if key != "epsilon"}
        super().__init__(f"look ahead {json.dumps(family, sort_keys=True)}", self._runs, dataset=specs[0].dataset, low=True)
        self.wanted = list(specs)

    def _runs(self, monitor: Monitor) -> Iterator[None]:
        while self.wanted:
            monitor(0.0)
            spec = self.wanted[0]
            # a page that moves to a run that fails computes it again and says why
            with suppress(InvalidInput, ArithmeticError, RuntimeError, MemoryError):
                cached_runs.compute_ahead(spec, monitor)
            self.wanted = [other for other in self.wanted if other != spec]
            yield None


def prepare(spec: RunSpec, epsilons: Sequence[float]) -> None:
    """Computes a run's nearest budgets in the background; a session's later call replaces its earlier one."""
    present = cached_runs.stored(spec)
    if present is None or not FROM <= present.seconds <= TO:
        return
    order = sorted((e for e in epsilons if e != spec.epsilon), key=lambda e: abs(math.log(e / spec.epsilon)))
    specs = [replace(spec, epsilon=e) for e in cached_runs.missing(spec, order[:NEAREST])]
    if specs:
        made = LookAhead(specs)
        job = pool().find(made.key)
        if job is not None and job.over:
            pool().remove(job)
        watching.watch(made, _PLACE).wanted = specs  # where it is under way, the budgets near the present one come first now
