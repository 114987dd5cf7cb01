"""`dpviz calibrate --methods`: how far every method is proved at one budget, and on request how useful it leaves the model."""

from __future__ import annotations

import argparse
from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

from dpviz.cli import answers, metrics, one_run
from dpviz.cli.progress import Bar

if TYPE_CHECKING:
    from dpviz.mechanisms.attack import Attacker


def run(options: argparse.Namespace, attacker: Attacker | None) -> None:
    """Prints a line for each method."""
    import pandas as pd

    from dpviz.experiments.run.resolve import resolve
    from dpviz.experiments.run.setup import setup_for
    from dpviz.experiments.studies import guarantees

    spec = one_run.run_spec(options)
    chosen = metrics.chosen_metrics(options.metric)
    measured: Mapping[str, pd.DataFrame] = {}
    baselines: dict[str, dict[str, float]] = {}
    if chosen:
        with Bar() as bar:
            *_, last = guarantees.watch(spec, bar, [metric.id for metric in chosen], attacker)
        promises, measured = last.found, last.metrics
        base = setup_for(spec).baselines_in([metric.id for metric in chosen])
        baselines = {str(model): {m.id: float(base.at[model, m.column]) for m in chosen} for model in base.index}
    else:
        promises = guarantees.guarantees(spec, attacker)
    methods: list[dict[str, Any]] = []
    for one in promises:
        table = measured.get(one.spec.mechanism)
        methods.append(
            {
                "mechanism": one.spec.mechanism,
                "guarantee": None if one.calibration is None else answers.guarantee(one.calibration, one.spec.build()),
                "refusal": one.problem or None,
                "metrics": {m.id: None if table is None else table[m.column].mean(skipna=False) for m in chosen},
            }
        )
    rows = []
    for method in methods:
        promise = method["guarantee"]
        proved = promise["proved"]["epsilon"] if promise and promise["proved"] else None
        status = promise["status"] if promise else method["refusal"]
        if promise and promise["refuted"]:
            status = f"{status}, refuted by audit"
        rows.append({"mechanism": method["mechanism"], "proved_epsilon": proved, **method["metrics"], "status": status})
    rows += [{"mechanism": model, "proved_epsilon": None, **values, "status": ""} for model, values in baselines.items()]
    values = {"run": answers.run(resolve(spec)), "methods": methods, "baselines": baselines}
    answers.give(options, [], values, pd.DataFrame(rows))
