"""Examples of `dpviz.papers`."""

import math
from collections.abc import Iterator
from dataclasses import replace
from typing import Any
from unittest import mock

import numpy as np
from support import make_problem
from support_claims import Untrained
from support_kept import numbers_in, words

import dpviz
from dpviz.auditing.attacks.study import attack_run
from dpviz.experiments.studies import excess_risk
from dpviz.mechanisms import Mechanism, get_mechanism
from dpviz.papers import checks, claims, numbers, rate_curves, rate_tables, rates, saved, sentences, sets, sources, verdict
from dpviz.papers.claims import bagdasaryan, constants, context, numerics, population, risk, rsgd, rules, tables
from dpviz.papers.claims.context import Context
from dpviz.papers.figures import catalogue, networks
from dpviz.papers.verdict import Outcome, Scope


def data_of_claims_examples() -> Iterator[Any]:
    """Datasets of a claim, where none, some or all of the papers' sets are on the machine."""
    for there in ((), ("bank",), context.PAPERS_SETS):
        with mock.patch.object(
            sets, "choose", lambda names, _, there=there: [one for one in names if one in (*there, context.LARGE)]
        ):
            yield [Context(full=full).data(("teaching",), ("iris", context.LARGE)) for full in (False, True)]


def checks_examples() -> Iterator[Any]:
    t = dpviz.sweep("teaching", mechanisms=["output-gaussian", "dp-gd", "cms-output"], epsilons=[0.2, 1.0, 5.0], seeds=4)
    some = [
        checks.leads("dp-gd", "output-gaussian"),
        checks.leads("dp-gd", "output-gaussian", "optimality_gap"),
        checks.leads("output-gaussian", "dp-gd"),
        *(
            check
            for quantity in ("accuracy", "optimality_gap", "objective")
            for check in (
                checks.matches("dp-gd", ["output-gaussian", "cms-output"], quantity),
                checks.matches("dp-gd", ["output-gaussian"], quantity, -0.02),
                checks.resembles("cms-output", ["output-gaussian", "dp-gd"], quantity),
                checks.rises(["dp-gd", "cms-output"], quantity),
                checks.fluctuates(["output-gaussian", "dp-gd"], quantity, Scope.SOME),
            )
        ),
        checks.grows_apart("dp-gd", "output-gaussian"),
        checks.close_at_start("dp-gd", "output-gaussian"),
        checks.has_small_gap("dp-gd"),
        checks.surges("dp-gd"),
    ]
    yield from [
        [[c.holds, c.severity, c.better] for check in some for c in check.comparisons(t)],
        *(
            " ".join(check(part).because for check in some)
            for part in (t, t[t["epsilon"] == 1.0], t[t["seed"] == 0], t.assign(objective=0.6931, optimality_gap=1e-4))
        ),
        checks.has_small_gap("dp-gd")(t.assign(objective=np.inf, optimality_gap=np.inf)).because,
        " | ".join(
            checks.tie_reason(part, ["dp-gd", "cms-output"], quantity)
            for part in (
                t.assign(non_private_accuracy=0.9, majority_accuracy=0.9, expected_accuracy=0.9005),
                t.assign(objective=0.693, optimality_gap=0.0001),
                t.assign(objective=0.5, optimality_gap=1e-9),
                t.assign(objective=0.5, optimality_gap=0.1),
            )
            for quantity in ("accuracy", "optimality_gap", "objective")
        ),
        " ".join(check.rule for check in some),
        checks.points(0.0123, 0.004) + checks.points(-0.0004) + checks.points(0.5, math.inf),
    ]


def numbers_examples() -> Iterator[Any]:
    t = dpviz.sweep("teaching", mechanisms=["output-gaussian", "dp-gd", "cms-output"], epsilons=[0.2, 1.0, 5.0], seeds=4)
    yield from [
        [
            numbers.difference(t[t.mechanism == "dp-gd"].accuracy, t[t.mechanism == "cms-output"].accuracy),
            numbers.paired_mean(t.accuracy),
            numbers.draws(t, "dp-gd", "accuracy"),
            numbers.log_ratio(numbers.draws(t, "dp-gd", "optimality_gap"), numbers.draws(t, "cms-output", "optimality_gap")),
        ],
        [
            f(x)
            for i in (
                numbers.Interval(0.3, 0.1),
                numbers.Interval(0.05, 0.1),
                numbers.Interval(-0.2, 0.1),
                numbers.Interval(math.nan, 1.0),
            )
            for f in (i.at_least, i.at_most, i.leads)
            for x in (0.0, 0.1)
        ],
        numbers.quantile(7.0),
    ]


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
                (Outcome.FAILS, Outcome.CANNOT_TELL),
            )
        ),
        tables.tenths(np.arange(40.0)[::-1] % 23),
        rules.separation(np.arange(9.0), np.array([0.1, 0.2, 0.0, 0.4, 0.3, 0.8, 0.7, 0.9, 1.0])),
        tables.lines("p", "s", "m", [1, 2], np.arange(8.0).reshape(2, 4)),
        tables.percent(0.123) + tables.span([0.3, 0.1, 0.2]) + tables.span([0.3]),
    ]


#: claims that take a second and more; tests of their own see them
SLOW = (
    "pidp-beats-dp-sgd pidp-excess-rate-sgd pidp-generalisation pidp-population-risk pidp-private dbdp-private ip-private "
    "ip-private-pl rsgd-private rsgd-ar-private network-pl rsgd-ar-best small-groups-lose-more"
)


def claims_in_words_examples() -> Iterator[Any]:
    """Claims that are computed in hundredths of a second, and what those on accuracy say of models that are not trained."""

    def by_threshold(knobs: dict[str, Any]) -> Mechanism:
        """A rule that decides otherwise for some rows."""
        return get_mechanism("pidp-sgd").from_params(knobs | {"rule": "threshold"})

    def attacked(spec: dpviz.RunSpec, *counts: int, **how: Any) -> Any:
        """An attack on a small table."""
        return attack_run(replace(spec, dataset="teaching"), *(count // 4 for count in counts), **how)

    rsgd_ar = rsgd.competitive(sentences.RSGD_COMPETITIVE, "rsgd-ar", [("nsgd", rsgd.RSGD_AR[:2]), ("majority", ({},))])
    quick = [claim.test for name, claim in claims.list_claims().items() if name not in SLOW.split()]
    with mock.patch.object(risk, "attack_run", attacked), mock.patch.object(population, "PEOPLE", "census-20000"):
        for test in [rsgd_ar, *quick]:
            seen, asked = list[float](), list[object]()
            v = test(Untrained(seed=3, monitor=seen.append, swaps={"pidp-sgd": by_threshold}, asked=asked))
            said = (v.because, v.condition, v.rule, *(word for pair in v.numbers for word in pair), str(v.picture), v.seeds)
            rising = [bool(seen), max(seen, default=0.0), sorted(seen) == seen]
            yield [v.outcome, [numbers_in(text) for text in said], words(" | ".join(said)), v.table, rising, asked]
