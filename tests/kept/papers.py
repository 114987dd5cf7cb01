"""Examples of `dpviz.papers`."""

import math
import operator
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path
from typing import Any
from unittest import mock

import numpy as np
from support import make_problem
from support_claims import Untrained
from support_kept import numbers_in, refusal, words

import dpviz
from dpviz.auditing.attacks.study import attack_run
from dpviz.experiments.studies import excess_risk
from dpviz.mechanisms import get_mechanism
from dpviz.papers import claims, rate_curves, rate_tables, rates, saved, sentences, sets, sources, verdict
from dpviz.papers.claims import bagdasaryan, constants, context, numerics, population, risk, rsgd, rules, tables
from dpviz.papers.claims.context import Context
from dpviz.papers.figures import catalogue, networks
from dpviz.papers.verdict import Outcome


def data_of_claims_examples() -> Iterator[Any]:
    """Datasets of a claim, where none, some or all of the papers' sets are on the machine."""
    for there in ((), ("bank",), context.PAPERS_SETS):
        with mock.patch.object(
            sets, "choose", lambda names, _, there=there: [one for one in names if one in (*there, context.LARGE)]
        ):
            yield [Context(full=full).data(("teaching",), ("iris", context.LARGE)) for full in (False, True)]


def papers_examples() -> Iterator[Any]:
    yield from [
        claims.command("dbdp-noise-rate", True, 3),
        {
            table: [
                [
                    row.method,
                    rates.value(row.noise, f),
                    rates.value(row.excess, f),
                    rates.value(row.population, f),
                    len(row.broken(f)),
                ]
                for row in rows
                # the last two are where other terms of a minimum are the smallest
                for f in (
                    rates.Facts(1000, 7, 0.4, 1e-05, 1.1, 0.3, 0.02, 30, 5, 40, 2.5),
                    *(rates.Facts(*few, 0.001) for few in ((200, 12, 3.0), (10, 90_000, 0.05), (10**6, 3, 0.01))),
                )
            ]
            for table, rows in rate_tables.ROWS.items()
        },
        " ".join(
            reason
            for rows in rate_tables.ROWS.values()
            for row in rows
            for reason in row.broken(rates.Facts(1000, 7, 2.4, 1e-05, 1.1, 0.3, 0.02, 30, 5, 40, 2.5))
        ),
        [
            [e.row.method, e.noise]
            for q in rates.QUANTITIES
            for e in rates.evaluate(rate_tables.ROWS["pidp"], rates.Facts(1000, 7, 0.4, 1e-05), q)
        ],
        [
            r and r.budget
            for m in ("dbdp", "dbdp-pi", "dp-gd", "pidp-sgd")
            for r in [
                saved.refutation(
                    dpviz.RunSpec(mechanism=m).build(),
                    dpviz.RunSpec(mechanism=m).build().calibrate(make_problem().setting, dpviz.Budget(1.0, 0.001)),
                )
            ]
        ],
        sets.pinned_values("dp-sgd"),
        [sets.is_small(n) for n in ("census-10000", "breast-cancer")],
        sets.features_of("breast-cancer"),
        " | ".join(p.citation for p in sources.PAPERS.values()),
        [
            verdict.combine([verdict.Comparison("a", h, "n", s, b) for h, s, b in some], scope)
            for scope in verdict.Scope
            for some in (
                [],
                [(True, 0, False)],
                [(False, 0, False)],
                [(False, 1, True)],
                [(True, 0, False), (False, 2, False), (None, 1, False)],
                [(True, 0, False)] * 2 + [(None, 0, False)],
                [(False, 0, True)] * 3,
            )
        ],
        " ".join(
            verdict.summary([verdict.Comparison(str(k), h, f"numbers {k}", s) for k, (h, s) in enumerate(some)], scope)
            for scope in verdict.Scope
            for some in (
                [],
                [(True, 0)],
                [(None, 1)],
                [(False, 2)],
                [(True, 1), (True, 3)],
                [(True, 9), (False, 2), (None, 5), (False, 3)],
                [(True, 9), (None, 5)],
            )
        ),
        verdict.counts([verdict.Comparison("a", h, "") for h in (True, True, None, False, False, False)]),
        [
            v.add_condition("noise is small").headline
            for v in (verdict.Verdict(one, "so") for one in Outcome if one is not Outcome.ONLY_IF)
        ],
        " | ".join(
            f"{v.headline} {v.because} {v.rule}"
            for outcomes in ((Outcome.HOLDS, Outcome.HOLDS), (Outcome.FAILS, Outcome.HOLDS), (Outcome.ONLY_IF, Outcome.FAILS))
            for v in [
                claims.agree(
                    [
                        verdict.Verdict(one, f"because {k}.", "Rule.", condition="so" if one is Outcome.ONLY_IF else "")
                        for k, one in enumerate(outcomes)
                    ]
                )
            ]
        ),
        " ".join(
            [claims.command("dbdp-private"), claims.command("dbdp-private", seed=2), *(c.id for c in claims.claims_of("dp-sgd"))]
        ),
        [
            [rates.Facts(n, 3, 0.4, 1e-5, 1.1, 0.3, 0.02), rates.Facts(n, 3, 0.4, 1e-5, inner=4, influential=2, radius=0.6)]
            for n in (5, 234)
        ],
        "\n".join(
            refusal(lambda f=facts: rates.Facts(*f))
            for facts in (
                (1, 3, 0.4, 1e-5),
                (9, 0, 0.4, 1e-5),
                (9, 3, 0.0, 1e-5),
                (9, 3, 0.4, 0.0),
                (9, 3, 0.4, 1e-5, -1.0),
                (9, 3, 0.4, 1e-5, 1.0, 0.1, 0.2),
                (9, 3, 0.4, 1e-5, 1.0, 0.1, 0.1, 0),
                (9, 3, 0.4, 1e-5, 1.0, 0.1, 0.1, 5, 0, 0, 0.0, 1.0),
            )
        ),
        [
            rates.value(one, rates.Facts(900, 3, 0.4, 1e-5))
            for one in (
                None,
                rates.Formula("x", None, "u"),
                rates.Formula("x", lambda f: f.n / f.d, "u"),
                rates.Formula("x", lambda f: math.exp(f.n), "u"),
            )
        ],
        [
            [
                [e.row.method, getattr(e, by), len(e.broken)]
                for e in rates.evaluate(rows, rates.Facts(90, 7, 2.4, 1e-05, mu=0.02), by)
            ]
            for rows in rate_tables.ROWS.values()
            for by in rates.QUANTITIES
        ],
        refusal(lambda: rates.evaluate(rate_tables.ROWS["pidp"], rates.Facts(90, 7, 2.4, 1e-05), "none")),
        "\n".join(
            f"{rate_tables.formulas.upper_limit(w, lambda f: 2.0, '!', *within).check(rates.Facts(90, 7, e, 1e-05))}"
            for w, *within in (("ε < 2",), ("ε ≤ 2", operator.le), ("ε of order at most 2", operator.le))
            for e in (1.9, 2.0, 2.1)
        ),
        [rate_curves.applies_to(dpviz.RunSpec("teaching", model=model)) for model in ("logistic", "svm", "mlp")],
        rate_curves.facts_of(dpviz.RunSpec("teaching", mechanism="dp-gd", model="svm", params={"steps": 30}, lam=0.03)),
        [sets.is_small(name) for name in ("census-1999", "census-2000")],
        [[name, *sets.pinned_values(name).items()] for name in dpviz.list_mechanisms()],
        sets.build("dp-sgd", {"epochs": 3.0, "clip_norm": 0.4}),
        [
            sets.uploaded_names(wanted, {"a": "BANK_full.csv.gz", "b": "bank.csv", "c": "Bank Additional.dat", "d": "banks.csv"})
            for wanted in ("bank", "bank-additional", "adult")
        ],
        [saved._rounded(x) for x in (0.123456789, "x", math.nan, 12345678)],
        [saved.Saved(version="1.2+abc").release, saved.load(Path("nowhere"))],
        [
            [one.figure, *one.panels, one.verdict.because]
            for figure in catalogue.FIGURES[:1]
            for new, old in ((1, 1), (1, 2), (2, 1), (0, 1))
            for one in saved.merge(
                *(
                    [
                        saved.FigureVerdict(
                            figure.id, figure.statements[0].text, verdict.Verdict(Outcome.HOLDS, age), ("p",) * count, ()
                        )
                    ]
                    * (count > 0)
                    for count, age in ((new, "new"), (old, "old"))
                )
            )
        ],
        [
            back
            for v in [
                verdict.Verdict(
                    Outcome.FAILS,
                    "so",
                    "r",
                    (("a", "1"),),
                    "",
                    tables.lines("p", "s", "m", [1], np.array([[0.1234567, 2.0]])),
                    verdict.Picture("x", "y", True),
                )
            ]
            for back in (saved._values(v), vars(saved._verdict(saved._values(v))))
        ],
    ]


def figures_examples() -> Iterator[Any]:
    """Panels and methods of the papers' figures, how they are computed here, and published rates beside what was measured."""
    with mock.patch.dict("os.environ", {"DPVIZ_DATA": "nowhere", "DPVIZ_CACHE": "nowhere"}):  # no set of a paper is there
        panel = catalogue.setup("ip-2-adult-mlp")
        small = replace(panel, values=panel.values | {"dataset": "teaching", "model": "mlp-4", "seeds": 2})
        yield from [
            [[f.id, f.low, f.high, f.points, f.lam, f.fixed, f.panels, f.methods] for f in catalogue.FIGURES],
            [
                [name, made.values, made.splits, numbers_in(notes), words(notes)]
                for name in catalogue.PANELS
                for made in [catalogue.setup(name)]
                for notes in [" ".join(made.notes)]
            ],
            [
                [numbers_in(rows), words(rows)]
                for f in catalogue.FIGURES
                for rows in [" ".join(word for row in catalogue.settings(f"{f.id}-{next(iter(f.panels))}") for word in row)]
            ],
            # networks that a method refuses, and panels without
            *(
                [[t["epsilon"].to_numpy(), t["seed"].to_numpy()] for t in networks.measure(one, (0.1, 1.0))]
                for one in (small, catalogue.setup("ip-2-adult-lr"), catalogue.setup("dbdp-1-adult-mlp"))
            ),
            [
                [
                    [c.row.method, c.own, c.slope, c.value, c.scaled]
                    for c in rate_curves.rate_curves(spec, over, over.measure(spec, at))
                ]
                for spec in (dpviz.RunSpec("teaching", mechanism=name, seeds=2, epsilon=0.5) for name in ("dp-gd", "dbdp"))
                for over, at in zip(excess_risk.AXES.values(), ([0.5, 1.0, 4.0], [200, 300, 400], [3, 6, 9]), strict=True)
            ],
            [
                rate_curves.facts_of(dpviz.RunSpec("teaching", mechanism=name))
                for name in ("dp-gd", "majority", "output-gaussian")
            ],
            rate_curves.rate_curves(dpviz.RunSpec("teaching", model="mlp-4"), excess_risk.AXES["n"], []),
            [
                sets.choose(names, uploads, *shape)
                for names, uploads, *shape in (
                    (("bank", "iris"), {}),
                    (("iris", "teaching"), {}, 9, 9),
                    (("census-500", "iris", "breast-cancer", "teaching"), {}, 569, 30),
                    (("census-500", "breast-cancer", "iris", "teaching"), {}, 150, 4),
                    (("bank", "teaching"), {"upload-x": "bank.csv"}),
                    (("census-500", "breast-cancer", "iris", "teaching"), {}),
                )
            ],
            refusal(lambda: catalogue.setup("none")),
        ]


def claims_examples() -> Iterator[Any]:
    yield from [
        [
            [p.column, p.small, p.large, p.sizes, p.lost, p.non_private]
            for p in bagdasaryan.pairs(Context(seed=3), "census-1000", (0.5, 2.0), 2)
        ],
        [f(Context(seed=2), 1000, 2.0) for f in (constants.input_perturbation_step, constants.dbdp_step)],
        constants.mixture_epsilon(0.1, 1.5, 1e-05),
        context.Context(full=True, seed=3).choose(1, 2),
        [
            [v.outcome, v.table, [numbers_in(t) for one in v.numbers for t in one]]
            for f in (
                numerics.dbdp_noise_rate,
                numerics.noise_like_gradient,
                numerics.noise_below_bassily,
                numerics.noise_below_fukuchi,
                numerics.compare_sensitivities,
            )
            for v in [f(context.Context())]
        ],
        [f(make_problem().setting, 0.01, 0.3, 0.2) for f in (population.theorem2, population.theorem3)],
        [f(make_problem().setting) for f in (population.theorem1, population.theorem4)],
        " ".join(str(rsgd._by_batches({"a": a, "b": b}, {"a": 9, "b": 2})) for a in (0.0, 1.0) for b in (0.0, 1.0)),
        " | ".join(
            " ".join(map(str, rsgd._by_reading(dict(zip(rsgd.READINGS, o, strict=True)))))
            for o in (
                (Outcome.HOLDS, Outcome.HOLDS),
                (Outcome.HOLDS, Outcome.FAILS),
                (Outcome.FAILS, Outcome.HOLDS),
                (Outcome.FAILS, Outcome.UNDECIDED),
            )
        ),
        tables.tenths(np.arange(40.0)[::-1] % 23),
        rules.separation(np.arange(9.0), np.array([0.1, 0.2, 0.0, 0.4, 0.3, 0.8, 0.7, 0.9, 1.0])),
        tables.lines("p", "s", "m", [1, 2], np.arange(8.0).reshape(2, 4)),
        " | ".join(
            " ".join(rules._monotone([np.array(share, float) for share in shares]))
            for shares in (
                [[1, 0.6, 0.2, 0]],
                [[1, 1, 0, 0, 0], [1, 0, 0, 0, 0]],
                [[0.5, 0.5, 0.5]],
                [[0.4, 0.6, 0.2]],
                [[1.0, 0.7, 0.2], [0.3, 0.3, 0.3]],
                [[0.5, 0.5009, 0.4]],
                [[0.5, 0.5011, 0.4]],
            )
        ),
        [
            f(np.array([[0.0, 0.1], [0.5, 0.5], [0.9, 0.2]]), np.array([[0.0, 0.1], [0.9, 0.3], [0.9, 0.1]]))
            for f in (rules.changed_rows, rules.unlinked_rows)
        ],
        [
            measured
            for c in [Context(seed=3)]
            for mechanism in [c.build("dp-gd", steps=20)]
            for measured in (
                c.measure(mechanism, "teaching", (0.5, 2.0), 3, stream="a"),
                c.measure(mechanism, "teaching", (0.5, 2.0), 3, held_out=True, split=2, delta=1e-3, model="svm", lam=0.01).rows(
                    "other"
                ),
                [c.spec("iris", split=4), c.trained_on, c.seeds],
            )
        ],
        " | ".join(f"{f.id} {f.place_of(p)}" for f in catalogue.FIGURES for p in f.panels.values()),
        tables.percent(0.123) + tables.span([0.3, 0.1, 0.2]) + tables.span([0.3]),
        rate_curves.facts_of(dpviz.RunSpec("iris", mechanism="dp-svrg")),
    ]


#: claims that take a second and more; tests of their own see them
SLOW = (
    "pidp-beats-dp-sgd pidp-excess-rate-sgd pidp-generalisation pidp-population-risk pidp-private dbdp-private ip-private "
    "ip-private-pl rsgd-private rsgd-ar-private network-pl rsgd-ar-best small-groups-lose-more"
)


def claims_in_words_examples() -> Iterator[Any]:
    """Claims that are computed in hundredths of a second, and what those on accuracy say of models that are not trained."""
    with (
        mock.patch.object(
            risk,
            "attack_run",  # on a small table
            lambda spec, *counts, **how: attack_run(replace(spec, dataset="teaching"), *(n // 4 for n in counts), **how),
        ),
        mock.patch.object(population, "PEOPLE", "census-20000"),
    ):
        for test in (
            rsgd.competitive(sentences.RSGD_COMPETITIVE, "rsgd-ar", [("nsgd", rsgd.RSGD_AR[:2]), ("majority", ({},))]),
            *(claim.test for name, claim in claims.list_claims().items() if name not in SLOW.split()),
        ):
            seen, asked = list[float](), list[object]()
            v = test(
                Untrained(
                    seed=3,
                    monitor=seen.append,
                    # a rule that decides otherwise for some rows
                    swaps={"pidp-sgd": lambda knobs: get_mechanism("pidp-sgd").from_params(knobs | {"rule": "threshold"})},
                    asked=asked,
                )
            )
            said = (v.because, v.condition, v.rule, *(word for pair in v.numbers for word in pair), str(v.picture), v.seeds)
            yield [
                *(v.outcome, [numbers_in(text) for text in said], words(" | ".join(said)), v.table),
                *([bool(seen), max(seen, default=0.0), sorted(seen) == seen], asked),
            ]
