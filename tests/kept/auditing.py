"""Examples of `dpviz.auditing`."""

from collections.abc import Iterator
from dataclasses import replace
from typing import Any

import numpy as np
from sklearn import naive_bayes
from support import assert_refused, make_problem
from support_kept import progress

import dpviz
from dpviz.auditing import game, one_run, pairs, runs, scores, survey
from dpviz.auditing.attacks import attacked, base, exposure, halves, judging, scorer, study
from dpviz.experiments.run.spec import RunSpec
from dpviz.mechanisms.results import OutputNoise
from dpviz.models import get_model
from dpviz.privacy import noise
from dpviz.privacy.budget import Status
from dpviz.privacy.noise import GAUSSIAN


def attacks_base_examples() -> Iterator[Any]:
    rng = np.random.default_rng(3)
    member = rng.random((80, 9)) < 0.5
    sh = base.Shadows(rng.standard_normal((80, 9)) + 1.5 * member, member, rng.standard_normal((80, 7)))
    ta = base.Targets(
        rng.standard_normal((6, 9)) + 0.5, rng.standard_normal((6, 7)), rng.standard_normal((9, 3)), rng.standard_normal((7, 3))
    )
    yield from [
        [base.get_attack(name).score(ta, sh) for name in base.list_attacks()],
        [
            base.separation(sh),
            base.row_gaussians(sh, True),
            base.row_gaussians(base.Shadows(sh.signals[:20], sh.member[:20], sh.population[:20]), False),
        ],
        [
            base.row_gaussians(base.Shadows(z, np.arange(n)[:, None] < [0, 1, 2, 40], z), members)
            for n in (64, 63)
            for z in [np.cos(np.arange(4.0 * n)).reshape(n, 4) + np.arange(4.0)]
            for members in (True, False)
        ],
        [
            [
                (base.get_attack(name).score(ta, sh, seen.append), len(seen), max(seen, default=0))[1:]
                for name in base.list_attacks()
                for seen in [[]]
            ]
        ],
    ]


def attacks_exposure_examples() -> Iterator[Any]:
    found = dpviz.auditing.attacks.study.attack_run(
        dpviz.RunSpec("teaching", mechanism="output-gaussian", seeds=2), 64, 16, attacks=["lira-online", "rmia", "loss-threshold"]
    )
    yield from [
        [exposure.exposure(found), exposure.associations(exposure.exposure(found))],
        exposure.describe_row(found, int(found.row_ids[3])),
        exposure.rank_correlation(np.array([1.0, 2.0, 3.0, 4.0, 5.0]), np.array([2.0, 1.0, 4.0, 3.0, 9.0])),
    ]


def attacks_halves_examples() -> Iterator[Any]:
    h = halves.Halves.make(dpviz.RunSpec("teaching", mechanism="output-gaussian", seeds=2))
    yield [
        h.size,
        np.flatnonzero(h.masks("shadow", [3])),
        h.member("target", 2, np.arange(5)),
        h.train("target", [0, 2]),
        h.setting.n,
    ]
    yield from [
        *(
            [h.train("target", [0, 2]), h.joins]
            for h in [halves.Halves.make(dpviz.RunSpec("teaching", mechanism="dp-gd", seeds=2, epsilon=0.5))]
        ),
        halves.signals(make_problem().model, np.ones((2, 4)), make_problem().rows),
    ]


def attacks_judging_examples() -> Iterator[Any]:
    rng = np.random.default_rng(3)
    member = rng.random((24, 90)) < 0.5
    j = judging.Judged(rng.standard_normal((24, 90)) + 0.8 * member, member, 2)
    yield [j.auc, j.advantage, j.threshold_at(0.05), j.detections_at(0.02), j.detections_at(0.1, 0.99), j.curve, j.trials]
    yield from [
        [j.auc, j.advantage, j.detections_at(0.5), j.detections_at(0.1), j.curve]
        for j in [judging.Judged(np.arange(40.0).reshape(4, 10) // 3, np.arange(40).reshape(4, 10) % 2 == 0)]
    ]


def attacks_scorer_examples() -> Iterator[Any]:
    j = scorer.membership_risk("rmia", 0.1, shadows=8, targets=16, seed=2).judge(
        naive_bayes.GaussianNB(), make_problem(200).rows.X, make_problem(200).rows.y
    )
    yield from [
        [j.scores, j.member, j.auc],
        scorer.membership_risk("quantile-regression", 0.1, shadows=8, targets=16, seed=2)
        .judge(naive_bayes.GaussianNB(), make_problem(1500).rows.X, make_problem(1500).rows.y)
        .auc,
    ]


def attacks_study_examples() -> Iterator[Any]:
    found = study.attack_run(
        dpviz.RunSpec("teaching", mechanism="output-gaussian", seeds=2), 64, 16, attacks=["lira-online", "rmia", "loss-threshold"]
    )
    yield from [
        list(
            study.attack_over_epsilon(
                dpviz.RunSpec("teaching", mechanism="output-gaussian", seeds=2), [0.5, 5.0], 64, 16, attacks=["loss-threshold"]
            )
        ),
        [study._some(4, 1, 0), study._some(100000, 1, 0), study._some(100000, 1, 1)],
        [found.table, found.best(), found.best(0.1), found.verdict, found.rows],
        found.sentence() + found.sentence(0.05, "a run"),
        study.watch_attacks.__name__
        + str(assert_refused(lambda: list(study.watch_attacks(RunSpec("teaching"), 64, attacks=[])))),
        progress(
            lambda listen: list(
                study.attack_over_epsilon(
                    dpviz.RunSpec("teaching", mechanism="output-gaussian", seeds=2),
                    [0.5, 5.0],
                    64,
                    16,
                    attacks=["rmia"],
                    monitor=listen,
                )
            )
        ),
    ]


def game_examples() -> Iterator[Any]:
    yield [
        [
            r.score,
            r.counts,
            r.middle,
            r.allowed,
            r.noise,
            r.guessed_right,
            r.epsilon_lower,
            r.ceiling,
            r.gaussian_epsilon_lower,
            r.verdict,
            r.curve,
            r.cloud,
        ]
        for m, runs, score in (
            ("output-gaussian", 60, "auto"),
            ("dp-gd", 60, "lda"),
            ("cms-output", 50, "auto"),
            ("dbdp", 60, "auto"),
        )
        for b in [dpviz.RunSpec(mechanism=m).build()]
        for p in [dpviz.auditing.worst_case(b, dpviz.models.get_model("logistic"), dpviz.Budget(1.0, 0.001), 30)]
        for r in [game.audit(b, p.first, p.second, dpviz.Budget(1.0, 0.001), runs, 3, score=score)]
    ]
    cal = dpviz.RunSpec(mechanism="output-gaussian").build().calibrate(make_problem().setting, dpviz.Budget(1.0, 0.001))
    yield [
        game.declares_gaussian(replace(cal, claimed_budget=one, proved_budget=other, mu=mu, status=how))
        for one, other, how in (
            (cal.budget, None, Status.CLAIM),
            (None, cal.budget, Status.PROVED),
            (cal.budget, dpviz.Budget(9.0, 0.001), Status.PROVED),
        )
        for mu in (None, cal.mu, 2 * cal.mu)
    ]
    b, pair = dpviz.RunSpec(mechanism="dp-sgd", params={"relation": "add-remove"}).build(), make_problem()
    cal, rows = b.calibrate(pair.setting, dpviz.Budget(1.0, 0.001)), np.array([3])
    pair = [pair.replace_row(3, np.array(x), 1.0) for x in ([0.0, 0.2, 0.3, 0.1], [0.1, 0.0, 0.0, 0.2], [0.0, 0.0, 0.0, 0.0])]
    yield f"{assert_refused(game._check_relation, b, cal, *pair[:2], rows)} {game._check_relation(b, cal, *pair[1:], rows)}"
    p = dpviz.auditing.worst_case(
        dpviz.RunSpec(mechanism="dp-gd").build(), dpviz.models.get_model("logistic"), dpviz.Budget(1.0, 0.001), 30
    )
    b, budget = dpviz.RunSpec(mechanism="dp-gd").build(), dpviz.Budget(1.0, 0.001)
    yield progress(lambda listen: game.audit(b, p.first, p.second, budget, 60, monitor=listen))


def one_run_examples() -> Iterator[Any]:
    r = one_run.audit_one_run(
        dpviz.RunSpec(mechanism="dp-gd").build(),
        one_run.axis_canaries(
            dpviz.RunSpec(mechanism="dp-gd").build(), dpviz.models.get_model("logistic"), dpviz.Budget(1.0, 0.001), 40
        ),
        dpviz.Budget(1.0, 0.001),
        5,
    )
    yield [r.guesses, r.correct, r.visible_share, r.epsilon_lower, r.most, r.gaussian_epsilon_lower, r.verdict, r.table]
    r = one_run.audit_one_run(
        dpviz.RunSpec(mechanism="output-gaussian").build(),
        one_run.row_canaries(dpviz.RunSpec(mechanism="output-gaussian").build(), make_problem(), dpviz.Budget(1.0, 0.001), 12, 4),
        dpviz.Budget(1.0, 0.001),
        5,
    )
    yield from [
        [r.guesses, r.correct, r.visible_share, r.epsilon_lower, r.table],
        str(assert_refused(one_run.row_canaries, RunSpec().build(), make_problem(), dpviz.Budget(1.0), 99)),
        [
            one_run.plan(m, dpviz.Budget(e, d), c)
            for m, e, d, c in ((100, 0.5, 1e-05, 0.95), (1000, 1.0, 0.0, 0.99), (10, 4.0, 0.001, 0.9))
        ],
        [
            one_run._right(1.0, 0.3),
            one_run._refuting(50, 100, dpviz.Budget(1.0, 1e-05), 0.95),
            one_run._visible(50, 100, dpviz.Budget(1.0, 1e-05), 0.95),
        ],
    ]


def pairs_examples() -> Iterator[Any]:
    yield from [
        [
            [p.first.rows.X, p.first.rows.y, p.second.rows.X, p.second.rows.y, pairs.differing_rows(p.first, p.second)]
            for name in pairs.PAIRS
            for k in (0, 2)
            for p in [pairs.make(name, get_model("logistic"), 6, 3, 0.1, k)]
        ],
        [
            pairs.worst_case(
                dpviz.RunSpec(mechanism=m).build(), get_model("logistic"), dpviz.Budget(1.0, 0.001), 20, 3, 0.05
            ).name
            for m in ("dp-gd", "output-gaussian", "input-perturbation", "dp-sgd", "kst-objective")
            if m in dpviz.list_mechanisms()
        ],
        "\n".join(
            f"{one.name}, {one.why}, {pairs.differing_rows(one.first, one.second)}, {one.first.setting.person_rows}"
            for mechanism, relation, budget, person_rows in (
                ("dp-gd", None, None, 0),
                ("dp-sgd", "add-remove", None, 0),
                ("dp-sgd", "add-remove", dpviz.Budget(1.0, 1e-3), 2),
                ("dp-sgd", "replace-one", dpviz.Budget(1.0, 1e-3), 0),
                ("output-gaussian", None, None, 1),
                ("output-gaussian", None, None, 2),
                ("dbdp", None, None, 1),
                ("dbdp", None, None, 2),
            )
            for one in pairs.battery(
                dpviz.RunSpec(mechanism=mechanism, params={"relation": relation} if relation else {}).build(),
                get_model("logistic"),
                12,
                4,
                0.1,
                budget,
                person_rows,
            )
        ),
        [pairs.name_rows(np.arange(k) + 3) for k in (1, 5, 6)],
        [
            [p.second.rows.X[7], p.second.rows.y[7], p.why]
            for f in (pairs.label_flip, pairs.pair_without, pairs.most_influential)
            for p in [f(make_problem()) if f is pairs.most_influential else f(make_problem(), 7)]
        ],
        *([p.second.rows.X[7], p.second.rows.y[7]] for p in [pairs.replace_by(make_problem(), 7, [0.1, 0.2, 0.3, 0.4], -1)]),
        " ".join(pairs.name_rows(np.arange(k) + 3) for k in (1, 5, 6)),
        " ".join(f(make_problem(), 7).why for f in (pairs.label_flip, pairs.pair_without)),
    ]


def runs_examples() -> Iterator[Any]:
    r = runs.audit_run(
        dpviz.RunSpec("teaching", mechanism="output-gaussian", seeds=2),
        "label-flip",
        runs=50,
        row=int(dpviz.setup_for(dpviz.RunSpec("teaching", mechanism="output-gaussian", seeds=2)).split.train[5]),
    )
    yield from [
        [
            [p.why, p.asks, p.first.n]
            for kind in runs.KINDS
            for row, other in (
                (None, None),
                (
                    int(dpviz.setup_for(dpviz.RunSpec("teaching", mechanism="output-gaussian", seeds=2)).split.train[5]),
                    int(dpviz.setup_for(dpviz.RunSpec("teaching", mechanism="output-gaussian", seeds=2)).split.train[9]),
                ),
            )
            for p in [runs.pair_of(dpviz.RunSpec("teaching", mechanism="output-gaussian", seeds=2), kind, row, other)]
        ],
        [r.counts, r.middle, r.epsilon_lower, r.score],
    ]
    r = runs.one_run_of(dpviz.RunSpec("teaching", mechanism="dp-gd", seeds=2, epsilon=0.5), 20)[1]
    yield from [
        [r.guesses, r.correct, r.epsilon_lower],
        " ".join(
            f"{p.why} {p.asks}"
            for kind in runs.KINDS
            for p in [runs.pair_of(dpviz.RunSpec("teaching", mechanism="output-gaussian", seeds=2), kind)]
        ),
        runs.pair_of(dpviz.RunSpec("census-300", mechanism="dp-gd", ranges="private")).why,
        progress(
            lambda listen: runs.audit_run(
                dpviz.RunSpec("teaching", mechanism="dp-gd", seeds=2, epsilon=0.5), runs=60, monitor=listen
            )
        ),
        progress(
            lambda listen: runs.one_run_of(dpviz.RunSpec("teaching", mechanism="dp-gd", seeds=2, epsilon=0.5), 20, monitor=listen)
        ),
    ]


def scores_examples() -> Iterator[Any]:
    yield from [
        [
            fit(z[0], z[1] * 1.3 + 0.4)(z[0][:5])
            for z in [np.random.default_rng(0).standard_normal((2, 400, 4 * k))]
            for fit in scores.fitters(make_problem(), make_problem().replace_row(3, np.zeros(4), 1.0), np.array([3]), k).values()
        ]
        for k in (1, 2)
    ]
    z = np.random.default_rng(0).standard_normal((2, 400, 4))
    yield from [
        scores.choose(
            scores.fitters(make_problem(), make_problem().replace_row(3, np.zeros(4), 1.0), np.array([3]), 1),
            z[0],
            z[1] * 1.3 + 0.4,
        )[0],
        [
            [d.usable, d.log_ratio(np.arange(8.0).reshape(4, 2)), d.threshold(trials=500, delta=0.001, confidence=0.95, seed=3)]
            for g, a, b in ((noise.GAUSSIAN, 0.7, 0.7), (noise.GAUSSIAN, 0.7, 1.1), (noise.GAMMA_SPHERE, 0.7, 0.7))
            for d in [
                scores.Distributions(
                    OutputNoise(np.array([0.0, 1.0]), np.array([a]), g), OutputNoise(np.array([0.5, 0.5]), np.array([b]), g)
                )
            ]
        ],
    ]
    z = np.random.default_rng(0).standard_normal((2, 300, 2)) / 2 + [0.0, 1.0]
    d = scores.Distributions(*(OutputNoise(np.array([c, 1.0]), np.array([0.5]), GAUSSIAN) for c in (0.0, 1.0)))
    yield [d.contradiction(z[0], z[1] + [1.0, 0.0]), vars(d.residuals(z[0], z[1] + [1.0, 0.0])), d.residuals(z[0], z[1] + 3.0)]
    yield from [
        [
            fit(0 * z[0], z[1])(z[0][:5])
            for z in [np.random.default_rng(0).standard_normal((2, 400, 8))]
            for name, fit in scores.fitters(
                make_problem(), make_problem().replace_row(3, np.zeros(4), 1.0), np.array([3]), 2
            ).items()
            if name.startswith("steps")
        ],
        *(
            d.contradiction(z[0], z[1] + [1.0, 0.0])
            for z in [np.random.default_rng(0).standard_normal((2, 300, 2)) / 1.4 + [0.0, 1.0]]
        ),
    ]


def survey_examples() -> Iterator[Any]:
    yield from [
        list(survey.table([])),
        survey.table(
            survey.survey(
                dpviz.models.get_model("logistic"),
                dpviz.Budget(1.0, 0.001),
                mechanisms={m: dpviz.list_mechanisms()[m] for m in ("output-gaussian", "dbdp", "majority")},
                runs=50,
            )
        ),
        progress(
            lambda listen: list(
                survey.survey(
                    dpviz.models.get_model("logistic"),
                    dpviz.Budget(1.0, 0.001),
                    mechanisms={"dp-gd": dpviz.list_mechanisms()["dp-gd"]},
                    runs=50,
                    monitor=listen,
                )
            )
        ),
        " ".join(
            row.verdict + row.by
            for row in survey.survey(
                dpviz.models.get_model("mlp"),
                dpviz.Budget(1.0, 0.001),
                mechanisms={m: dpviz.list_mechanisms()[m] for m in ("cms-output", "dbdp-pi")},
                runs=40,
            )
        ),
    ]


def attacks_examples() -> Iterator[Any]:
    yield from [
        [
            attacked.detections_allowed(
                b, make_problem().setting, b.calibrate(make_problem().setting, dpviz.Budget(1.0, 0.001)), np.array([0.01, 0.2])
            )
            for m, p in (("output-gaussian", {}), ("dbdp", {}), ("cms-output", {}), ("dp-sgd", {"relation": "add-remove"}))
            for b in [dpviz.RunSpec(mechanism=m, params=p).build()]
        ],
        [attacked._percent(s) for s in (0.0, 0.00123, 0.0105, 0.5)],
        " ".join(attacked._percent(s) for s in (0.0, 0.00123, 0.0105, 0.5)),
        attacked.detections_allowed(
            dpviz.RunSpec(mechanism="dbdp-pi").build(),
            make_problem().setting,
            dpviz.RunSpec(mechanism="dbdp-pi").build().calibrate(make_problem().setting, dpviz.Budget(1.0, 0.001)),
            np.array([0.1]),
        ),
    ]
