"""What all metrics add to a whole figure on Adult's shape: every mechanism x 10 budgets x 10 seeds, measured by ten metrics.

    python -m benchmarks.metrics [--data NAME] [--mechanisms ID,ID] [--seeds N]

The data is UCI's Adult (48,842 rows: 9,769 test rows) where it is there already or its files are in the folder that DPVIZ_DATA
names; otherwise the synthetic census with as many rows. Nothing is downloaded. Prints seconds of the figure as it is
computed, and the part of them that goes into the metrics beside accuracy, by the clock and in processor time of all threads,
which other work on the machine changes less. At most 10 % is the target.
"""

import argparse
import time
from collections.abc import Callable
from typing import Any

import numpy as np

from dpviz.common.validate import InvalidInput
from dpviz.datasets.sources import remote
from dpviz.experiments.run import run, setup
from dpviz.experiments.run.spec import RunSpec
from dpviz.experiments.sweeps.cells import attempts
from dpviz.experiments.sweeps.sweep import SweepSpec
from dpviz.mechanisms import list_mechanisms

REAL, SYNTHETIC = "adult", "census-48842"
BUDGETS, SEEDS, LAM = 10, 10, 1e-3


class Clock:
    """Seconds and processor seconds of all threads spent in a function, wherever it is called from."""

    def __init__(self, work: Callable[..., Any]) -> None:
        self.seconds = self.processor = 0.0
        self._work = work

    def __call__(self, *given: Any, **named: Any) -> Any:
        start, busy = time.perf_counter(), time.process_time()
        try:
            return self._work(*given, **named)
        finally:
            self.seconds += time.perf_counter() - start
            self.processor += time.process_time() - busy


def main() -> None:
    """Computes the figure once, with a clock around the metrics."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--data", default="", help=f"a dataset; {REAL} where it is on this machine, else {SYNTHETIC}, by default")
    parser.add_argument("--mechanisms", default="", help="ids; all that take logistic regression by default")
    parser.add_argument("--seeds", type=int, default=SEEDS)
    options = parser.parse_args()
    dataset = options.data or (REAL if REAL in remote.names() else SYNTHETIC)
    chosen = []
    for name in options.mechanisms.split(",") if options.mechanisms else list_mechanisms():
        try:
            RunSpec(dataset=dataset, mechanism=name, lam=LAM)
            chosen.append(name)
        except InvalidInput:
            print(f"{name}: not for this model")
    epsilons = [float(e) for e in np.geomspace(0.01, 10.0, BUDGETS)]
    spec = SweepSpec(dataset=dataset, mechanisms=chosen, epsilons=epsilons, seeds=options.seeds, lam=LAM)
    shared = setup.setup_for(spec.runs()[0])
    _ = shared.non_private, shared.baselines
    clock = Clock(run.measure_models)
    run.measure_models = setup.measure_models = clock  # type: ignore[assignment]
    start, busy = time.perf_counter(), time.process_time()
    models = sum(len(table) for table in attempts(spec.cells()))
    total, processor = time.perf_counter() - start, time.process_time() - busy
    share, worked = clock.seconds / (total - clock.seconds), clock.processor / (processor - clock.processor)
    what = f"{len(chosen)} mechanisms, {models:,} models on {dataset}, {len(shared.test):,} test rows"
    print(f"{what}: {total:.1f} s, of which metrics {clock.seconds:.1f} s")
    print(f"metrics add {share:.1%} to the figure without them, {worked:.1%} in processor time (target: at most 10 %)")


if __name__ == "__main__":
    main()
