"""Examples of `dpviz.dashboard`."""

import types
from collections.abc import Iterator
from dataclasses import replace
from typing import Any
from unittest import mock

import numpy as np
import pandas as pd
from support_kept import refusal, shares, view

import dpviz
from dpviz.auditing.runs import one_run_of
from dpviz.common.validate import InvalidInput
from dpviz.dashboard.accounting import comparison, ledger
from dpviz.dashboard.audit import all_mechanisms, attack, one_training, ordinary_rows
from dpviz.dashboard.components import charts, panels
from dpviz.dashboard.data import dataset, form, upload
from dpviz.dashboard.frame import address, fields, guessing, links, page, pinned, ranking, server, session, sidebar
from dpviz.dashboard.groups import cost_by_group, over_epsilon
from dpviz.dashboard.guarantees import table
from dpviz.dashboard.jobs import cached_runs, job, tasks, watching
from dpviz.dashboard.one_run import sections
from dpviz.dashboard.rows import finder, influence_map, person, rows_with_noise, selection
from dpviz.dashboard.sensitivity import excess_risk, explanation, recursion, scaling
from dpviz.dashboard.story import playing, scenes
from dpviz.dashboard.trade_off import curves, method_comparison, presets, running, settings, tuning
from dpviz.experiments.run.metrics import METRICS
from dpviz.experiments.run.setup import calibration_of, setting_of
from dpviz.experiments.studies import inspected, noise_comparison
from dpviz.experiments.studies.cost_by_group import GroupCosts
from dpviz.experiments.studies.guarantees import Guaranteed, Measured
from dpviz.figures import style
from dpviz.mechanisms.attack import Attacker
from dpviz.models import get_model
from dpviz.privacy.budget import Budget
from dpviz.spending.ledger import Contents
from dpviz.spending.of_run import entry_of


def sensitivity_explanation_examples() -> Iterator[Any]:
    s = get_model("logistic").setting(320, 3, 0.01)
    b = dpviz.RunSpec(mechanism="rsgd", params={"epochs": 20, "batch_size": 50, "step_size": 1.5}).build()
    t, r = b.sensitivity_trace(s), dpviz.RunSpec(mechanism="rsgd-ar", params={"batch_size": 91}).build().sensitivity_trace(s)
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
        [recursion._thin(one, most) for one in (t, r) for most in (4000, 7)],
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
        [  # jobs are the same ones at another number of noise draws
            [len({*keys[0::3], *keys[1::3]}), len({*keys[0::3], *keys[2::3]})]
            for start, others in (
                (
                    attack.attack,
                    [attack.Asked("two-rows", *rest) for rest in ((1, 2, 40), (2, 1, 40), (None, 2, 40), (1, 2, 50))],
                ),
                (ordinary_rows.attack, [64, 128]),
            )
            for same_key in [mock.patch.object(ordinary_rows.tasks, "attack_job", lambda key, *rest: [key, *rest[1:]])(start)]
            for specs in [[dpviz.RunSpec("teaching", epsilon=e, seeds=k) for e, k in ((1.0, 1), (1.0, 2), (2.0, 1))]]
            for keys in [[str(same_key(spec, asked)) for asked in others for spec in specs]]
        ],
    ]


def frame_examples() -> Iterator[Any]:
    yield from [
        [sidebar._offered(m) for m in ("logistic", "svm", "mlp")],
        [
            f"dpviz.{name}" in loaded
            for loaded in [set[str]()]
            if mock.patch.object(server.importlib, "import_module", loaded.add)(server._load_other_pages)() is None
            for name in ("dashboard.jobs", "dashboard.groups.scores", "papers.claims.catalogue", "cli.run")
        ],
        [
            mock.patch.object(address.st, "session_state", {address._OWN: {"row": "3"}})(address.complete)(query)
            for query in (
                {},
                {"mechanism": "dp-gd", "epsilon": "2", "dp-gd.steps": "7", "row": "4", "want": "70"},
                {"dataset": "iris", "lesson": "attack", "rsgd.epochs": "3"},
            )
        ],
        [address._known(key) for key in ("epsilon", "row", "dp-gd.steps", "dp-gd.epochs", "x.steps", "steps", "v")],
    ]


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


def people_examples() -> Iterator[Any]:
    runs = [
        (inspected.inspect(s), inspected.row_influence(s))
        for m, seeds in (
            ("dp-gd", 2),
            ("pidp-sgd", 1),
            ("dbdp", 3),
            ("renyi-filter", 2),
            ("input-perturbation", 2),
            ("dp-sgd", 2),
        )
        for s in [dpviz.RunSpec("teaching", mechanism=m, seeds=seeds, epsilon=0.5)]
    ]
    rule = next(view for view in runs[1][0].views or ())
    yield from [
        "\n".join(
            " | ".join(
                (
                    influence_map.noisy_rows_in_words(r),
                    influence_map.noisy_rows_in_words(r, brief=True),
                    influence_map.label_of(r, 7),
                    person._why(r, i, 7),
                    person._received(r, 7),
                    person._elsewhere(r),
                    *(f"{name}: {' / '.join(values)}" for name, values in person._verdict(r, [3, 7])),
                    *(f"{name}: {' / '.join(values)}" for name, values in person._noise(r, [3, 7])),
                    *(f"{name}: {' / '.join(values)}" for name, values in person._individual(r, [3, 7])),
                    *(rows_with_noise._why(view) for view in r.views or ()),
                    rows_with_noise._drawn(r, 7),
                )
            )
            for r, i in runs
        ),
        "".join(
            rows_with_noise._why(replace(rule, statistic=np.array(v), low=low, high=high, passes=np.array(v) <= high))
            for v, low, high in (
                ([3.0, 4.0], 0.0, 2.0),
                ([3.0, 4.0], 5.0, 2.0),
                ([3.0, 4.0], 0.0, 9.0),
                ([3.0, 4.0], 0.0, -np.inf),
            )
        ),
        [np.flatnonzero(influence_map.differs(a, b)) for (a, _), (b, _) in ((runs[1], runs[2]), (runs[0], runs[4]))],
        [influence_map.table(*run) for run in runs[:3]],
        "\n".join(
            view(influence_map.other_run, a, b)
            for a, b in ((runs[k][0], runs[j][0]) for k, j in ((1, 2), (1, 3), (0, 1), (4, 0)))
        ),
        view(finder._found, *runs[0], None, np.array([], int)),
        " ".join(map(person._ordinal, (1, 2, 3, 4, 11, 12, 13, 21, 102, 1113))),
        " ".join(person.limits(*ends) for ends in ((-np.inf, 0.5), (0.2, 0.9), (0.0, 0.3), (-np.inf, -np.inf))),
    ]


def words_examples() -> Iterator[Any]:
    outcomes = [
        cached_runs.outcome(dpviz.RunSpec(d, mechanism=m, seeds=2, epsilon=e))
        for d, m, e in (
            ("teaching", "dp-gd", 0.5),
            ("teaching", "cms-output", 2.0),
            ("teaching", "dbdp", 2.0),
            ("iris", "dp-gd", 0.5),
        )
    ]
    cal, limit = outcomes[0].calibration, dpviz.Budget(0.9, 1e-5)
    entry = entry_of(outcomes[0].spec.build(), setting_of(outcomes[0].spec), cal, "this run")
    held = [Contents("people", "row", cal.neighbouring, limit, (entry,) * k) for k in (0, 1, 4)]
    upper = pd.DataFrame({"group": ["a", "b"], "rows": [30, 200], "share": [0.13, 0.87]})
    yield from [
        "\n".join(sections.sentence(a, b) for a in outcomes for b in outcomes),
        "\n".join(" | ".join(sections._settings(a.spec, b.spec)) for a in outcomes[:2] for b in outcomes),
        " ".join(pinned.difference_from(METRICS[m], v, 0.5) for m in ("accuracy", "log-loss") for v in (0.4, 0.5, 0.61)),
        [
            attack._ceiling(types.SimpleNamespace(counts=types.SimpleNamespace(trials=t), requested=500, runs=r, **rest))
            for t, r in ((0, 0), (20, 40), (250, 500))
            for rest in [{"calibration": cal, "counts_confidence": 0.9}]
        ],
        " ".join(
            ledger._verdict(total, Budget(total.budget.epsilon * share, 1e-5))
            for total in [held[2].total()]
            for share in (1 - 5e-10, 1 - 1.5e-9)
        ),
        "\n".join(ledger.sentence(one, total, e) for one in held for total in [one.total()] for e in (None, limit, one.limit)),
        "\n".join(" | ".join(comparison._published(row)) for row in noise_comparison.published_noise(outcomes[0].spec)),
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
        " | ".join(map(sidebar.dataset_label, ("breast-cancer", "census-5000", "data/adult.csv", "wine"))),
    ]


def views_examples() -> Iterator[Any]:
    """Elements of views in states that no kept page has, and what callbacks of controls leave in the session's state."""
    ns, problem, theme, metric = (
        types.SimpleNamespace,
        InvalidInput("steps", "must be *whole*", "Give 3."),
        style.THEMES["light"],
        METRICS["accuracy"],
    )
    specs = {n: dpviz.RunSpec("teaching", mechanism=n, seeds=2) for n in ("dp-gd", "cms-output", "dbdp", "ldp-duchi", "majority")}
    spec, chosen, found = (
        specs["dp-gd"],
        settings.Choices(("dp-gd",), {}),
        [Guaranteed(specs[n], calibration_of(specs[n])) for n in ("dp-gd", "cms-output")],
    )
    scores, grid = (
        {"dp-gd": pd.DataFrame({"accuracy": [0.8, 0.9]}), "cms-output": pd.DataFrame({"accuracy": [0.7]})},
        tuning.tuning.grid(spec, "step_size", "lam"),
    )
    yield from [
        "\n".join(
            view(sidebar._dataset_typed, dataset=name, published_split=True, **{address._WIDGETS: {"dataset": "wine"}})
            for name in ("iris", "census-5")
        ),
        "\n".join(view(sidebar._epsilon_typed, epsilon_typed=text, epsilon=1.0) for text in (" 0.37", " ", "-1")),
        "\n".join(
            [
                view(sidebar._people_typed, dataset="census-500", **{sidebar._PEOPLE: 700}),
                *(view(sidebar._units_typed, **{sidebar._UNITS: units}) for units in (8, None)),
                view(sidebar._refuse, "kst-objective", "mlp", ["dp-sgd", "dp-gd"]),
                view(person._most_influential, **{selection._GROUP: np.arange(3)}),
                view(tuning._apply, spec, grid, 1, 0),
                view(
                    presets._start,
                    min(presets.catalogue.PANELS, key=lambda name: presets.catalogue.PANELS[name][1].rows),
                    spec,
                    **{settings._LAST: ("dp-gd", {})},
                ),
                *(
                    view(tuning._pair, spec, ("step_size", "lam"), **{"own.tune0": a, "own.tune1": b})
                    for a, b in (("steps", "lam"), ("step_size", "lam"))
                ),
            ]
        ),
        "\n".join(
            view(selection.from_map, map=ns(selection=ns(points=[{"customdata": i} for i in ids] + [{}], box=box, lasso=[])))
            for ids, box in (([7], []), ([7, 3], []), ([], []), ([4], [1]), ([5, 2, 5], [1]))
        ),
        "\n".join(
            view(selection.from_table, "t", t=ns(selection=ns(rows=rows)), **{selection._SHOWN: {"t": [5, 9]}})
            for rows in ([1], [], [2])
        ),
        "\n".join(
            view(charts._tell, "k", lambda data: panels.text(f"{data}"), k=ns(selection=ns(points=some)))
            for some in ([], [{"customdata": [3]}, {}])
        ),
        "\n".join(
            view(playing.step, **{playing._LEFT: left, playing._SHOWN: shown, "epsilon": 1.0})
            for left in ((), (2.0, 3.0))
            for shown in (None, 1.0, 0.5)
        ),
        "\n".join(view(playing._move, by, epsilon=e) for by in (-1, 1) for e in (sidebar.EPSILONS[0], 1.0, sidebar.EPSILONS[-1])),
        "\n".join(
            [
                view(lambda: panels.problem(problem, "It is ignored.", grave=True), mechanism="dp-gd"),
                view(panels.problem, problem),
                view(panels.failure, "too *much*", "Take less."),
                *(
                    view(draw, "words of *one* line")
                    for draw in (panels.title, panels.text, panels.warning, panels.note, panels.empty)
                ),
            ]
        ),
        "\n".join(
            view(tuning._cost, one, tuning.tuning.grid(one, *tuning.tuning.first_pair(one)))
            for one in specs.values()
            if tuning.tuning.first_pair(one)
        ),
        "\n".join(
            view(tuning._private, one, None)
            for one in (replace(spec, row_scaling="standardised"), replace(spec, ranges="private"))
        ),
        view(tuning.section, specs["majority"], chosen, theme),
        "\n".join(
            view(method_comparison.headline, ns(choices=chosen, spec=spec, overlay=a, ranked=ns(over=True)), one)
            for a in (None, ns(spec=specs["dbdp"], cost=ns(mean=0.82, metric=metric)))
            for top in (np.nan, 0.55, 0.55 + method_comparison.LEAST, 0.95)
            for base in [pd.DataFrame({"accuracy": [top, 0.55]}, ["non-private", "majority"])]
            for one in [Measured(found, scores, base, {})]
        ),
        [
            curves._overlay(ns(overlay=a, choices=ns(show=show)))
            for values in [
                {
                    "optimality_gap": np.array([0.2, 0.4]),
                    "objective": np.array([1.0, 2.0]),
                    "train_accuracy": np.array([0.7, 0.8]),
                }
            ]
            for a in (None, ns(spec=spec, cost=ns(mean=0.82, metric=metric), **values))
            for show in ("accuracy", "optimality_gap", "objective", "train_accuracy", "log_loss")
        ],
        view(running.start, ns(), spec, replace(chosen, methods=()), theme)
        + view(running.start, ns(), replace(spec, model="mlp-4"), replace(chosen, methods=("kst-objective",)), theme),
        "\n".join(
            attack._apart(result, result.calibration.claimed_budget, by, True)
            for result in [dpviz.audit_run(replace(spec, seeds=1), runs=40)]
            for by in ("", attack.BY_BOUND, attack.BY_NOISE, "x")
        ),
        mock.patch.object(
            ordinary_rows.tasks,
            "current_result",
            mock.Mock(
                return_value=pd.DataFrame(
                    {
                        "epsilon": [3.0, 1.0, 3.0, 1.0, 1.0],
                        "false_alarms": [ordinary_rows.RATES[0]] * 4 + [0.3],
                        "detections": [0.02, 0.015, 0.05, 0.01, 0.9],
                        "low": 0.01,
                        "high": [0.03, 0.02, 0.07, 0.02, 0.95],
                        "allowed": 0.06,
                        "non_private": [0.1, 0.08, 0.09, 0.07, 1.0],
                    }
                )
            ),
        )(view)(ordinary_rows._over, ns(spec=spec), spec, theme, 64),
        "\n".join(
            mock.patch.multiple(
                scenes.charts, still_chart=lambda key, make, _, *rest, **__: page.st.code(f"{key} {rest} {make(0)}")
            )(
                mock.patch.object(scenes.pictures, "total_bars", lambda sums, count, one, *_: (len(sums), count, one))(
                    mock.patch.object(scenes.tasks, "current_result", lambda *_, sums=sums, **__: sums)(view)
                )
            )(scenes.composition_scene, cached_runs.outcome(replace(specs[name], epsilon=0.5)), theme, trainings=count)
            for name, sums, count in (
                ("dp-gd", (0.5, 0.71, 0.9, *range(1, 8)), "3"),
                ("dp-gd", (0.5, *[np.inf] * 9), "2"),
                ("dp-gd", None, "2"),
                ("majority", (0.5,), ""),
            )
        ),
        "\n".join(
            mock.patch.multiple(scenes.inspected, row_influence=lambda _, a=a: ns(at_minimum=a), cheap=lambda _, b=b: b)(view)(
                scenes.one_leaves, ns(spec=spec), theme
            )
            for a, b in ((False, True), (True, False))
        ),
        "\n".join(
            view(one.draw, **state)
            for one, value in (
                (fields.number("q", "Rate", 0.1, 7.0, 0.3, "Help."), "0.7"),
                (fields.number("k", "Count", 2, 9, 3, integer=True), "5"),
                (fields.switch("s", "On", "Help."), "true"),
                (fields.switch("s", "On", "", True), "false"),
                (fields.choice("c", "Which", {"a": "one", "b": "two"}, "a"), "b"),
                (fields.choice("c", "Which", {str(k): f"no. {k}" for k in range(5)}, "3", few=5), "1"),
                (fields.choice("c", "Which", {str(k): f"no. {k}" for k in range(5)}, "3"), "7"),
                (fields.row("r", "Row", spec, "Help."), "1"),
                (fields.Field("r", fields.Several(label="Some", help="", options=("a", "b", "c")), ("a", "c")), "b,a"),
                (fields.Field("t", fields.Typed(label="Text", help=""), ""), " some text "),
            )
            for state in ({}, {one.key: value})
        ),
        "\n".join(
            view(one._changed, **{one._widget: value})
            for one, value in (
                (fields.Field("t", fields.Typed(label="Text", help=""), ""), "  ab "),
                *((fields.number("q", "Rate", 0.1, 7.0, 0.3), rate) for rate in (9.0, 0.3, 2.5)),
            )
        ),
        "\n".join(
            refusal(lambda one=one, text=text: one.parse("r", text)) or one.in_words(one.parse("r", text))
            for one in (
                fields.RowId(label="Row", help=""),
                fields.RowId(label="Row", help="", ids=np.array([2, 5, 9]), n=8, names=pd.Series(["u", "v", "v"], [5, 7, 9])),
            )
            for text in ("3", "5", " u", "v", "9", "8", "7", "-1", "x")
        ),
        [one.check("row", value) for one in [fields.RowId(label="Row", help="")] for value in (None, 3, "4")],
        "\n".join(
            upload._balance(pd.Series(labels), positive, above)
            for labels, positive, above in (
                ([3, 5, None, 9], (), 5.0),
                (["x", "y", "x"], ("x",), None),
                ([None], (), None),
                ([1] * 19 + [2], ("2",), None),
            )
        )
        + " ".join(upload.words.counted(number, "row") for number in (0, 1, 2000)),
        "\n".join(
            view(upload._positive, pd.Series(values, name="t"))
            for values in ([*range(21)], [*range(20)], list("bab"), list("bac"))
        ),
        "\n".join(
            view(upload._what_is_left, rows, edited, upload.TableSpec("y", person=person, person_rows=2))
            for rows in (
                pd.DataFrame({"a": [1, None, 3, 4], "b": ["u", None, None, "v"], "p": list("iiji"), "y": [0, 1, None, 1]}),
                pd.DataFrame({"a": [1.0], "b": ["u"], "p": ["i"], "y": [1]}),
            )
            for person in (None, "p")
            for use, fill in (
                ([True] * 3, ["", "", ""]),
                ([True, False, True], ["2", "", ""]),
                ([True, True, False], ["", " v ", ""]),
            )
            for edited in [form.describe(rows.drop(columns="y")).assign(use=use, **{"gap value": fill})]
        ),
        "\n".join(
            mock.patch.object(upload, "doubtful_words", lambda *_, columns=columns: {"?": {c: 1000 + ord(c) for c in columns}})(
                mock.patch.object(upload.st, "radio", lambda *given, answer=answer, **_: [page.st.code(f"{given}"), answer][1])(
                    view
                )
            )(lambda: page.st.code(f"{upload._gap_words(None, 'y')}"))
            for columns in ("ay", "abcdef", "abcdefg")
            for answer in ("a gap", "a value")
        ),
        "\n".join(
            str(form.spec_of(table.assign(**chosen), form.TableSpec("y", person="p", missing_in={"b": ("?",)}), ("1",), None))
            for table in [
                form.describe(
                    pd.DataFrame({"a": [1.0, 7.0, None, 44.0] * 30, "b": [*"uvwu"] * 30, "p": "i", "c": np.arange(120)})
                )
            ]
            for chosen in (
                {},
                {"use": True, "round": [True, False, False, False]},
                {"use": True, "low": [0.5, None, None, None], "high": [9.0, None, None, None], "round": True}
                | {
                    "gap value": ["3 ", " u", "", ""],
                    "categories": ["", "u| v|", "", ""],
                    "words for gaps": ["9|", "", "", "-1"],
                },
            )
        ),
        "\n".join(
            mock.patch.multiple(
                links, pages=lambda: {"a.py": "Audit", "c.py": "Claims"}, claims_of=lambda _, count=count: range(count)
            )(mock.patch.object(links.st, "page_link", lambda *given, **more: page.st.code(f"{given} {more}"))(view))(
                links.examine, "dp-gd", name, **state
            )
            for count, name, state in ((0, "", {}), (1, "DP-GD", {}), (2, "", {address._OWN: {"row": "3"}}))
        ),
        "\n".join(
            mock.patch.object(links, "pages", lambda some=some: some)(
                mock.patch.object(links.st, "page_link", lambda *given, **more: page.st.code(f"{given} {more}"))(view)
            )(links.links, {"epsilon": "2", links.TASK: "x"})
            for some in ({"app.py": "Story"}, {"app.py": "Story", "pages/3.py": "Groups", "pages/5.py": "Audit"})
        )
        + " ".join(map(links.title, ("3_Person", "91_Claims", "One_model", "12 a_b"))),
        "\n".join(
            f"{now} {watching.text(now, 'so far')}"
            for one in [job.Job("key", None)]
            for state, done in (("RUNNING", 0.02), ("RUNNING", 0.03), ("RUNNING", 0.25), ("QUEUED", 0.25), ("DONE", 0.25))
            if one.__dict__.update(_state=job.State[state], _share=done, _since=100.0) is None
            for now in [mock.patch("time.monotonic", mock.Mock(return_value=107.0))(one.status)()]
        ),
        "\n".join(
            mock.patch.multiple(tasks.watching, state=lambda one: one.state, message=lambda _, doing: doing)(view)(
                tasks.controls, ns(state=job.State[state], done=0.37, results=results, problem=failed), "Training"
            )
            for state, results, failed in (
                *(("RUNNING", [], None), ("CANCELLED", [], None), ("CANCELLED", [1], None), ("FAILED", [], ("no end", "Stop."))),
                ("DONE", [3], None),
            )
        ),
        "\n".join(
            curves._summary(
                ns(choices=ns(show=show, band=band), sweep=ns(epsilons=[0.1, 1.0, 2.0]), spec=ns(model=model)),
                [ns(points=points.assign(mechanism=m, exact=exact, status=status), dim=dim) for m, exact, status, dim in drawn],
            )
            for points in [
                pd.DataFrame({"epsilon": [0.1, 1.0, 2.0], "mean": [0.61, 0.7, 0.823], "low": [-0.2, 0.6, 0.8], "high": 0.9})
            ]
            for show, band, model, drawn in (
                ("accuracy", "draws", "logistic", [("dp-gd", False, "proved", False), ("dbdp", False, "claim", True)]),
                ("optimality_gap", "mean", "mlp-4", [("dp-gd", True, "claim", False)]),
                ("log_loss", "mean", "logistic", [(m, False, "proved", True) for m in sidebar._offered("svm")[1:7]]),
                ("log_loss", "mean", "logistic", [(m, False, "proved", True) for m in sidebar._offered("svm")[1:8]]),
                ("optimality_gap", "draws", "logistic", [("dp-gd", True, "proved", False)]),
            )
        ),
        "\n".join(
            ", ".join(
                presets._changes(
                    ns(
                        values={"dataset": "iris", "model": "svm", "lam": 0.1, "seeds": 3, "delta": delta}
                        | {"mechanisms": {"dp-gd": {"steps": 7}}},
                        figure=ns(low=0.1, high=2.0),
                    ),
                    ns(
                        sweep=ns(dataset=name, model="svm", lam=0.1, seeds=draws, named=named, delta=1e-5),
                        choices=ns(low=low, high=2.0),
                    ),
                )
            )
            for delta, name, draws, named, low in (
                (None, "iris", 3, {"dp-gd": {"steps": 7}}, 0.1),
                (1e-6, "teaching", 4, {"dp-gd": {"steps": 8}}, 0.2),
                (1e-5, "iris", 3, {"dp-sgd": {}}, 0.1),
                (None, "iris", 3, {"dp-gd": {}}, 0.1),
            )
        ),
        "\n".join(
            running.refused_cells(
                [ns(spec=specs[name]) for name in ("dp-gd", "dbdp")], [(0, 2.0, problem), (0, 0.5, problem), (1, 3.0, problem)]
            )
        ),
        "\n".join(
            mock.patch.object(running, "AUTOMATIC", most)(
                mock.patch.object(running.watching, "watch", lambda task, _: page.st.code(f"{len(task.cells)} cells"))(view)
            )(running.start, ns(), spec, chosen, theme)
            for most in [320 * 2 * len(chosen.sweep(spec).epsilons)]
            for most in (most, most - 1)
        ),
        cost_by_group.sentence(
            GroupCosts(
                pd.DataFrame({"group": ["a"], "rows": 30, "non_private_right": 0.9, "lost": 0.1}), np.array([[0.1], [0.2]])
            )
        ),
        "\n".join(
            view(selection.map_rows, "i", ns(group=np.array([True, False, True]), people=[1]), **held)
            for held in ({}, *({selection._HELD: (name, 1, 2), selection._MADE: True} for name in "ij"))
        )
        + view(selection.set_group, np.array([3, 5])),
        "\n".join(
            view(lambda error=error: page.st.code(f"{page.report_stop(error)}"))
            for error in (FloatingPointError("no end."), problem, ValueError("x"))
        ),
        "\n".join(
            [
                *(refusal(lambda value=value: pinned.PINNED.knob.check("A", value)) for value in (None, 3, spec)),
                *(
                    refusal(lambda text=text: pinned.PINNED.knob.parse("A", text))
                    for text in ("x" * 50, "dataset=iris&mechanism=dp-gd")
                ),
                pinned.PINNED.knob.text(replace(spec, epsilon=2.0)) + pinned.PINNED.knob.in_words(replace(spec, epsilon=2.0)),
                *(view(pinned.controls, spec, **state) for state in ({}, {"pinned": "dataset=iris"})),
                view(pinned._swap, dpviz.RunSpec("iris", epsilon=3.0), spec),
                view(lambda: page.st.code(f"{pinned.outcome_beside(spec)} {pinned.other_run(spec)}"), pinned="dataset=iris"),
            ]
        ),
        [
            sidebar._trained_on({"dataset": name, "folds": folds, "published_split": split})
            for name, folds, split in (("teaching", 0, False), ("teaching", 5, False), ("teaching", -3, False), ("iris", 0, True))
        ],
        str([sidebar._rules(replace(spec, mechanism=name)) for name in ("rsgd", "dp-sgd", "majority")]),
        "\n".join(
            [
                mock.patch.object(dataset, "all_cards", list)(view)(dataset.cards, spec, **{dataset._FAILED: problem}),
                *(
                    view(dataset._card, ns(**known | more), replace(spec, dataset=name))
                    for known in [
                        {"title": "A set", "rows": 1234, "variant": "v", "label": "l", "licence": "c", "source": "s"}
                        | {"name": "teaching", "megabytes": 4, "steps": ["one *step*", "two"]}
                    ]
                    for name in ("teaching", "iris")
                    for more in (
                        {"state": "here"},
                        {"state": "here", "name": "census-300"},
                        {"state": "download", "rows": None, "name": "adult"},
                        {"state": "file", "name": None},
                        {"state": "here", "name": None},
                    )
                ),
                *(
                    mock.patch.object(dataset, "dataset_of", mock.Mock(side_effect=error))(view)(
                        lambda: page.st.code(f"{dataset.chosen_dataset(spec)}")
                    )
                    for error in (problem, MemoryError)
                ),
                *(
                    mock.patch.object(dataset, "resolve", lambda one: ns(n_train=one.seeds))(view)(
                        dataset.headline,
                        ns(n=n, d=d, intercept=True, name="census-500", published_test=aside),
                        replace(spec, published_split=split),
                    )
                    for n, d, aside, split in (
                        (400, 2, None, False),
                        (1234, 3, np.array([True, False, True]), True),
                        (40, 3, np.array([True, False, False]), False),
                    )
                ),
                view(
                    dataset.describe,
                    ns(y=np.array([1, -1, -1]), description="D.", source="S", d=1234),
                    replace(spec, epsilon=0.7),
                ),
            ]
        ),
        [dataset.majority(ns(y=np.array(some))) for some in ([1.0, -1, -1], [1.0, 1, -1, 1], [1.0])],
        "\n".join(
            mock.patch.object(dataset, "dataset_call", lambda *given: f"{given}")(
                mock.patch.object(dataset.repeat, "python_of", lambda *given: page.st.code(f"{given[1:]}"))(view)
            )(dataset.preprocessing, ns(**known | more), spec)
            for known in [
                {"declared": False, "preparations": [], "looked_at": ["a*b"] * 31, "name": "n", "label": ns(sentence="L *x*")}
                | {"remarks": ["R"], "notes": ["N *x*"], "lost": [ns(sentence="S")], "scaling": "largest", "intercept": True}
                | {"constant": 0.5}
            ]
            for more in (
                {},
                {
                    "looked_at": ["a"] * 30,
                    "label": None,
                    "remarks": [],
                    "notes": [],
                    "lost": [],
                    "scaling": "clip",
                    "constant": 1.0,
                },
                {"looked_at": (), "declared": True, "preparations": [ns(id="ranges")], "intercept": False, "scaling": "unit"},
            )
        ),
        [
            running.View.baselines(ns(spec=ns(epsilon=e), choices=ns(metric=metric)), some)
            for e in (1.0, 2.0, 3.0)
            for some in [
                pd.DataFrame({"epsilon": [0.5, 1, 2], "non_private_accuracy": [0.7, 0.8, 0.9], "majority_accuracy": 0.5})
            ]
        ],
        [
            [len(some), some[0].spec.epsilon]
            for sweep in [chosen.sweep(spec)]
            for e in (sweep.epsilons[1], 0.77)
            for some in [running._cells(sweep, sweep.epsilons[:3], e)]
        ],
        f"{tuning._table(grid, {0: pd.DataFrame({'a': [1, 2]}), 1: pd.DataFrame(), 3: pd.DataFrame({'a': [5]})})}",
        [
            tuning._present(one, grid)
            for one in (spec, replace(spec, lam=grid.values[1][2]), replace(spec, params={"step_size": 0.123}))
        ],
        "\n".join(
            mock.patch.object(
                scaling.tasks,
                "observe",
                lambda *given, ask, **more: [page.st.code(f"{given[:2]} {more['given']} {ask}"), [None] * 2][1],
            )(view)(scaling._retrained, specs[name], scaling.scaling.axis(specs[name], axis), **state)
            for name, axis in (("cms-output", "n"), ("cms-output", "lam"))
            for state in ({}, {"sizes": "large"})
        ),
        "\n".join(
            view(one.draw)
            for name in (
                *("claims.views", "one_run.views", "sensitivity.settings", "story.settings", "audit.attack"),
                *("accounting.comparison", "groups.over_epsilon", "guarantees.table"),
            )
            for one in server.importlib.import_module(f"dpviz.dashboard.{name}").fields_of(spec)
        ),
        [
            [sum(one.compute_once(k, lambda k=k: k) for k in (7, 7, *range(count))), len(one._made)]
            for count in (200, 201)
            for one in [running.SweepJob("key", [], None)]
        ],
        comparison._published(ns(in_use=None, published=None, mechanism=ns(label="X"), refusal="why")),
        "\n".join(
            mock.patch.multiple(
                comparison,
                setup_for=lambda _, m=m, base=base: ns(
                    baselines_in=lambda _: pd.DataFrame({m.column: base}, ["non-private", "majority"])
                ),
            )(
                mock.patch.object(comparison.metric, "chosen_metric", lambda _, m=m: m)(
                    mock.patch.object(
                        comparison.charts,
                        "chart",
                        lambda fig, *given, **_: page.st.code(
                            f"{given[:2]} {given[2]()} {fig.layout.xaxis.range} {fig.data[0].x} {fig.data[0].text} "
                            f"{fig.data[0].marker.line.width}"
                        ),
                    )(
                        mock.patch.object(
                            comparison.tasks,
                            "observe",
                            lambda *given, ask, m=m, values=values, **more: [
                                page.st.code(f"{given[:2]} {more['given']} {ask}"),
                                ({m.column: np.array(values)}, True),
                            ][1],
                        )(view)
                    )
                )
            )(
                comparison.usefulness,
                ns(run=spec, mechanism=ns(id="dp-gd"), calibration=ns(noise_scale=0.7)),
                theme,
                [ns(name=name, sigma=sigma, status=None) for name, sigma in (("A", 0.7), ("B", np.inf), ("C", 0.70008))],
            )
            for m, values, base in (
                (metric, [[0.7, 0.72], [0.6, 0.81]], [0.93, 0.52]),
                (METRICS["log-loss"], [[0.7, 0.72], [0.6, 0.81]], [0.33, np.nan]),
                (metric, [[0.7, 0.72]], [0.93, 0.52]),
                (METRICS["roc-auc"], [[0.7, 0.72], [0.6, np.nan]], [0.93, np.nan]),
            )
        ),
        "\n".join(
            view(settings.apply_chosen_knobs, **{"mechanism": "dp-gd", "knobs": text} | more)
            for text, more in (("bad", {}), ("dp-gd.steps:7", {}), ("dp-gd.steps:7", {"dp-gd.steps": 9}), ("dbdp.steps:7", {}))
        ),
        mock.patch.object(address.st, "switch_page", lambda *given, **more: page.st.code(f"{given} {more}"))(view)(
            address.open_page, "p", {"epsilon": "2", "row": "4", "want": ""}, **{address._OWN: {"row": "3", "x": ""}}
        ),
        [fields.read_or_default(mock.Mock(side_effect=error), "other") for error in (problem, MemoryError, ["value"])],
        ranking.best([], metric, 20),
        "\n".join(
            mock.patch.object(
                ledger.tasks, "current_result", lambda *given, **more: [page.st.code(f"{given[:2]} {more['given']}"), None][1]
            )(view)(ledger._draw_total, specs[name], calibration_of(specs[name]), theme, file, **state)
            for name, file, state in (
                ("majority", None, {}),
                ("dp-gd", ns(getvalue=lambda: b"x = 1"), {}),
                ("dp-gd", None, {"releases": "1"}),
                ("dp-gd", None, {}),
            )
        ),
        "\n".join(
            mock.patch.object(
                tuning.watching, "status", lambda _, state=state: ns(state=job.State[state], done=0.3, problems=[])
            )(view)(tuning._draw, ns(tables=dict), grid, spec, chosen, theme)
            for state in ("RUNNING", "CANCELLED", "DONE")
        ),
        view(rows_with_noise.one_step, inspected.inspect(replace(specs["majority"], seeds=1)), theme)
        + explanation.permutation(None, Budget(1.0, 1e-5), None),
        "\n".join(
            mock.patch.object(links, "pages", mock.Mock(return_value={"a.py": "Audit"}))(
                mock.patch.object(links.st, "page_link", lambda *given, **more: page.st.code(f"{given} {more}"))(
                    mock.patch.object(links.st, "query_params", ns(to_dict=lambda: {links.TASK: "old", "epsilon": "2"}))(view)
                )
            )(lambda run=run, more=more: links.page_link("Audit", "go", run=run, **more))
            for run in (None, spec)
            for more in ({}, {links.TASK: "new", "row": "3"})
        ),
        "\n".join(
            mock.patch.object(comparison.tables, "table", lambda rows, heads: page.st.code(f"{rows} {heads}"))(view)(
                comparison.own_noise, ns(calibration=calibration_of(specs[name]), mechanism=specs[name].build())
            )
            for name in ("cms-output", "majority")
        ),
        "\n".join(
            " ".join(selection.axis_names(ns(feature_names=names, intercept=constant, d=len(names))))
            for names, constant in (("abc", True), ("ab", False), ("a", False), ("ac", True))
        ),
        "\n".join(
            mock.patch.multiple(
                guessing, majority_baseline=lambda *_, poor=poor: poor, training_loss_note=lambda *_, note=note: note
            )(view)(guessing.say, ns(spec=specs[name], cost=ns(metric=METRICS[m], majority=0.551)))
            for name, m, poor, note in (
                ("majority", "accuracy", None, "x"),
                ("dp-gd", "accuracy", None, None),
                ("dp-gd", "accuracy", None, "loses *much*"),
                ("dp-gd", "accuracy", ns(worse=True, fix="Fix *it*."), None),
                ("dp-gd", "f1", ns(worse=False, fix="Fix it."), None),
            )
        ),
        "\n".join(
            mock.patch.multiple(
                guessing, majority_baseline=lambda *_, poor=poor: poor, training_loss_note=lambda *_, note=note: note
            )(
                mock.patch.object(
                    guessing.tasks,
                    "current_result",
                    lambda *given, ask, trials=trials, **more: [page.st.code(f"{given[:2]} {more['given']} {ask}"), trials][1],
                )(view)
            )(guessing.draw_trial, ns(spec=specs[name], cost=ns(metric=METRICS[m])))
            for better in [ns(helps=True, gain=0.0312, change="λ = 1", mean=0.812, spec=spec)]
            for name, m, poor, note, trials in (
                ("majority", "accuracy", True, "x", []),
                ("dp-gd", "accuracy", None, None, []),
                ("dp-gd", "accuracy", None, "x", None),
                ("dp-gd", "accuracy", True, None, [ns(helps=False)] * 2),
                ("dp-gd", "accuracy", True, "x", [ns(helps=False), better]),
                ("dp-gd", "log-loss", True, "x", [better]),
            )
        ),
        "\n".join(
            [
                *(
                    view(pinned.metric._level, pinned.metric.get_metric(name))
                    for name in ("accuracy", "recall-at-precision=0.62", "recall-at-false-positive-rate")
                ),
                *(
                    view(pinned.metric._level_changed, kind, **{pinned.metric._LEVEL: level})
                    for kind, level in (
                        *(("recall-at-precision", level) for level in (62.5, 90.0)),
                        ("recall-at-false-positive-rate", 150.0),
                    )
                ),
                *(
                    view(lambda: page.st.code(f"{pinned.metric.address_of_choice()}"), **state)
                    for state in ({}, {"metric": ""}, {"metric": "f1"})
                ),
                *(
                    view(pinned.metric.draw, dpviz.RunSpec(name), **state)
                    for name, state in (("teaching", {}), ("census-300", {}), ("census-300", {"metric": "f1"}))
                ),
            ]
        ),
        "\n\n".join(
            f"{charts.glossary.explain(text, most=most)}"
            for text, most in (
                ("ε and δ, clipping and noise", 2),
                ("ε and δ", 2),
                ("nothing here", 5),
                ("ε and δ, clipping", 1),
                ("N rows, mlp, clip norms and pld", 9),
                ("n rows, MLP, Clip norm, PLD", 9),
            )
        ),
        "\n".join(
            view(
                lambda rows=rows, closed=closed, record=charts.recorder: [
                    record.begin("Before"),
                    record.badge("gone"),
                    record.begin("Page"),
                    record.keep("a", record.Text("row"), rows=True, of=spec),
                    record.keep("b", lambda: record.Text("late")),
                    *map(record.badge, ("one", "one", "two")),
                    *(record.code(text, "python") for text in "ab"),
                    record.code("a", "python"),
                    record.answer("with rows", "without", replace(spec, epsilon=2.0)),
                    closed and record.close("why"),
                    closed and record.keep("c", record.Text("too late")),
                    *(
                        page.st.code(f"{made.question} {made.sentence} {made.subject} {made.badges} {made.parts} {made.repeat}")
                        for made in [page.st.session_state.pop(record._KEY).document(spec, "a set", rows=rows)]
                    ),
                ]
            )
            for rows, closed in ((True, False), (False, False), (False, True))
        ),
        "\n".join(
            mock.patch.object(
                finder.tables,
                "frame",
                lambda rows, key, **_: page.st.code(
                    f"{rows.shape} {list(rows)} {list(rows.iloc[0, :2])} "
                    f"{key} {len(page.st.session_state.pop(selection._SHOWN)[key])}"
                ),
            )(view)(finder._found, run, inspected.row_influence(spec), finder.dataset_of(spec).frame, np.arange(count))
            for run in [inspected.inspect(spec)]
            for count in (200, 201)
        ),
        " | ".join(
            " ".join(
                one.label
                for one in ranking.best(
                    [
                        ns(label=name, status=status, mean=mean, error=error)
                        for name, status, mean, error in (
                            *(("a", "proved", 0.75, 0.0), ("b", "proved if …", 0.8125, 0.01), ("c", "proved", 0.7825, 0.01)),
                            *(("d", "paper's claim", 0.9, 0.0), ("e", "proved", 0.71, 0.05), ("f", "proved", np.nan, 0.0)),
                        )
                    ],
                    METRICS[m],
                    rows,
                )
            )
            for m in ("accuracy", "log-loss")
            for rows in (16, 17, 200)
        ),
        [
            mock.patch.object(server, "_network_address", lambda here=here: here)(
                mock.patch.object(
                    server.st, "get_option", lambda name, options=options: options.get(name.removeprefix("server."))
                )(server.addresses)
            )()
            for here in ("", "10.0.0.7")
            for options in (
                {"port": 8501, "baseUrlPath": ""},
                {"port": 1, "baseUrlPath": "/a/", "address": "0.0.0.0"},
                {"port": 2, "baseUrlPath": "a", "address": "::1", "sslCertFile": "x"},
                {"port": 3, "baseUrlPath": "", "address": "h"},
            )
        ],
        "\n".join(
            view(address.seed, query, own)
            for query, own in (
                ({f"k{k}" * 30: "1" for k in range(6)}, ()),
                ({f"k{k}": "1" for k in range(5)} | {"epsilon": "2", "row": "3"}, ("row", "who")),
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
            server.importlib.import_module("dpviz.dashboard.lessons.view").sentence(
                ns(options={"a": "One", "b": "Two", "c": "Three"}, unit=unit), ns(value=value, low=low, high=high, right=right)
            )
            for unit, value, low, high, right in (
                ("", "a", 0, 0, ["a"]),
                ("", "a", 0, 0, ["a", "b", "c"]),
                ("%", 0.5, 0.499, 0.501, ()),
                ("%", 0.5, 0.4991, 0.5009, ()),
                ("", 500.0, 499.2, 500.1, ()),
                ("", 500.0, 499.0, 500.1, ()),
            )
        ),
        "\n".join(
            " ".join(
                attack.sentence(
                    ns(
                        calibration=calibration_of(spec),
                        guessed_right=right,
                        runs=runs,
                        requested=40,
                        guessed_right_limits=(low, 0.97),
                        verdict=verdict,
                        allowed=allowed,
                        epsilon_lower=1.2,
                        evidence_against=lambda _, by=by: by,
                    ),
                    ns(asks="whose row"),
                    spec,
                    over=over,
                )
            )
            for right, runs, low, verdict, allowed, by, over in (
                (0.9, 39, 0.5, "", 0.95, "", True),
                (0.9, 40, 0.5, "", 0.95, "", False),
                (0.9, 40, 0.5, "", 0.95, "", True),
                (attack.UNSAFE, 40, 0.51, "", 0.995, "", True),
                (attack.UNSAFE - 0.001, 40, 0.51, "", 0.6, "", True),
                (0.7, 40, 0.6, "", 0.6, "", True),
                (0.7, 40, 0.61, "", 0.6, "", True),
                (0.7, 40, 0.6, "", 0.7, "", True),
                (0.7, 40, 0.6, attack.EXCEEDED, 0.6, attack.BY_BOUND, True),
                (0.7, 40, 0.6, attack.EXCEEDED, 0.6, "by errors", True),
                (0.7, 40, 0.6, attack.NO_CLAIM, 0.6, "", True),
            )
        ),
        [
            mock.patch.object(attack, "setting_of", mock.Mock(return_value=ns(n=n, m=3)))(attack._usual)(spec)
            for n in (attack.LARGE // 3, attack.LARGE // 3 + 1)
        ],
        "\n".join(
            mock.patch.object(attack.charts, "chart", lambda _, *given, **__: page.st.code(f"{given[:2]}"))(view)(
                attack._clouds, ns(cloud=pd.DataFrame({"side": [0, 0, 1, 1], "u": u})), ns(name=name), spec, theme
            )
            for name, u in (("without", [0, 1, 2.5, 3.5]), ("two-rows", [0, 1, -2.5, -1.5]), ("two-rows", [1, 1, 2, 2]))
        ),
        " ".join(sections._mean(np.array(some)) for some in ([0.7], [0.7, 0.8])),
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
                [ns(one=ns(spec=specs[name]), label=name) for name in ("dp-gd", "dbdp", "majority")],
                METRICS[m],
            )
            for m in ("accuracy", "f1", "log-loss")
        ),
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
            view(lambda: [one.key for one in settings.fields_of(spec)], **{"from": low, "to": high, "points": points})
            for low, high, points in (("1", "1", "2"), ("1", "1", "1"), ("2", "1", "3"), ("0.5", "1", "3"))
        ),
        "\n".join(
            mock.patch.object(excess_risk.excess_risk, "share_of_the_start", lambda _, share=share: share)(view)(
                excess_risk._regime, ns(spec=one, formulas=None)
            )
            for one in (spec, specs["cms-output"])
            for share in (None, 0.05, 0.049, 0.7)
        ),
        "\n".join(
            mock.patch.object(tuning.tables, "table", lambda rows, heads: page.st.code(f"{rows} {heads}"))(
                mock.patch.object(
                    tuning.tasks,
                    "current_result",
                    lambda *given, ask, naive=naive, **_: [
                        page.st.code(f"{given[:2]} {ask}"),
                        ns(
                            release=ns(spec=replace(spec, lam=0.01), calibration=ns(proved_budget=Budget(1.0, 1e-5))),
                            naive=naive,
                            accuracy=0.7,
                            default=0.65,
                            each=ns(epsilon=0.3),
                        ),
                    ][1],
                )(view)
            )(tuning._private, spec, grid)
            for naive in (np.inf, 12.5)
        ),
        "\n".join(
            f"{calls.mock_calls}"
            for who, left in (("w", None), ("w", 1000 - 0.99 * session.LINGER), ("w", 1001 - 0.99 * session.LINGER), ("v", 0.0))
            for calls in [mock.Mock()]
            if mock.patch.object(session.time, "monotonic", mock.Mock(return_value=1000.0))(
                mock.patch.multiple(session, _visits={"w": 1}, pool=calls.pool, private=calls, uploads=calls)(session._end)
            )(ns(who=who, left=left, uploads={"u"}, session="s"))
            is None
        ),
        "\n".join(
            mock.patch.object(comparison, "setting_of", mock.Mock(return_value=ns(n=n, m=1000)))(
                mock.patch.object(comparison.tasks, "observe", lambda *_, ask, **__: [page.st.code(ask), (None, False)][1])(view)
            )(comparison.usefulness, ns(run=spec, mechanism=ns(id="dp-gd"), calibration=calibration_of(spec)), theme, [])
            for n in (199, 200)
        ),
        "\n".join(
            mock.patch.multiple(explanation, mixture_sigma=lambda *_, mixed=mixed: mixed, gaussian_mu=lambda _: 2.0)(
                explanation.permutation
            )(
                explanation.Mixture((3.0, 2.4), (0.5, 0.5)),
                Budget(1.0, 1e-5),
                ns(
                    event=np.array(["start", "update", "update", last]),
                    epoch=np.array([0, 1.0, 1.5, 2.0]),
                    rho=np.array([1, 0.9, 0.8, 0.7]),
                ),
            )
            for mixed, last in ((1.456, "average"), (1.454, "update"), (1.276, "update"), (1.274, "average"))
        ),
        "\n".join(
            f"{one._attempt(ns(attempt=mock.Mock(side_effect=[made]), epsilons=(0.5, 2.0), spec=spec), None).attrs} "
            f"{len(one.store.mock_calls)}"
            for made in (problem, pd.DataFrame({"a": [1]}))
            for one in [running.SweepJob("key", [], mock.Mock())]
        ),
        "\n".join(
            view(playing.controls, **state)
            for state in ({}, {playing._LEFT: (1.0,)}, *({"present": "1", "scene": scene} for scene in ("", "1", "3", "5")))
        ),
        "\n".join(
            mock.patch.object(playing.time, "sleep", lambda seconds: page.st.code(f"{seconds}"))(
                mock.patch.object(playing.watching, "is_over", lambda over: over)(
                    mock.patch.object(playing.st, "rerun", mock.Mock(side_effect=lambda: page.st.code("again")))(view)
                )
            )(lambda fresh=fresh: playing.advance(fresh=fresh), **{playing._LEFT: left, "watched.run": over})
            for left, fresh, over in (
                ((), True, True),
                *(((1.0, 2.0), fresh, over) for fresh, over in ((True, False), (False, True), (False, False))),
            )
        ),
        " ".join(
            mock.patch.object(watching, "session_name", mock.Mock(return_value="me"))(watching.state)(
                ns(state=state, declined=some)
            )
            for state in job.State
            for some in ((), ("me",))
        ),
        "\n".join(
            mock.patch.object(watching, "pool", mock.Mock(return_value=ns(busy=busy)))(
                mock.patch.object(watching.time, "monotonic", mock.Mock(side_effect=[100.0, 100.0 + took]))(view)
            )(lambda: page.st.code(f"{watching.wait(ns(wait=lambda s: [page.st.code(f'{s}'), True][1]), 0.6)}"), **state)
            for busy, took, state in (
                (0, 0.125, {}),
                *((busy, took, {watching._PATIENCE: 0.5}) for busy, took in ((3, 0.25), (1, 0.875))),
            )
        ),
        "\n".join(
            influence_map.noisy_rows_in_words(ns(**usual | more), brief=brief)
            for usual in [
                {"row_ids": np.arange(4), "calibration": ns(noise_scale=0.7), "ever": np.array([True, False, True, False])}
                | {"views": None, "accuracy": [0.1, 0.2], "instances": pd.DataFrame({"visits": [1.0, 2, 0, 1]})}
            ]
            for more in (
                {"calibration": ns(noise_scale=0)},
                *({"ever": ever} for ever in (None, np.ones(4, bool), np.array([True, True, False, True]))),
                {"accuracy": [0.1]},
                *(
                    {"views": (ns(used=False), ns(used=True, name="R", passes=np.array(passes)))}
                    for passes in ([True] * 4, [False] * 4, [True, False, True, True])
                ),
                {"ever": np.ones(4, bool), "views": (ns(used=True, name="R", passes=np.zeros(4, bool)),)},
                *({"instances": pd.DataFrame({"visits": [visits] * 4})} for visits in (np.nan, 1.0)),
            )
            for brief in (True, False)
        ),
        "\n".join(
            person._received(
                ns(
                    instances=pd.DataFrame([{"visits": visits, "times_noised": 1.0, "passed": 0.4}]),
                    calibration=ns(noise_scale=scale),
                    noise_count=count,
                    rms_noise=moved,
                    views=views,
                ),
                0,
            )
            for visits, scale, count, moved, views in (
                *((1, scale, None, moved, None) for scale, moved in ((0, 1), (1, 0.0), (1, 0.3))),
                *((visits, 1, 1, 1, None) for visits in (0.0, np.nan, 2.0)),
                (2.0, 1, 1, 1, [ns(used=False), ns(used=True, statistic=[0.77], low=-np.inf, high=0.5, name="R")]),
            )
        ),
        "\n".join(
            mock.patch.object(influence_map, "table", lambda run, _: pd.DataFrame({"row id": run.row_ids}))(
                mock.patch.multiple(
                    influence_map.tables,
                    frame=lambda rows, key, **_: page.st.code(
                        f"{len(rows)} {key} {len(page.st.session_state.pop(selection._SHOWN)[key])}"
                    ),
                    download=lambda rows, key: page.st.code(f"{len(rows())} {key}"),
                )(view)
            )(influence_map.rows, ns(row_ids=np.arange(len(group))), None, ns(group=group))
            for group in (np.zeros(1000, bool), np.zeros(1001, bool), np.arange(7) > 4)
        ),
        "\n".join(
            mock.patch.object(all_mechanisms.charts, "chart", lambda _, *given: page.st.code(f"{given[:2]}"))(
                mock.patch.object(all_mechanisms.tables, "table", lambda rows, heads: page.st.code(f"{rows} {heads}"))(
                    mock.patch.object(all_mechanisms.pictures, "board", lambda rows, _: page.st.code(f"{rows}"))(view)
                )
            )(all_mechanisms._show, some, theme)
            for every in [
                [
                    ns(
                        label=label,
                        claimed=claimed,
                        proved=proved,
                        audited=0.3,
                        gaussian=0.4,
                        exceeded=bool(by),
                        by=by,
                        verdict="v",
                    )
                    for label, claimed, proved, by in (("A", 1.0, np.nan, "x"), ("B", np.nan, np.nan, ""), ("C", np.nan, 0.7, ""))
                ]
            ]
            for some in (every, every[1:2])
        ),
        "\n".join(
            mock.patch.object(dataset.upload, "forget", lambda name: page.st.code(name))(view)(dataset.forget, "a", dataset=name)
            for name in ("a", "iris")
        ),
        "\n".join(
            view(
                server.importlib.import_module("dpviz.dashboard.claims.views").test_again,
                [ns(claim=1, task=None, at_work=False)] * count,
                {"thorough": fields.choice("thorough", "Thorough", {"": "a", "yes": "b"}, "")},
                3,
            )
            for count in (1, 2)
        ),
        [
            server.importlib.import_module("dpviz.dashboard.claims.views")._weight(ns(finding=finding, claim=ns(privacy=privacy)))
            for finding in (None, *(ns(verdict=ns(outcome=outcome)) for outcome in presets.Outcome))
            for privacy in (True, False)
        ],
        view(recursion.algorithm_choice(specs["cms-output"]).draw)
        + "".join(view(sidebar._dataset_there, dataset=name).partition("Choose")[0] for name in ("iris", "gone")),
        len({ranking._job(spec, a).key for a in (None, None, *map(Attacker.parse, ("advantage=0.3", "advantage=0.4")))}),
        one_training.detectable_noise(ns(visible_share=None, most=3.214)),
        mock.patch.object(dataset, "download", lambda name, progress: [progress(size) for size in (10**6, 10**7)])(view)(
            dataset._download, ns(name="adult", megabytes=4.0)
        ),
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
    ]
