"""Examples of `dpviz.releasing`."""

import random
from collections.abc import Iterator
from dataclasses import replace
from functools import partial
from pathlib import Path
from typing import Any
from unittest import mock

import numpy as np
import pandas as pd
from support import assert_refused, make_problem
from support_kept import progress, refusal, shares

import dpviz
from dpviz.common import version
from dpviz.common.progress import ignore
from dpviz.datasets.catalogue import load_dataset
from dpviz.datasets.sources import own
from dpviz.datasets.table import encoder
from dpviz.datasets.table.encoder import Encoder
from dpviz.experiments.run.resolve import resolve
from dpviz.experiments.run.setup import setup_for
from dpviz.experiments.run.spec import RunSpec
from dpviz.mechanisms.results import Fit
from dpviz.privacy.budget import Budget
from dpviz.releasing import bounds, card, grid, model, ranges, training, tuning
from dpviz.releasing.grid import Published
from dpviz.spending.ledger import Ledger


def bounds_examples() -> Iterator[Any]:
    yield from [
        one
        for made in [bounds.compare(dpviz.RunSpec("census-300", mechanism="output-gaussian", seeds=3, seed=4), (0.5, 1.0, 4.0))]
        for one in (
            [made.kinds, made.widths, made.of_ranges, made.of_model, made.whole],
            bounds.best_width(
                dpviz.RunSpec("census-300", mechanism="output-gaussian", seeds=3, epsilon=30.0),
                {"narrow": 0.125, "all": 1.0, "wide": 16.0},
            ),
            shares(
                lambda listen: bounds.compare(
                    dpviz.RunSpec("census-300", mechanism="output-gaussian", seeds=2), (1.0, 2.0), listen
                )
            ),
        )
    ]


def model_examples() -> Iterator[Any]:
    m = model.ReleasedModel(
        "logistic",
        np.array([0.5, -1.0, 2.0, 0.3]),
        None,
        True,
        ("nein", "jä"),
        Encoder(
            (encoder.Column("a", encoder.NUMBER, 0.0, 4.0), encoder.Column("b", encoder.CATEGORIES, levels=("x", "y"))), "unit"
        ),
        {},
    )
    d = pd.DataFrame({"a": [1.0, 5.0, None], "b": ["x", "z", "y"]})
    notes = []
    yield from [
        model.ReleasedModel(
            "logistic",
            np.array([0.5, -1.0, 2.0, 0.3]),
            None,
            True,
            ("nein", "jä"),
            Encoder((encoder.Column("a", "number", 0.0, 4.0),), "unit"),
            {"epsilon": 1.0},
        ).to_json(),
        [m.scores(d, notes), list(m.predict(d)), len(notes), m.probabilities(m.scores(d))],
    ]
    m = model.ReleasedModel(
        "logistic",
        np.zeros(4),
        -1.0,
        True,
        ("nein", "jä"),
        Encoder(
            (encoder.Column("a", encoder.NUMBER, 0.0, 4.0), encoder.Column("b", encoder.CATEGORIES, levels=("x", "y"))), "unit"
        ),
        {},
    )
    yield list(m.predict(pd.DataFrame({"a": [1.0, 5.0, None], "b": ["x", "z", "y"]})))


def ranges_examples() -> Iterator[Any]:
    e = ranges.joint_entry(
        dpviz.RunSpec(mechanism="output-gaussian").build().calibrate(make_problem().setting, Budget(1.0, 0.001)),
        Budget(0.5, 0.0001),
        "f",
    )
    d = dpviz.dataset(
        pd.DataFrame({"a": np.arange(3000.0) % 37, "b": ["x", "y", "z"] * 1000, "c": np.arange(3000.0), "label": [0, 1] * 1500}),
        target="label",
        ranges={"c": (0, 3000)},
    )
    s = own.get(
        ranges.declare_privately(RunSpec(d, mechanism="dp-gd"), d, Budget(1.0, 1e-06), random.Random(3), False).dataset
    ).spec
    yield from [
        [
            ranges.parse_ranges(dpviz.RunSpec(mechanism=m, ranges=r), p)[1:]
            for m in ("dp-gd", "automatic")
            for r in ("declared", "private")
            for p in (False, True)
        ],
        ranges.parse_ranges(dpviz.RunSpec(mechanism="automatic", ranges="private"), False)[0].mechanism,
        [
            [cal.budget, cal.proved_budget, cal.claimed_budget, cal.mu, len(cal.conditions), len(cal.notes)]
            for m in ("output-gaussian", "dbdp", "non-private")
            for of in (None, Budget(0.5, 0.0001))
            for cal in [
                ranges.add_range_cost(
                    dpviz.RunSpec(mechanism=m).build().calibrate(make_problem().setting, Budget(1.0, 0.001)),
                    Budget(3.0, 0.01),
                    of,
                    "means",
                )
            ]
        ],
        [e.release, e.what, e.status, e.call, len(e.conditions)],
        ranges.texts_of(pd.DataFrame({"k": ["x", None, "y", 3]}), ["k"])["k"].isna().to_numpy(),
        [ranges.undeclared_columns(d, e) for e in (False, True)],
        [s.ranges, s.categories, s.proposed],
    ]
    s = own.get(
        ranges.declare_privately(RunSpec(d, mechanism="dp-gd"), d, Budget(1.0, 1e-06), random.Random(3), True).dataset
    ).spec
    m = training.release(RunSpec(d, mechanism="dp-gd", epsilon=2.0), private_ranges=True)
    yield [s.ranges, s.categories, s.proposed, m.of_ranges, m.calibration.budget, m.rows, len(m.calibration.conditions)]
    c = own.get(d.name)
    d = replace(d, name=own.hold(replace(c, spec=replace(c.spec, proposed=("a", "c"), ranges={"a": (0, 40), "c": (0, 3000)}))))
    yield [
        s.proposed
        for e in (False, True)
        for s in [
            own.get(
                ranges.declare_privately(RunSpec(d.name, mechanism="dp-gd"), d, Budget(1.0, 1e-06), random.Random(3), e).dataset
            ).spec
        ]
    ]


def training_examples() -> Iterator[Any]:
    a = training._audited(
        resolve(RunSpec("teaching", mechanism="dp-gd")),
        make_problem().setting,
        RunSpec(mechanism="dp-gd").build().calibrate(make_problem().setting, Budget(1.0, 0.001)),
        50,
        ignore,
    )[0]
    yield from [
        " | ".join(
            str(assert_refused(training.encoder_of, replace(load_dataset("census-300"), looked_at=tuple("abcdef"[:k])), False))
            for k in (1, 3, 4)
        ),
        " | ".join(
            (
                str(
                    assert_refused(
                        training._require_proof,
                        dpviz.RunSpec(mechanism=m).build().calibrate(make_problem().setting, Budget(1.0, 0.001)),
                        asked,
                    )
                )
                for m, asked in (
                    ("dbdp", Budget(1.0, 0.001)),
                    ("majority", Budget(1.0, 0.001)),
                    ("dp-gd", Budget(0.5, 0.001)),
                    ("dp-gd", Budget(1.0, 0.0001)),
                )
            )
        ),
        [
            training._audited(resolve(RunSpec("teaching", mechanism=m)), make_problem().setting, c, k, ignore)[0]
            for m, k in (("dp-gd", 0),)
            for c in [RunSpec(mechanism=m).build().calibrate(make_problem().setting, Budget(1.0, 0.001))]
        ],
        [a.runs, a.confidence, a.counts, a.calibration.budget],
        "\n\n".join(
            card.card(replace(made, **changes)).replace(version.__version__, "")
            for made, all_changes in (
                (
                    training.release(RunSpec("teaching", mechanism="output-gaussian", lam=0.02, class_weight=2.5), tried=3),
                    ({}, {"searched": 1200}, {"audited": a, "of_ranges": Budget(0.125, 1e-6)}, {"tried": 1, "hardened": False}),
                ),
                (
                    training.release(RunSpec("census-300", mechanism="dbdp", epsilon=3.0), unproved=True),
                    ({}, {"tried": 20_000, "audited": a, "dataset": replace(load_dataset("census-300"), looked_at=("a_b", "c"))}),
                ),
                (
                    training.release(RunSpec("teaching", mechanism="cms-objective", intercept=False), tried=2),
                    ({}, {"audited": a}),
                ),
            )
            for changes in all_changes
        ),
        [
            grid.public_step(n, epsilon, lam) * 2.0**40
            for n, epsilon, lam in ((300, 0.5, 0.02), (300, 3.0, 0.02), (300, 0.5, 5.0), (7, 2.0, 2.5))
        ]
        + [grid.step_of(scale) * 2.0**44 for scale in (1e-9, 0.7, 1.0, 1.5, 700.0)],
        "\n".join(
            refusal(compute)
            for compute in (
                lambda: grid._doubles([2**53, 1], 0.5),
                lambda: grid._doubles([-(2**53), 1], 0.5),
                lambda: grid._doubles([2**53 - 1, 1], 0.5),
                lambda: grid._multiples(np.array([1.0, np.inf]), 0.5),
                lambda: grid._multiples(np.array([1.0, 1e308]), 1e-3),
            )
        ),
        [grid._multiples(np.array([0.24, 0.26, -0.74, 3.0]), 0.5), grid._doubles([3, -7, 0], 0.25)],
        [
            [spec.lam, spec.delta, spec.row_scaling]
            for given in ({}, {"lam": 0.02}, {"delta": 1e-9, "row_scaling": "clip"})
            for spec in [training._without_n(RunSpec("census-300", mechanism="output-gaussian", **given), 10**6, True)]
        ],
        [
            len(
                training.add_conditions(
                    RunSpec(mechanism=m).build().calibrate(make_problem().setting, Budget(1.0, 0.001)),
                    replace(load_dataset("census-300"), looked_at=conditions),
                    e,
                ).conditions
            )
            for m in ("dp-gd", "dbdp", "output-gaussian")
            for e in (True, False)
            for conditions in ((), ("x",))
        ],
        progress(lambda listen: training.release(RunSpec("teaching", mechanism="dp-gd"), audit_runs=40, monitor=listen)),
        [
            [
                m.rows,
                m.hardened,
                m.grid,
                m.tried,
                m.calibration.budget,
                m.calibration.proved_budget,
                len(m.calibration.conditions),
                len(m.model.privacy["conditions"]),
            ]
            for k, a, t in (("output-gaussian", True, 3), ("dp-gd", False, None), ("dbdp", True, 1))
            for m in [training.release(RunSpec("teaching", mechanism=k), all_rows=a, unproved=True, tried=t)]
        ],
    ]


def tuning_examples() -> Iterator[Any]:
    found = tuning.compare_search(dpviz.RunSpec("teaching", mechanism="output-gaussian", seeds=2), {"lam": [0.01, 0.1]})
    t = tuning._Tried.prepare(
        RunSpec("teaching", mechanism="dp-gd", split_seed=2), {"lam": [0.01, 0.1], "steps": [3, 7]}, True, 0.3
    )
    yield from [
        [found.each, found.default, found.naive, found.release.searched],
        tuning.split_positions(11, 0.3, 4),
        tuning.split_positions(3, 0.05, 0)[1],
        tuning.default_values(dpviz.RunSpec("teaching", mechanism="dp-gd")),
        [
            [m.accuracy, m.default, m.each, m.naive, m.release.model.constant_label]
            for m in [
                tuning.compare_search(
                    RunSpec("teaching", mechanism="majority", params={"private": True}, epsilon=2.0), {"lam": [0.01, 0.1]}
                )
            ]
        ],
        [len(t.runs), t.runs, [p.n for p in t.problems], len(t.scoring), [c.setting.lam for c in t.candidates], t.scoring.X[:2]],
    ]
    t = tuning._Tried.prepare(RunSpec("teaching", mechanism="dp-gd"), {"lam": [0.01]}, False, 0.3)
    yield [
        t.right(None),
        t.right((Fit(np.array([[[1.0, 2.0, 0.5]]]), None), Published(np.array([1.0, 2.0, 0.5]), 1e-09, True))),
        t.right(
            (
                Fit(np.array([[[1.0, 2.0, 0.5]]]), None, constant_label=np.array([[1.0]])),
                Published(np.array([1.0, 2.0, 0.5]), 1e-09, True),
            )
        ),
        t.settle(0, Budget(0.3, 1e-05)).spec,
    ]
    search = partial(tuning.private_search, RunSpec("teaching", mechanism="output-gaussian"), {"lam": [0.01, 0.1]})
    m = tuning.private_search(
        RunSpec("teaching", mechanism="dp-gd", epsilon=2.0),
        {"steps": [3, 7]},
        all_rows=True,
        held_out=0.4,
        mean_runs=3.0,
        distribution="geometric",
    )
    yield from [
        [min(shares(lambda listen: search(monitor=listen)))],
        [m.rows, m.searched, m.each, m.calibration.budget, len(m.calibration.conditions), m.spec.epsilon],
    ]


def releasing_examples() -> Iterator[Any]:
    shown, ranged, book = (
        RunSpec("iris", mechanism="dp-sgd", epsilon=90.0, seeds=2),
        RunSpec("iris", ranges="private"),
        mock.Mock(Ledger),
    )
    yield from [
        "\n".join(
            refusal(lambda spec=spec, how=how: training.release(spec, **how))
            for spec, how in (
                ("teaching", {}),
                (replace(shown, seed=3), {}),
                (shown, {"all_rows": 1}),
                (shown, {"unproved": "no"}),
                (shown, {"ranges_from_data": None}),
                (shown, {"private_ranges": 0}),
                (shown, {"tried": 0}),
                (shown, {"tried": 10_001}),
                (shown, {"ledger": "f"}),
                (shown, {}),
                (shown, {"public_n": 1, "all_rows": True}),
                (shown, {"public_n": 90}),
                (shown, {"public_n": 90, "all_rows": True, "ranges_from_data": True}),
                (shown, {"private_ranges": True}),
                (RunSpec("teaching", mechanism="dp-gd"), {"audit_runs": 39}),
            )
        ),
        "\n".join(
            refusal(lambda place=place: training.check_place(place))
            for place in (Path("/"), Path("/no/such/place"), Path("/dev/null/a"))
        ),
        [
            refusal(lambda: tuning.private_search(ranged, {"lam": [0.1, 0.2]}, private_ranges=True, ledger=book)),
            len(book.mock_calls),
            *(
                [made.accuracy > 0.5, made.default > 0.5, made.naive, made.each, made.release.searched]
                for made in [tuning.compare_search(shown, {"lam": [0.1, 0.2]})]
            ),
        ],
        [
            tuning._after_preparations(setup_for(spec).dataset, Budget(3.0, 1e-3))
            for spec in (shown, RunSpec("census-300", mechanism="dp-gd", ranges="private"))
        ],
        "\n".join(
            refusal(lambda most=most: mock.patch.object(model, "_MOST", most)(model.load_model)(__file__))[:23]
            for size in [Path(__file__).stat().st_size]
            for most in (size, size - 1)
        ),
        card._plain("a_b *c* <i> 1-2"),
        [
            [grid.step_of(s) for s in (1e-20, 0.3, 5.0)],
            [grid.public_step(*some) for some in ((100, 0.5, 0.1), (100, 4.0, 0.1), (100, 0.5, 3.0), (10**12, 1.0, 1.0))],
        ],
        grid.add_on_grid(np.array([0.3, -0.7]), 0.01, "gaussian", 0.002, random.Random(1)),
        grid.add_on_grid(np.array([0.3, -0.7]), 0.01, "gaussian", 0.0, random.Random(1)),
        grid.add_on_grid(np.array([0.3, -0.7]), 0.01, "gamma-sphere", float("nan"), random.Random(1)),
        [
            grid.add_grid_slack(built, built.calibrate(make_problem().setting, Budget(e, d)), 5).proved_budget
            for m, e, d in (
                ("output-gaussian", 1.0, 1e-05),
                ("cms-output", 2.0, 0.0),
                ("cms-output", 600.0, 0.0),
                ("dp-gd", 1.0, 1e-05),
            )
            for built in [dpviz.RunSpec(mechanism=m).build()]
        ],
        [grid._happens(a, b, random.Random(k)) for k in range(12) for a, b in ((0, 1), (1, 2), (5, 2))],
    ]
