"""Examples of `dpviz.mechanisms` in rare states: persons, weights, preparations, no noise, and hyperparameters at their ends."""

from collections.abc import Iterator
from dataclasses import replace
from types import SimpleNamespace
from typing import Any
from unittest import mock

import numpy as np
from kept.mechanisms import can
from support import make_problem
from support_kept import progress, refusal

from dpviz.common.paid import Paid
from dpviz.common.random import spawn
from dpviz.mechanisms import Training, all_rows, attack, get_mechanism, knobs, list_mechanisms, protection, rules
from dpviz.mechanisms.gradient import bassily_sgd, pidp_sgd_rule
from dpviz.models import Rows, get_model
from dpviz.privacy.budget import Budget


def rare_runs_examples() -> Iterator[Any]:
    pure, mixed = (Paid("a", "b", 0.05, 0.04),), (Paid("a", "b", 0.03, 0.03), Paid("c", "d", 0.05, 0.0, "e"))
    problem, budget, built = make_problem(24, 3, 0.05), Budget(0.9, 1e-4), [cls() for cls in list_mechanisms().values()]
    several = [
        replace(problem, rows=Rows(problem.rows.X, problem.rows.y, *rows))
        for rows in (
            (3, None, None, np.arange(24) // 3),
            (0, None, (0.3, 0.8)),
            (0, None, None, None, pure),
            (0, None, None, None, mixed, 4),
            (2, np.linspace(0.2, 1.0, 24), None, np.arange(24) // 2, mixed, 1),
        )
    ]
    yield from [
        # declared and trained for persons, with weights, after preparations, and what is known of each row and of attackers
        *(
            [
                [one.id, k],
                [c, protection.settle(one, s, budget), protection.method_budget(one, s, budget)],
                protection.released_event(one, s, c) if isinstance(one, can.DeclaresEvent) else None,
                protection.releases(one, s) if isinstance(one, can.ReleasesGaussians) else None,
                protection.distance(one, s, c) if isinstance(one, can.BoundsDistance) else None,
                [attack.allowed_accuracy(one, s, c), a and [a.accuracy, a.basis, a.detections_at(0.07)]],
                fit.theta,
                protection.individual(one, case, c, fit.theta[0], fit.record.select(0))
                if isinstance(one, can.IndividualBudget)
                else None,
            ]
            for one in [
                *(
                    one
                    for one in built
                    if one.id in ("output-gaussian", "cms-output", "objective-tight", "dp-gd", "ldp-duchi", "dbdp")
                ),
                get_mechanism("dp-sgd")(epochs=3.0, batches="persons"),
                get_mechanism("dp-svrg")(rounds=2, inner_steps=3),
            ]
            for k, case in enumerate(several)
            if one.refusal(case.setting) is None
            for s in [case.setting]
            for c in [protection.calibrate(one, s, budget)]
            for a in [attack.strongest_attack(one, s, c)]
            for fit in [one.fit(Training(case, [c], spawn(5, 2), record=not case.rows.person_rows))]
        ),
        "\n".join(
            f"{one.id}: {'; '.join((c.sentence, *c.conditions, *c.notes))}"
            for one in built
            for case in several
            if one.refusal(case.setting) is None
            for c in [protection.calibrate(one, case.setting, budget)]
        ),
        "\n".join(f"{one.id} {refusal(lambda b=one, s=case.setting: b.require(s))}" for one in built for case in several[:2]),
        # what is said of single rows, and nothing without noise or a record
        "\n".join(
            f"{one.id}: {i and (i.method, i.conditions, i.caveat, i.gaussian)}"
            for one in built
            if isinstance(one, can.IndividualBudget)
            for one in [one.from_params({k: v for k, v in {"epochs": 3, "rounds": 2}.items() if k in one.knobs()})]
            for c in [one.calibrate(problem.setting, budget)]
            for fit in [one.fit(Training(problem, [c], spawn(5, 2)))]
            for record in [fit.record.select(0)]
            for i in (
                one.individual(problem, c, fit.theta[0], record),
                one.individual(problem, c.noiseless(), fit.theta[0], record),
                one.individual(problem, c, fit.theta[0], replace(record, path=None, gradient_energy=None)),
            )
        ),
        [[one.id, vars(built[5].calibrate(problem.setting, budget).noiseless()) if k == 5 else k] for k, one in enumerate(built)],
        # hyperparameters that follow from a rule before a budget is known, and those of other data
        [
            [one.id, k, one.automatic(k, get_model("logistic").setting(50_000, 6, 1e-4))]
            for one in [*built, get_mechanism("dp-sgd")(clip_norm=0.2), get_mechanism("dp-gd")(clip_norm=0.7)]
            for k, knob in one.knobs().items()
            if knob.automatic and one.id not in ("kst-objective",)
        ],
        [
            [one.id, *vars(one.settle(replace(problem.setting, n=900), budget, rows)).values()]
            for one in built
            if any(getattr(knob, "share_of_rows", False) for knob in one.knobs().values())
            for rows in (1, 77, 10**9)
        ],
        [
            [one.id, case.n, one.automatic_lam(case, budget)]
            for one in built
            for case in (get_model("logistic").setting(300, 20, 1e-5), get_model("mlp-2").setting(300, 20, 1e-5))
            if one.refusal(case) is None
        ],
        [
            [one.id, [one.starting(public=public) for public in (False, True)]]
            for one in built
            if isinstance(one, can.ChoosesStart)
        ],
        [
            [one.step_count(problem.setting), one.batch_share(problem.setting)]
            for params in ({"sampling_rate": 1.0, "epochs": 0.2}, {"sampling_rate": 0.3, "epochs": 2.6})
            for batches in ("poisson", "reshuffled")
            for one in [get_mechanism("dp-sgd").from_params(params | {"batches": batches, "accountant": "pld"})]
        ],
        [
            get_mechanism("dp-gd")(steps=20, clip_norm=1.0, step_size=step).excess_theory(
                problem.setting, 0.3, 0.2, np.array([0.1, 0.2])
            )
            for step in (1.9, 2.0, 2.5)
        ],
        get_mechanism("dp-gd")(steps=20).stopped_after(7),
        "\n".join(
            [
                *(
                    refusal(lambda t=text: attack.Attacker.parse(t))
                    for text in (
                        *(
                            "tpr=0.05",
                            "tpr=0.05@fpr=0",
                            "tpr=0.01@fpr=0.01",
                            "advantage=0",
                            "advantage=1",
                            "accuracy=0.5",
                            "accuracy",
                        ),
                        *("accuracy=0.6@fpr=0.1", "tpr=0.05@0.01", "none=0.3", "tpr=0.05@", "accuracy=x"),
                    )
                ),
                refusal(lambda: attack.Attacker("none", 0.6)),
                *(
                    refusal(
                        lambda m=name, t=text, d=delta: attack.epsilon_for(
                            attack.Attacker.parse(t), get_mechanism(m)(), problem.setting, d
                        )
                    )
                    for name, text, delta in (("dbdp", "accuracy=0.6", 1e-5), ("output-gaussian", "advantage=0.00001", 0.01))
                ),
                refusal(lambda: attack.epsilon_by_budget(attack.Attacker("accuracy", 0.6), 0.3)),
                refusal(lambda: get_mechanism("non-private").from_params({"steps": 3})),
                refusal(lambda: get_mechanism("dp-gd").from_params({"step": 3})),
                refusal(lambda: Training(replace(problem, public_n=20), [], [])),
            ]
        ),
        [
            attack.comparable_bounds(attack.Attack(0.6, 0.7, budget, a), attack.Attack(0.61, 0.71, budget, b))
            for a in (attack.ALONE, attack.GAUSSIAN)
            for b in (attack.ALONE, attack.DISTANCE)
        ],
        [
            [all_rows.precision(SimpleNamespace(n=n, d=d)).__name__ for n, d in ((1 << 18, 4), (1 << 18, 5), (3, 1 << 20))],
            [
                all_rows._parts_of(SimpleNamespace(n=n, m=m, setting=SimpleNamespace(linear=linear)), replicas)
                for n, m, replicas in ((1000, 20, 100), (1 << 20, 2, 4), (1 << 20, 8, 100))
                for linear in (True, False)
            ],
        ],
        [
            [
                rules.longest_step(s, clip)
                for s in (problem.setting, make_problem(24, 3, 0.05, "svm").setting)
                for clip in (0.5, 0.51)
            ],
            [
                [f(get_model(m).setting(n, 6, 1e-4)) for m in ("logistic", "mlp-2") for n in (9_999, 10_000, 10_000_000)]
                for f in (rules.splits, rules.sampling_rate, rules.clip_norm_of_search, rules.full_steps)
            ],
            [rules.reach(get_model(m).setting(90, 6, lam)) for m in ("logistic", "mlp-2") for lam in (0.3, 1e-9)],
            [
                f(get_model(m).setting(900, 6, 0.02), nu)
                for f in (rules.training_time, rules.time_in_noise)
                for m in ("svm", "mlp-2")
                for nu in (0.0, 0.3)
            ],
            [
                rules.time_before_release(get_model(m).setting(900, 6, 1e-6), b, 30)
                for m in ("logistic", "mlp-2")
                for b in (None, budget)
            ],
            [rules.curvature_share(replace(problem.setting, n=n), 0.7, 2) for n in (100, 9_000, 10**6)],
            [rules.round_lambda(x) for x in (3.0, 1e-12, 0.0141, 0.0142)],
            rules.step_size(problem.setting, 9, 0.01, steeper=3.0, clip=0.5),
        ],
        # controls and texts of hyperparameters, as they are and as a rule sets them
        [
            [
                k,
                type(form).__name__,
                *vars(form).values(),
                form.widget_value(knob, v),
                knob.parse(k, knob.text(v)),
                knob.has_curve,
            ]
            + [knob.candidates(v, count) for count in (1, 4, 7)]
            + [knob.curve(v, most) for most in (np.inf, 9.0) if knob.has_curve and v]
            for b in built
            for k, knob in b.knobs().items()
            for v in dict.fromkeys((getattr(b, k), protection.knob_value(b, k, problem.setting, budget)))
            for form in [knob.form(v)]
        ],
        " ".join(
            f"{b.id} {k} {knob.text(v)} {knob.in_words(v)}"
            for b in built
            for k, knob in b.knobs().items()
            for one in (getattr(b, k), *knob.candidates(protection.knob_value(b, k, problem.setting, budget), 3))
            for v in [round(one, 9) if isinstance(one, float) else one]  # the last digits differ on other processors
        ),
        "\n".join(
            refusal(lambda m=m, k=k, v=v: get_mechanism(m).from_params({k: v}))
            for m, k, values in (
                ("dp-gd", "steps", (0, 10**9, 2.5, "x", True, None)),
                ("dp-sgd", "sampling_rate", (1.1, np.nan, "automatic", False)),
                ("nsgd", "accounting", ("none", 3)),
                ("majority", "private", (2, "x")),
            )
            for v in values
        ),
        # budgets that are trained apart or together, one of them and the first two
        [
            [fit.record.select(1), *(d and [d.select(1), d.first(2)] for d in [fit.distribution]), fit.first(2)]
            for m in ("bolt-on-psgd", "output-gaussian", "majority", "dp-gd")
            for one in [get_mechanism(m)()]
            for declared in [[one.calibrate(problem.setting, Budget(e, 0.001)) for e in (0.3, 0.8, 2.0)]]
            for fit in [one.fit(Training(problem, declared, spawn(5, 2)))]
        ],
        " | ".join(
            refusal(lambda h=how: knobs.Number(label="Step", help="", **h))
            for how in (
                *({"low": low, "high": 2.0} for low in (2.0, 2.5)),
                *({"low": 0.0, "high": 2.0, name: value} for name, value in (("log", True), ("automatic", "a rule"))),
            )
        ),
        *(
            mock.patch.object(bassily_sgd, "_CHUNK", steps)(progress)(
                lambda listen, one=one, few=few: one.fit(
                    Training(few, [one.calibrate(few.setting, budget)], spawn(5, 2), monitor=listen)
                )
            )
            for few, one in [(make_problem(9, 3, 0.05), get_mechanism("bassily-sgd")(mode="faithful"))]
            for steps in (30, 81)
        ),
        # noise that was changed or switched off, for persons
        [
            [one.for_row().noise_scale, one.noiseless().notes[0].split(), one.noiseless().for_row().noise_scale]
            for c in [protection.calibrate(built[5], several[0].setting, budget)]
            for one in (c, replace(c, noise_scale=0.7))
        ],
        # rows that have used up their budget, a search that stops, and rows that pass a rule, at a small and a large budget
        *(
            [fit, progress(lambda listen, b=one, t=training: b.fit(replace(t, monitor=listen)))]
            for name, params in (
                ("renyi-filter", {"full_steps": 3, "stretch": 4.0, "clip_norm": 0.3}),
                ("dp-agd", {}),
                ("pidp-sgd", {"rule": "threshold", "rounds": 6, "local_steps": 5, "batch_size": 2, "threshold": 0.1}),
            )
            for one in [get_mechanism(name).from_params(params)]
            for declared in [[one.calibrate(problem.setting, Budget(e, 1e-3)) for e in (0.5, 30.0)]]
            for training in [Training(problem, declared, spawn(5, 2))]
            for fit in [one.fit(training)]
        ),
        [
            [
                rule.passes(np.array([[[0.0, c, -c / 3] for c in (0.0, 0.003, 0.008, 0.02)]] * 2), declared, draws),
                pidp_sgd_rule.refused_replicas(
                    np.array([[0.0, c, -c / 3] for c in (0.0, 1.3, 4.1, 0.2)] * 2), declared, draws, s
                ),
                rule._intended(np.array([0.1, 0.02, 0.3, 0.02]), True),
            ]
            for model, n in (("logistic", 2000), ("svm", 2000), ("logistic", 24))
            for s in [make_problem(n, 3, 0.05, model).setting]
            for declared in [[get_mechanism("pidp-sgd")().calibrate(s, Budget(e, 1e-3)) for e in (0.5, 30.0)]]
            for draws in [np.array([[0.1, -0.05, 0.02], [0.01, 0.02, -0.09], [0.2, 0.1, 0.3], [-0.03, -0.02, -0.1]])]
            for kind in ("literal", "threshold", "fraction")
            for rule in [pidp_sgd_rule.Rule(kind, s, 0.02, 0.3)]
        ],
        # seeds in two groups, rows in one part or more, and losses along a line with and without clipping
        [
            all_rows.by_seeds(
                Training(problem, [built[5].calibrate(problem.setting, budget)], spawn(5, 3)),
                lambda some, tick: (np.arange(12.0).reshape(2, 3, 2)[:, some], np.arange(6.0).reshape(2, 3)[:, some] + 0.5),
                [slice(0, 2), slice(2, 3)],
            ),
            [all_rows.AllRows.shares_rows(make_problem(900, 3, 0.05), replicas) for replicas in (1, 10**3, 10**6)],
            [
                all_rows.AllRows(problem, 2).line_losses(theta, 0.3 - theta, np.array([0.7, 1.9]), 3, clip)
                for theta in [np.linspace(-2.0, 5.0, 2 * problem.m).reshape(2, -1)]
                for clip in (0.2, 9.0)
            ],
        ],
    ]
