"""Examples of `dpviz.dashboard`: the pages of groups, guarantees and sensitivity."""

from dataclasses import replace
from types import SimpleNamespace as ns
from unittest import mock

import numpy as np
import pandas as pd
from support_kept import refusal, shares, view

import dpviz
from dpviz.dashboard.frame import page, ranking
from dpviz.dashboard.groups import cost_by_group, over_epsilon
from dpviz.dashboard.guarantees import table
from dpviz.dashboard.sensitivity import excess_risk, explanation, recursion, scaling
from dpviz.experiments.run.metrics import METRICS
from dpviz.experiments.run.setup import calibration_of
from dpviz.experiments.studies.cost_by_group import GroupCosts
from dpviz.experiments.studies.guarantees import Guaranteed, Measured
from dpviz.figures import style
from dpviz.mechanisms.attack import Attacker
from dpviz.models import get_model


def groups_examples() -> list[object]:
    upper = pd.DataFrame({"group": ["a", "b"], "rows": [30, 200], "share": [0.13, 0.87]})
    return [
        "\n".join(
            cost_by_group.sentence(
                GroupCosts(upper.assign(non_private_right=right, clipped=clipped, lost=lost.mean(axis=0)), lost)
            )
            for right, clipped in (([0.7, 0.9], [0.4, 0.2]), ([0.9, 0.9], [0.2, 0.2]), ([0.9, 0.7], [np.nan, np.nan]))
            for base in ([0.08, 0.02], [0.02, 0.08], [0.03, 0.03])
            for spread in (0.0, 0.01, 0.3)
            for lost in [np.add(base, spread * np.eye(2 if spread else 1, 2))]
        ),
        " ".join(
            f"{over_epsilon._value(m, 0.123)} {over_epsilon._apart(m, 0.123)} {over_epsilon._apart(m, 0.123, unit=False)}"
            for m in ("accuracy", "mean_score")
        ),
        mock.patch.object(over_epsilon.tasks, "current_result", lambda *given, **_: shares(given[2]))(over_epsilon.compute)(
            dpviz.RunSpec("teaching", mechanism="dp-gd", seeds=2, seed=66101), over_epsilon.Grouping("kind"), None
        ),  # of a run that no other test trains
        cost_by_group.sentence(
            GroupCosts(
                pd.DataFrame({"group": ["a"], "rows": 30, "non_private_right": 0.9, "lost": 0.1}), np.array([[0.1], [0.2]])
            )
        ),
        [
            [one.title, *one.values, *one.words]
            for clipped in ([0.3, np.nan], [np.nan, np.nan])
            for one in cost_by_group._panels(
                pd.DataFrame(
                    {"non_private_right": [0.9, 0.72], "lost": [0.03, -0.012], "share": [0.13, 0.87], "clipped": clipped}
                )
            )
        ],
        "\n".join(
            refusal(lambda text=text, read=read: read.append(over_epsilon.CUTS.read(text)))
            or f"{over_epsilon.CUTS.write(*read)}: {over_epsilon.CUTS.knob.in_words(*read)}"
            for text in ("30, 45.5", "45,30", "30,30", "nan,3", "x", "-1e9")
            for read in [[]]
        ),
        "\n".join(
            refusal(lambda some=some: over_epsilon.CUTS.knob.check("Cuts", some))
            for some in ([1.0, np.nan], "x", 3.0, (2.0, 5.0), [5.0, 2.0])
        ),
        [
            over_epsilon.is_number(dpviz.RunSpec(name), column)
            for name, column in (("teaching", "x1"), ("teaching", "kind"), ("teaching", "none"), ("gone", "x1"))
        ],
    ]


def guarantees_examples() -> list[object]:
    specs = [dpviz.RunSpec("teaching", mechanism=m, epsilon=e) for m, e in (("dp-gd", 0.7), ("dbdp", 2.0), ("cms-output", 1.0))]
    found = [
        *(Guaranteed(s, calibration_of(s)) for s in specs),
        Guaranteed(replace(specs[0], mechanism="dp-sgd"), None, "no proof"),
    ]
    scores = {"dp-gd": pd.DataFrame({"accuracy": [0.7, 0.8, 0.95]}), "cms-output": pd.DataFrame({"accuracy": [0.9]})}
    methods = ranking.lines(Measured(found, scores, pd.DataFrame(), {"cms-output": {"accuracy": 0.85}}), METRICS["accuracy"])
    names, spec = (
        {n: dpviz.RunSpec("teaching", mechanism=n, seeds=2) for n in ("dp-gd", "dbdp", "majority")},
        replace(specs[0], epsilon=1.0, seeds=2),
    )
    return [
        "\n".join(" ".join(table.proved(methods, one.spec)) for one in found[:3]),
        "\n".join(
            " ".join(table.tolerated(methods, replace(specs[0], mechanism=m, epsilon=e), Attacker.parse("advantage=0.3")))
            for m, e in (("dp-gd", 0.6966), ("dp-gd", 0.7034), ("dp-gd", 0.69), ("dp-gd", 0.71), ("dp-sgd", 1.0), ("nsgd", 1.0))
        ),
        table.table(methods, METRICS["accuracy"]),
        " | ".join(one.label for sort in table.SORTS for one in table.order_methods(methods, sort, METRICS["accuracy"])),
        "\n".join(" ".join(table._row(one, [methods[1].condition], METRICS["accuracy"])) for one in methods if one != methods[3]),
        [[one.mean, one.error, one.proved] for one in methods],
        "\n".join(
            view(
                table.other_run,
                [ns(status="proved", mean=mean) for mean in (0.7, 0.8, 0.9, np.nan)],
                ns(cost=ns(metric=METRICS[m], mean=0.8), spec=spec),
            )
            for m in ("accuracy", "log-loss")
        ),
        "\n".join(
            " | ".join(
                table._row(
                    ns(
                        one=ns(calibration=calibration_of(spec)),
                        condition="",
                        sign="✓",
                        status="proved",
                        proved=0.7,
                        label="L",
                        values=np.array(values),
                        mean=mean,
                    ),
                    [],
                    METRICS[m],
                )
            )
            for values, mean, m in (
                ([0.7], 0.7, "accuracy"),
                ([0.7, 0.8], 0.75, "accuracy"),
                ([0.7, 0.8], np.nan, "accuracy"),
                ([], np.nan, "accuracy"),
                ([0.7, 0.8], 0.75, "log-loss"),
            )
        ),
        "\n".join(
            view(
                table._guessing,
                ns(
                    poor={
                        "dp-gd": {"f1": ns(fix="Fix.")},
                        "dbdp": {"accuracy": ns(fix="Fix."), "f1": ns(fix="Other.")},
                        "majority": {"f1": ns(fix="Fix.")},
                    },
                    baselines=pd.DataFrame({"accuracy": [0.55], "f1": [0.5]}, ["majority"]),
                ),
                [ns(one=ns(spec=names[name]), label=name) for name in ("dp-gd", "dbdp", "majority")],
                METRICS[m],
            )
            for m in ("accuracy", "f1", "log-loss")
        ),
    ]


def sensitivity_examples() -> list[object]:
    s = get_model("logistic").setting(320, 3, 0.01)
    b = dpviz.RunSpec(mechanism="rsgd", params={"epochs": 20, "batch_size": 50, "step_size": 1.5}).build()
    t, r = b.sensitivity_trace(s), dpviz.RunSpec(mechanism="rsgd-ar", params={"batch_size": 91}).build().sensitivity_trace(s)
    specs, theme = {n: dpviz.RunSpec("teaching", mechanism=n, seeds=2) for n in ("dp-gd", "cms-output")}, style.LIGHT
    spec = specs["dp-gd"]
    return [
        "\n".join(
            (
                explanation.final_terms(t, s),
                explanation.averaging(t),
                explanation.averaging(t, 0.3),
                explanation.permutation(b.releases(s), dpviz.Budget(1.0, 1e-05), t),
                explanation.iteration(b.releases(s), b.noise_in_steps(s), dpviz.Budget(1.0, 1e-05)),
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
        [recursion._thin(one, most) for one in (t, r) for most in (4000, 7)],
        explanation.change(1.2, 1.0) + explanation.change(0.996, 1.0) + explanation.change(1.0, 1.0),
        "\n".join(
            mock.patch.object(
                scaling.tasks,
                "observe",
                lambda *given, ask, **more: [page.st.code(f"{given[:2]} {more['given']} {ask}"), [None] * 2][1],
            )(view)(scaling._retrained, specs[name], scaling.scaling.axis(specs[name], axis), **state)
            for name, axis in (("cms-output", "n"), ("cms-output", "lam"))
            for state in ({}, {"sizes": "large"})
        ),
        explanation.permutation(None, dpviz.Budget(1.0, 1e-5), None),
        "\n".join(
            mock.patch.multiple(
                recursion,
                setting_of=lambda _: ns(n=7),
                calibration_of=lambda one, a=a, value=value, query=query: ns(
                    sensitivity=a if one.mechanism == "dbdp" else value, query=query
                ),
            )(mock.patch.object(recursion.scaling, "used_sensitivity", lambda _, n, more=more: n * more)(view))(
                recursion.headline, spec, **state
            )
            for value, query, more, a, state in (
                (0.5, "the minimiser", 0.001, 0.5, {}),
                *(
                    (value, query, more, a, {"pinned": "dataset=teaching&mechanism=dbdp"})
                    for value, query, more, a in (
                        (0.5, "a, b", np.nan, 0.5003),
                        (0.5, "one two three four five six seven eight nine ten eleven", 0.1, 0.1),
                        (np.nan, "x", 0.1, 0.1),
                        (0.5, "x", 0.1, 0.0),
                    )
                ),
            )
        ),
        "\n".join(
            mock.patch.object(excess_risk, "setting_of", lambda _, n=n: ns(n=n, m=2, d=2))(
                mock.patch.multiple(
                    excess_risk.tasks,
                    note_before=lambda section: page.st.code(section),
                    observe=lambda *given, ask, found=found, **_: [page.st.code(f"{given[:2]} {ask}"), found][1],
                )(view)
            )(excess_risk._measured, spec, excess_risk.excess_risk.AXES[axis])
            for n, axis, found in (
                (excess_risk.LIGHT // 2, "epsilon", (None, False)),
                (excess_risk.LIGHT // 2 - 1, "epsilon", ([1], False)),
                (10, "n", ([1], True)),
            )
        ),
        "\n".join(
            mock.patch.object(excess_risk.excess_risk, "share_of_the_start", lambda _, share=share: share)(view)(
                excess_risk._regime, ns(spec=one, formulas=None)
            )
            for one in (spec, specs["cms-output"])
            for share in (None, 0.05, 0.049, 0.7)
        ),
        "\n".join(
            mock.patch.multiple(explanation, mixture_sigma=lambda *_, mixed=mixed: mixed, gaussian_mu=lambda _: 2.0)(
                explanation.permutation
            )(
                explanation.Mixture((3.0, 2.4), (0.5, 0.5)),
                dpviz.Budget(1.0, 1e-5),
                ns(
                    event=np.array(["start", "update", "update", last]),
                    epoch=np.array([0, 1.0, 1.5, 2.0]),
                    rho=np.array([1, 0.9, 0.8, 0.7]),
                ),
            )
            for mixed, last in ((1.456, "average"), (1.454, "update"), (1.276, "update"), (1.274, "average"))
        ),
        view(recursion.algorithm_choice(dpviz.RunSpec("teaching", mechanism="cms-output", seeds=2)).draw),
        mock.patch.multiple(  # values of which some are missing, all are, none is above 0
            scaling,
            _worst_cases=lambda spec, over, _: scaling.scaling.bounds(spec, over),
            _retrained=lambda _, over: pd.DataFrame(
                {
                    "x": over.grid[:2],
                    "adversarial": [0.02, np.nan],
                    "worst-case data": np.nan,
                    "random": 0.0,
                    "flipped": [0.02, 0.01],
                }
            ),
        )(view)(scaling.curves, specs["cms-output"], theme, scaling.axis_field(specs["cms-output"])),
        mock.patch.multiple(
            excess_risk.tasks,
            last_run=lambda _: spec,
            observe=lambda *_, **__: ([ns(mean=0.0)], False),
            note_before=lambda _: None,
        )(view)(excess_risk._shown, spec, theme, excess_risk.excess_risk.AXES["n"])
        + view(excess_risk._shown, replace(spec, model="mlp-4"), theme, excess_risk.excess_risk.AXES["d"]),
        " ".join(explanation.change(new, 1.0) for new in (1.0004, 1.0006, 0.9993)),
        "\n".join(
            explanation.final_terms(
                ns(
                    event=np.array(["start", *["update"] * updates]),
                    step=np.array([0, 0.7, 0.3])[: updates + 1],
                    rho=np.array([1, rho, 0.8])[: updates + 1],
                    value=np.array([[0, 0], [0.2, 0.3], [0.1, 0.4]])[: updates + 1],
                    expands=np.array([[False, False], [True, True], [False, True]])[: updates + 1],
                    epoch=np.array([0, 0.2, 0.7])[: updates + 1],
                ),
                s,
            )
            for updates in (1, 2)
            for rho in (0.91234567, 1.0, 1.25)
        ),
        "\n".join(
            explanation.averaging(
                ns(event=np.array(["start", "update", "average"]), value=np.array([[0], [before], [after]]), restarts=restarts),
                other,
            )
            for before, after in ((0.4, 0.3), (0.3, 0.3), (0.3, 0.4))
            for restarts in (True, False)
            for other in (None, after, after + 0.1)
        ),
        [
            excess_risk.Found(
                spec,
                excess_risk.excess_risk.AXES["n"],
                [ns(n=10, mean=0.5), ns(n=40, mean=0.3)],
                [dict.fromkeys(excess_risk.FORMULAS, np.nan) | known for known in (first, second)],
                [],
            ).lines
            for key in [next(iter(excess_risk.FORMULAS))]
            for first, second in (({}, {}), ({key: 0.5}, {}), ({key: 0.5}, {key: 0.25}))
        ],
    ]
