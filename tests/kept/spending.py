"""Examples of `dpviz.spending`."""

import random
from collections.abc import Iterator
from typing import Any

from support import assert_refused, make_problem, noisy_sums
from support_kept import refusal, shares

import dpviz
from dpviz.privacy.accounting.events import PureEpsilon
from dpviz.privacy.budget import Budget, Neighbouring, Status
from dpviz.spending import ledger, of_run, private_search, records


def ledger_examples() -> Iterator[Any]:
    c = ledger.Contents(
        "t",
        "row",
        Neighbouring.REPLACE_ONE,
        Budget(9.0, 1e-05),
        (
            ledger.Entry(Budget(1.0, 1e-06), conditions=("a",)),
            ledger.Entry(PureEpsilon(0.5), "other", Status.CLAIM, when="now", call="f"),
            ledger.Entry(dpviz.privacy.accounting.events.Gaussian(1.0, 2.0), "search", Status.PROVED_IF, ("b", "a")),
        ),
    )
    t = c.total()
    yield from [
        [t.budget, t.status, len(t.unproved), t.conditions, t.table()[["what", "release", "epsilon", "status", "call"]]],
        [
            [t.budget, t.status]
            for some, more in (
                ((), ()),
                ((), (ledger.Entry(PureEpsilon(0.5)),)),
                ((ledger.Entry(PureEpsilon(0.5)),) * 2, ()),
                ((ledger.Entry(Budget(0.5, 1e-07)),) * 2, ()),
            )
            for t in [ledger.Contents("t", "row", Neighbouring.ADD_REMOVE, Budget(9.0, 1e-05), some).total(*more)]
        ],
        [
            ledger.entry_of_budget(0.5, what="other").release,
            ledger.entry_of_budget(0.5, 1e-09).release,
            ledger.entry_of_budget(0.5, 1e-09, call="f", when="now").to_dict(),
        ],
        ledger.Entry.read({"status": "proved", "release": {"kind": "PureEpsilon", "epsilon": 0.5}}, "x").to_dict(),
        str(assert_refused(lambda: ledger.Entry(noisy_sums(1.5, 0.1, 20000000)))),
        ledger.Entry(
            dpviz.privacy.accounting.events.Repeated(dpviz.privacy.accounting.events.Gaussian(1.0, 2.0), 900000000)
        ).proved,
        " | ".join(
            [
                ledger._text("unit", " x "),
                ledger._text("unit", "y" * 200),
                *(str(assert_refused(ledger._text, "unit", v)) for v in ("y" * 201, " ", "a\nb", 3)),
            ]
        ),
        # totals that are in memory tell less
        [
            max(
                shares(
                    lambda listen: ledger.Contents(
                        "t",
                        "row",
                        Neighbouring.REPLACE_ONE,
                        Budget(9.0, 1e-05),
                        (ledger.Entry(Budget(1.0, 1e-06)), ledger.Entry(noisy_sums(1.5, 0.1, 20))),
                    ).total(monitor=listen)
                )
            )
            > 0.8
        ],
    ]


def of_run_examples() -> Iterator[Any]:
    yield from [
        [
            [e.release, e.status, e.what, type(e.release).__name__]
            for m in ("output-gaussian", "dp-gd", "dbdp", "cms-output", "dp-sgd")
            for k, t in ((1, None), (3, Budget(5.0, 0.01)))
            for built in [dpviz.RunSpec(mechanism=m).build()]
            for e in [
                of_run.entry_of(
                    built,
                    make_problem().setting,
                    built.calibrate(make_problem().setting, Budget(1.0, 0.001)),
                    models=k,
                    together=t,
                )
            ]
        ],
        [
            of_run.totals(built, make_problem().setting, built.calibrate(make_problem().setting, Budget(1.0, 0.001)), 3)
            for m in ("output-gaussian", "majority", "dbdp", "dp-gd")
            for built in [dpviz.RunSpec(mechanism=m).build()]
        ],
    ]
    yield from [
        shares(lambda listen, b=b, c=c: of_run.totals(b, make_problem().setting, c, 4, listen))
        for b in [dpviz.RunSpec(mechanism="dp-gd").build()]
        for c in [b.calibrate(make_problem().setting, dpviz.Budget(1.0, 0.001))]
    ]


def private_search_examples() -> Iterator[Any]:
    made = private_search.plan(
        [private_search.Candidate(dpviz.RunSpec(mechanism="output-gaussian").build(), make_problem().setting, 2)],
        dpviz.privacy.accounting.repeated_selection.repetitions("poisson", 5.0),
        Budget(2.0, 1e-05),
        2,
    )
    yield from [
        private_search.plan(
            [
                private_search.Candidate(dpviz.RunSpec(mechanism=m).build(), make_problem().setting, k)
                for m, k in (("output-gaussian", 1), ("dp-gd", 3))
            ],
            dpviz.privacy.accounting.repeated_selection.repetitions("logarithmic", 5.0),
            Budget(2.0, 1e-05),
        ).calibrations,
        [made.each, made.total, made.score_sigma, made.person_rows],
        private_search.plan(
            [private_search.Candidate(dpviz.RunSpec(mechanism="output-gaussian").build(), make_problem().setting)],
            dpviz.privacy.accounting.repeated_selection.repetitions("geometric", 3.0),
            Budget(1.0, 1e-05),
            3,
        ).accountant,
    ]
    made = private_search.plan(
        [private_search.Candidate(dpviz.RunSpec(mechanism="output-gaussian").build(), make_problem().setting)] * 3,
        dpviz.privacy.accounting.repeated_selection.repetitions("logarithmic", 8.0),
        Budget(1.0, 1e-05),
    )
    yield from [
        [private_search.search(made, lambda k: 10 * k + 1, lambda model: 3 * model, random.Random(seed)) for seed in range(6)],
        shares(lambda listen: private_search.search(made, lambda k: k, lambda model: model, random.Random(5), listen)),
        " | ".join(
            f"{assert_refused(private_search.plan, *g)}"
            for g in (
                ([], None, None),
                (
                    [private_search.Candidate(dpviz.RunSpec(mechanism="dbdp").build(), make_problem().setting)],
                    dpviz.privacy.accounting.repeated_selection.repetitions("geometric", 3.0),
                    Budget(1.0, 1e-05),
                ),
                (
                    [private_search.Candidate(dpviz.RunSpec(mechanism="dp-gd").build(), make_problem().setting)],
                    dpviz.privacy.accounting.repeated_selection.repetitions("geometric", 300.0),
                    Budget(0.001, 1e-05),
                ),
            )
        ),
    ]


def spending_examples() -> Iterator[Any]:
    yield from [
        records.to_record(noisy_sums(1.5, 0.1, 20)),
        records.from_record(records.to_record(noisy_sums(1.5, 0.1, 20)), "x"),
        "\n".join(
            refusal(lambda depth=depth: records.from_record(records.to_record(noisy_sums(1.5, 0.1, 20)), "x", depth))
            for depth in range(5, 10)
        ),
    ]
