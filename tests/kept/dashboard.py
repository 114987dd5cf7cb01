"""Examples of `dpviz.dashboard`."""

import types
from collections.abc import Iterator
from dataclasses import replace
from typing import Any

import pandas as pd

import dpviz
from dpviz.auditing.runs import one_run_of
from dpviz.dashboard.audit import attack, one_training
from dpviz.dashboard.frame import ranking, sidebar
from dpviz.dashboard.guarantees import table
from dpviz.dashboard.sensitivity import explanation
from dpviz.experiments.run.metrics import METRICS
from dpviz.experiments.run.setup import calibration_of
from dpviz.experiments.studies.guarantees import Guaranteed, Measured
from dpviz.mechanisms.attack import Attacker
from dpviz.models import get_model
from dpviz.privacy.budget import Budget


def sensitivity_explanation_examples() -> Iterator[Any]:
    s = get_model("logistic").setting(320, 3, 0.01)
    b = dpviz.RunSpec(mechanism="rsgd", params={"epochs": 20, "batch_size": 50, "step_size": 1.5}).build()
    t = b.sensitivity_trace(s)
    yield from [
        "\n".join(
            (
                explanation.final_terms(t, s),
                explanation.averaging(t),
                explanation.averaging(t, 0.3),
                explanation.permutation(b.releases(s), Budget(1.0, 1e-05), t),
                explanation.iteration(b.releases(s), b.noise_in_steps(s), Budget(1.0, 1e-05)),
                explanation.regularisation(b, s, get_model("logistic").setting(320, 3, 0.1)),
            )
        ),
        "\n".join(
            (
                explanation.averaging(
                    dpviz.RunSpec(mechanism="rsgd-ar", params={"batch_size": k})
                    .build()
                    .sensitivity_trace(get_model("logistic").setting(n, 30, lam)),
                    w,
                )
                for k, n, lam, w in ((91, 455, 0.01, 0.1), (222, 8000, 0.0001, None))
            )
        ),
        explanation.change(1.2, 1.0) + explanation.change(0.996, 1.0) + explanation.change(1.0, 1.0),
    ]


def audit_examples() -> Iterator[Any]:
    yield from [
        "\n".join(
            " ".join(attack.sentence(replace(r, allowed=a), p, s, over=o))
            for s in [dpviz.RunSpec("teaching", mechanism="output-gaussian", seeds=1)]
            for r in [dpviz.audit_run(s, runs=40)]
            for p in [types.SimpleNamespace(asks="which row was there")]
            for a in (r.guessed_right - 0.01, r.guessed_right + 0.01, None)
            for o in (True, False)
        ),
        "\n".join(
            " ".join(attack.sentence(r, types.SimpleNamespace(asks="which row was there"), s, over=True))
            for m in ("dbdp-pi", "non-private", "dbdp")
            for s in [dpviz.RunSpec("teaching", mechanism=m, seeds=1)]
            for r in [dpviz.audit_run(s, runs=40)]
        ),
        "\n".join(
            one_training.detectable_noise(r) + one_training.sentence(r)
            for m in ("output-gaussian", "pidp-sgd", "non-private")
            for r in [one_run_of(dpviz.RunSpec("teaching", mechanism=m, seeds=1), 40)[1]]
        ),
    ]


def frame_examples() -> Iterator[Any]:
    yield [sidebar._offered(m) for m in ("logistic", "svm", "mlp")]


def guarantees_examples() -> Iterator[Any]:
    specs = [dpviz.RunSpec("teaching", mechanism=m, epsilon=e) for m, e in (("dp-gd", 0.7), ("dbdp", 2.0), ("cms-output", 1.0))]
    found = [
        *(Guaranteed(s, calibration_of(s)) for s in specs),
        Guaranteed(replace(specs[0], mechanism="dp-sgd"), None, "no proof"),
    ]
    scores = {"dp-gd": pd.DataFrame({"accuracy": [0.7, 0.8, 0.95]}), "cms-output": pd.DataFrame({"accuracy": [0.9]})}
    methods = ranking.lines(Measured(found, scores, pd.DataFrame(), {"cms-output": {"accuracy": 0.85}}), METRICS["accuracy"])
    yield from [
        "\n".join(" ".join(table.proved(methods, one.spec)) for one in found[:3]),
        "\n".join(
            " ".join(table.tolerated(methods, replace(specs[0], mechanism=m, epsilon=e), Attacker.parse("advantage=0.3")))
            for m, e in (("dp-gd", 0.6966), ("dp-gd", 0.7034), ("dp-gd", 0.69), ("dp-gd", 0.71), ("dp-sgd", 1.0), ("nsgd", 1.0))
        ),
        table.table(methods, METRICS["accuracy"]),
        " | ".join(one.label for sort in table.SORTS for one in table.order_methods(methods, sort, METRICS["accuracy"])),
        "\n".join(" ".join(table._row(one, [methods[1].condition], METRICS["accuracy"])) for one in methods if one != methods[3]),
        [[one.mean, one.error, one.proved] for one in methods],
    ]
