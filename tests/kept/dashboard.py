"""Examples of `dpviz.dashboard`."""

import types
from collections.abc import Iterator
from dataclasses import replace
from typing import Any

import dpviz
from dpviz.auditing.runs import one_run_of
from dpviz.dashboard.audit import attack, one_training
from dpviz.dashboard.frame import sidebar
from dpviz.dashboard.sensitivity import explanation
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
