"""Examples of `dpviz.reporting`."""

import datetime
import math
from collections.abc import Iterator
from typing import Any

import numpy as np
import pandas as pd
from support_kept import numbers_in
from support_kept import words as words_of

import dpviz
from dpviz.experiments.run.metrics import METRICS
from dpviz.experiments.sweeps.curves import Needed
from dpviz.experiments.sweeps.sweep import SweepSpec
from dpviz.reporting import calls, document, notebook, run, words


def reporting_examples() -> Iterator[Any]:
    rare = dpviz.dataset(
        pd.DataFrame({"a": np.arange(200.0) % 17, "label": [1] * 12 + [0] * 188}), target="label", ranges={"a": (0, 17)}
    )
    above = dpviz.dataset(pd.DataFrame({"a, b": [1.0, 2.0] * 40, "c": [3, 5] * 40}), target="c", above=4, columns=["a, b"])
    yield from [
        calls.python_call(dpviz.RunSpec("census-300", mechanism="output-gaussian", seeds=3, epsilon=2.0), "roc-auc"),
        calls.shell_call(dpviz.RunSpec("census-300", mechanism="output-gaussian", seeds=3, epsilon=2.0), "audit", "f1"),
        calls.python_call(dpviz.RunSpec("teaching", mechanism="dp-gd", seeds=2, epsilon=0.5)),
        calls.shell_call(dpviz.RunSpec("teaching", mechanism="dp-gd", seeds=2, epsilon=0.5)),
        calls.address(dpviz.RunSpec("census-300", mechanism="output-gaussian", seeds=3, epsilon=2.0)),
        calls.sweep_call(SweepSpec("teaching", mechanisms=["dp-gd"], epsilons=[1.0], seeds=3))
        + calls.sweep_shell_call(SweepSpec("teaching", mechanisms=["dp-gd"], epsilons=[1.0], seeds=3)),
        calls.dataset_call("census-300", False, "unit"),
        calls.sweep_call(
            SweepSpec(
                "teaching",
                mechanisms={"dp-gd": dpviz.list_mechanisms()["dp-gd"].defaults() | {"steps": 7}, "cms-output": {}},
                epsilons=(1.0,),
            )
        ),
        notebook.notebook_of(dpviz.RunSpec("census-300", mechanism="output-gaussian", seeds=3, epsilon=2.0)),
        " ".join(
            (
                f"{name} {value}"
                for name, value in run.settings_of(dpviz.RunSpec("census-300", mechanism="output-gaussian", seeds=3, epsilon=2.0))
            )
        ),
        [
            [words_of(part), *numbers_in(part)]
            for part in document.render(
                run.report_of(dpviz.RunSpec("teaching", mechanism="output-gaussian", seeds=2), metric="roc-auc"),
                date=datetime.datetime(2026, 1, 2),
            ).split("<svg")
        ],
        [
            [words_of(part), *numbers_in(part)]
            for part in document.render(
                run.report_of(dpviz.RunSpec("census-300", mechanism="dbdp", seeds=3)), date=datetime.datetime(2026, 1, 2)
            ).split("<svg")
        ],
        [
            [words_of(part), *numbers_in(part)]
            for part in document.render(
                run.report_of(dpviz.RunSpec("iris", mechanism="kst-objective", seeds=3, class_weight=2)),
                date=datetime.datetime(2026, 1, 2),
            ).split("<svg")
        ],
        " ".join(map(words.duration, (0.2, 89.0, 91.0, 5399.0, 9000.0)))
        + " ".join(map(words.two, (math.nan, -0.001, 1.966)))
        + " ".join(map(words.part, (0.0004, -0.004, 0.023)))
        + words.times(1)
        + words.times(0.4),
        " | ".join(
            f"{made.sentence} {made.repeat} {[getattr(part, 'text', '') for part in made.parts]}".replace(rare.name, "rare")
            for name, metric in (("output-gaussian", ""), ("majority", "roc-auc"))
            for made in [run.report_of(dpviz.RunSpec(rare, mechanism=name, seeds=2), metric=metric)]
        ),
        " | ".join(
            [
                *(words.metric_range(METRICS[name], low, 0.2) for name in ("accuracy", "log-loss") for low in (0.1, math.nan)),
                *(
                    words.best_method(names, 0.6, 0.5, 0.7, among=4, over=False)
                    for names in ((), ("a",), tuple("abc"), tuple("abcd"))
                ),
                *(words.read_off(Needed("dp-gd", e, e == 0.1, 0.7, 0.1, 10.0, "proved"), (0.2, None)) for e in (None, 0.1, 0.5)),
                words.best_method(("a", "b"), 0.3, 2.0, 0.5, METRICS["log-loss"]),
                calls.shell_call(dpviz.RunSpec(above, mechanism="dp-gd")).replace(above.name, "rows"),
            ]
        ),
        words.markdown("a*b_c <i> http://x.org")
        + words.label_ids("dp-gd beats output-gaussian")
        + words.keep_together("3 % and ± 1")
        + words.sentence("DP-GD at ε = 1"),
    ]
