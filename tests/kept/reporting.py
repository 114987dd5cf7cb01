"""Examples of `dpviz.reporting`."""

import datetime
import re
import types
from collections.abc import Iterator
from dataclasses import replace
from typing import Any
from unittest import mock

import numpy as np
import pandas as pd
import support_kept as kept
from support import make_problem

import dpviz
from dpviz.figures import style
from dpviz.mechanisms.attack import strongest_attack
from dpviz.reporting import calls, document, notebook, pictures, run, words


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
        calls.sweep_call(dpviz.SweepSpec("teaching", mechanisms=["dp-gd"], epsilons=[1.0], seeds=3))
        + calls.sweep_shell_call(dpviz.SweepSpec("teaching", mechanisms=["dp-gd"], epsilons=[1.0], seeds=3)),
        calls.dataset_call("census-300", False, "unit"),
        calls.sweep_call(
            dpviz.SweepSpec(
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
            [kept.words(part), *kept.numbers_in(part)]
            for part in document.render(
                run.report_of(dpviz.RunSpec("teaching", mechanism="output-gaussian", seeds=2), metric="roc-auc"),
                date=datetime.datetime(2026, 1, 2),
            ).split("<svg")
        ],
        [
            [kept.words(part), *kept.numbers_in(part)]
            for part in document.render(
                run.report_of(dpviz.RunSpec("census-300", mechanism="dbdp", seeds=3)), date=datetime.datetime(2026, 1, 2)
            ).split("<svg")
        ],
        [
            [kept.words(part), *kept.numbers_in(part)]
            for part in document.render(
                run.report_of(dpviz.RunSpec("iris", mechanism="kst-objective", seeds=3, class_weight=2)),
                date=datetime.datetime(2026, 1, 2),
            ).split("<svg")
        ],
        " ".join(map(words.duration, (0.2, 89.0, 91.0, 5399.0, 9000.0)))
        + " ".join(map(words.two, (np.nan, -0.001, 1.966)))
        + " ".join(map(words.part, (0.0004, -0.004, 0.023)))
        + words.times(1)
        + words.times(0.4),
        " | ".join(
            f"{made.sentence} {made.repeat} "
            f"{[(getattr(part, 'text', ''), getattr(part, 'heading', '')) for part in made.parts]}".replace(rare.name, "rare")
            for name, metric in (("output-gaussian", ""), ("majority", "roc-auc"))
            for made in [run.report_of(dpviz.RunSpec(rare, mechanism=name, seeds=2), metric=metric)]
        ),
        " | ".join(
            [
                *(
                    words.metric_range(words.METRICS[name], low, 0.2)
                    for name in ("accuracy", "log-loss")
                    for low in (0.1, np.nan)
                ),
                *(
                    words.best_method(names, 0.6, 0.5, 0.7, among=4, over=False)
                    for names in ((), ("a",), tuple("abc"), tuple("abcd"))
                ),
                *(
                    words.read_off(words.Needed("dp-gd", e, e == 0.1, 0.7, 0.1, 10.0, "proved"), (0.2, None))
                    for e in (None, 0.1, 0.5)
                ),
                words.best_method(("a", "b"), 0.3, 2.0, 0.5, words.METRICS["log-loss"]),
                calls.shell_call(dpviz.RunSpec(above, mechanism="dp-gd")).replace(above.name, "rows"),
            ]
        ),
        " | ".join(
            [
                *(words.spread_text(np.array([0.7, 0.72, 0.79][:k]), shares=s) for k in (1, 3) for s in (True, False)),
                *map(words.budget, (dpviz.Budget(1.5), dpviz.Budget(0.123, 3e-6))),
                *(words.minimum(convex) for convex in (True, False)),
                *(words.preprocessing(*given) for given in ((True, True), (False, True), (True,), (False,))),
                *(words.caveat(status.value) for status in words.LABELS),
                *(words.amount(words.METRICS[m], v) for m in ("f1", "log-loss") for v in (5e-4, 4.9e-4, -0.0312)),
                *(words.part(v) for v in (0.0005, -0.0005)),
                *(f"{words.is_worse(v, 0.62)}" for v in (0.6194, 0.6196, 0.63)),
                *map(words.duration, (0.7, 1.6, 90.0, 5400.0)),
                *(
                    f"{words.headline('DP-GD', c, dpviz.calibrate('dp-gd', n=1000, d=10, epsilon=1.0), None)} {words.parts(c)}"
                    for m, private in (("roc-auc", 0.82), ("log-loss", 0.45), ("roc-auc", np.nan), ("accuracy", 0.843))
                    for c in [words.Cost(np.full(3, private), np.full(3, 0.825), 0.829, metric=words.METRICS[m])]
                ),
                *(
                    f"{words.privacy_cost(c)}: {words.split(c)}"
                    for m in ("accuracy", "log-loss", "brier")
                    for base in (0.31, 0.7315, 0.69)
                    for error in (0.0, 0.09)
                    for c in [
                        words.Cost(np.array([0.69, 0.71]), np.array([0.71, 0.7104]), base, 0.6, words.METRICS[m], error=error)
                    ]
                ),
                *(
                    f"{words.privacy_cost(c)}"
                    for m, base, near in (
                        ("accuracy", 0.73, 0.0299),
                        ("accuracy", 0.03, 0.03),
                        ("log-loss", 0.7, 0.0208),
                        ("log-loss", 0.7, 0.0212),
                    )
                    for c in [words.Cost(np.full(2, base - near), np.full(2, base), base, metric=words.METRICS[m], error=0.2)]
                ),
            ]
        ),
        " | ".join(
            words.needed_budget(least, want, {"dp-gd": "DP-GD"}, ends, named, words.METRICS[m], top)
            for m in ("accuracy", "log-loss")
            for least, ends in (
                (None, None),
                (words.Needed("dp-gd", None, False, 0.7, 0.1, 7.0, "proved"), None),
                (words.Needed("dp-gd", 0.3, True, 0.7, 0.3, 7.0, "proved"), (0.3, 0.3)),
                (words.Needed("nsgd", 0.42, False, 0.7, 0.3, 7.0, "proved"), (0.35, None)),
            )
            for want, top, named in ((0.75, 0.75, "nsgd"), (0.75, 0.76, "dp-gd"), (0.75, np.nan, ""), (0.75, 0.74, ""))
        ),
        [
            [len(page.split("\n")), kept.words(page), *kept.numbers_in(re.sub("<svg.*</svg>", "", page))]
            for parts in [
                (
                    document.Text("first", True),
                    document.Chart(style.figure(style.LIGHT, [], x={}, y={}), "a picture", pd.DataFrame({"u": [0.123456]})),
                    document.Text("Answer", True),
                    document.Text("<b> & so"),
                    document.Table("sixty rows", pd.DataFrame({"x": np.arange(60.0) / 7, "y": [None, "a" * 25] * 30})),
                    document.Table("more rows", pd.DataFrame({"z": np.arange(1261)})),
                    document.Chart(
                        style.figure(style.LIGHT, [], x={}, y={}), "the picture", lambda: pd.DataFrame({"v": [7] * 61})
                    ),
                    document.Text("the reason"),
                )
            ]
            for one in [
                document.Document("a question", "a sentence", ["✓ proved"], parts, [("Shell", "dpviz")], [("λ", 0.12345678)])
            ]
            for made in (
                document.render(replace(one, link="?a=1", subject="some rows"), date=datetime.datetime(2026, 1, 2, 3, 4)),
                document.render(replace(one, live="http://here/"), date=datetime.datetime(2026, 1, 2, 3, 4)),
                document.gallery({"a heading": [("f.html", "the title", "of it")], "more": []}, "http://there/"),
                document.slides([one, replace(one, question="another")], "http://there/"),
            )
            for page in [re.sub(r"numpy [^<]*", "", made.replace(f"dpviz {dpviz.__version__}", "this version"))]
        ],
        " | ".join(
            text
            for spec in [dpviz.RunSpec("teaching", mechanism="dp-gd", seeds=2)]
            for text in [
                *(
                    pictures.without_weights(
                        types.SimpleNamespace(spec=spec, theta=theta, non_private=types.SimpleNamespace(theta=t))
                    )
                    for t in (None, np.ones(3))
                    for theta in (np.zeros((2, 3)), np.full((2, 3), 0.2), np.ones((1, 1234)))
                ),
                *(
                    f"{pictures.gap_reason(one)}: {chart.words} {chart.figure.layout.xaxis.title.text}"
                    for some in ([0.0, 0.2, -0.1], [-0.3, -0.2, 0.4], [0.0, 1e-13, -1e-13], [0.3, 0.2, 1e-12])
                    for model in ("logistic", "mlp-4")
                    for one in [types.SimpleNamespace(spec=replace(spec, model=model), optimality_gap=np.array(some))]
                    for chart in [pictures.gap(one, None, style.LIGHT)]
                ),
                *(
                    mock.patch.object(pictures.accuracy, "MOST", most)(pictures.weights)(
                        types.SimpleNamespace(
                            spec=spec,
                            theta=np.array([[0.1, -0.9, 0.4], [0.3, -0.6, 0.5]]),
                            non_private=types.SimpleNamespace(theta=np.array([0.2, -0.7, 0.4])),
                        ),
                        style.LIGHT,
                    ).words
                    for most in (2, 3)
                ),
                pictures.lambda_note(replace(spec, mechanism="kst-objective")) + pictures.lambda_note(spec),
            ]
        ),
        words.label_ids("rsgd-ar beats rsgd and dp-gd") + words.deviation(np.array([0.7])),
        " ".join(map(words.two, (-1.97, 1.504, -0.001, np.nan))),
        "\n".join(
            words.claim(of.calibrate(make_problem().setting, budget), of)
            for of in (cls() for cls in dpviz.list_mechanisms().values())
            for budget in (dpviz.Budget(1.5, 0.001), dpviz.Budget(0.3, 1e-5))
        ),
        [
            kept.drawn(pictures.best_attack(some, style.LIGHT, other).figure)
            for attacks in [
                [
                    strongest_attack(of, make_problem().setting, of.calibrate(make_problem().setting, dpviz.Budget(1.5, 0.001)))
                    for of in (dpviz.RunSpec(mechanism=name).build() for name in ("dp-gd", "cms-output"))
                ]
            ]
            for some in attacks
            for other in attacks
        ],
        words.markdown("a*b_c <i> http://x.org")
        + words.label_ids("dp-gd beats output-gaussian")
        + words.keep_together("3 % and ± 1")
        + words.sentence("DP-GD at ε = 1"),
    ]
