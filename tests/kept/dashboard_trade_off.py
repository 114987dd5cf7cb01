"""Examples of `dpviz.dashboard`: the pages of the trade-off and of one run."""

from dataclasses import replace
from types import SimpleNamespace as ns
from unittest import mock

import numpy as np
import pandas as pd
from support_kept import refusal, view

import dpviz
from dpviz.dashboard.frame import page, sidebar
from dpviz.dashboard.jobs import cached_runs, job
from dpviz.dashboard.one_run import sections, views
from dpviz.dashboard.trade_off import curves, method_comparison, presets, running, settings, tuning
from dpviz.experiments.run.metrics import METRICS
from dpviz.experiments.run.setup import calibration_of
from dpviz.experiments.studies.guarantees import Guaranteed, Measured
from dpviz.figures import style


def trade_off_examples() -> list[object]:
    problem, theme, metric = dpviz.InvalidInput("steps", "must be *whole*", "Give 3."), style.LIGHT, METRICS["accuracy"]
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
    outcomes = [
        cached_runs.outcome(dpviz.RunSpec(d, mechanism=m, seeds=2, epsilon=e))
        for d, m, e in (
            ("teaching", "dp-gd", 0.5),
            ("teaching", "cms-output", 2.0),
            ("teaching", "dbdp", 2.0),
            ("iris", "dp-gd", 0.5),
        )
    ]
    return [
        "\n".join(sections.sentence(a, b) for a in outcomes for b in outcomes),
        "\n".join(" | ".join(sections._settings(a.spec, b.spec)) for a in outcomes[:2] for b in outcomes),
        " ".join(sections._mean(np.array(some)) for some in ([0.7], [0.7, 0.8])),
        "\n".join(
            [
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
        [
            [sum(one.compute_once(k, lambda k=k: k) for k in (7, 7, *range(count))), len(one._made)]
            for count in (200, 201)
            for one in [running.SweepJob("key", [], None)]
        ],
        "\n".join(
            view(settings.apply_chosen_knobs, **{"mechanism": "dp-gd", "knobs": text} | more)
            for text, more in (("bad", {}), ("dp-gd.steps:7", {}), ("dp-gd.steps:7", {"dp-gd.steps": 9}), ("dbdp.steps:7", {}))
        ),
        "\n".join(
            mock.patch.object(
                tuning.watching, "status", lambda _, state=state: ns(state=job.State[state], done=0.3, problems=[])
            )(view)(tuning._draw, ns(tables=dict), grid, spec, chosen, theme)
            for state in ("RUNNING", "CANCELLED", "DONE")
        ),
        "\n".join(
            view(lambda: [one.key for one in settings.fields_of(spec)], **{"from": low, "to": high, "points": points})
            for low, high, points in (("1", "1", "2"), ("1", "1", "1"), ("2", "1", "3"), ("0.5", "1", "3"))
        ),
        "\n".join(
            mock.patch.object(tuning.tables, "table", lambda rows, heads: page.st.code(f"{rows} {heads}"))(
                mock.patch.object(
                    tuning.tasks,
                    "current_result",
                    lambda *given, ask, naive=naive, **_: [
                        page.st.code(f"{given[:2]} {ask}"),
                        ns(
                            release=ns(spec=replace(spec, lam=0.01), calibration=ns(proved_budget=dpviz.Budget(1.0, 1e-5))),
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
            f"{one._attempt(ns(attempt=mock.Mock(side_effect=[made]), epsilons=(0.5, 2.0), spec=spec), None).attrs} "
            f"{len(one.store.mock_calls)}"
            for made in (problem, pd.DataFrame({"a": [1]}))
            for one in [running.SweepJob("key", [], mock.Mock())]
        ),
        "\n".join(  # all that the page asks for, and nothing
            view(lambda: page.st.code(f"{settings.read({one.key: one for one in settings.fields_of(spec)}, spec)}"), **state)
            for state in (
                {
                    "methods": "dp-gd,cms-output",
                    "knobs": "dp-gd.steps:7",
                    "from": "0.3",
                    "to": "3.0",
                    "points": "2",
                    "want": "70.5",
                }
                | {"shown": "objective", "band": "mean", "odds": "true", "tune": "lam,step_size", "by": "optimality_gap"}
                | {"figure": min(presets.catalogue.PANELS)},
                {"metric": "log-loss", "want": "0.4", "shown": "metric"},
                {},
            )
        ),
        "\n".join(
            " ".join(
                f"{[mark.name for mark in one.marks]} {[(part.start, part.end) for part in one.parts]}" for one in pair if one
            )
            for run, a in (
                *((outcomes[0], a) for a in outcomes[:3]),
                (outcomes[0], outcomes[1].measured_by("log-loss")),
                (outcomes[2], outcomes[1]),
            )
            for pair in [views._with_overlay(views._useful(run)[0], views._attacked(run)[0], run, a)]
        ),
        "\n".join(
            refusal(
                lambda able=able, found=found: found.append(
                    mock.patch.object(method_comparison, "replace", lambda _, mechanisms: mechanisms)(able)(
                        ns(named={"dp-gd": 1, "dbdp": 2}, epsilons=(0.7,), run=lambda *given: given)
                    )
                )
            )
            or f"{found}"
            for made in ([1, 1], [1, problem], [problem, 1], [problem, problem])
            for able in [
                mock.patch.object(method_comparison, "calibration_of", mock.Mock(side_effect=made))(method_comparison._able)
            ]
            for found in [[]]
        ),
        "\n".join(
            mock.patch.object(running.watching, "status", lambda job: job)(
                mock.patch.multiple(
                    running.watching, resume=lambda job: page.st.code("resumed"), text=lambda now, so_far: so_far
                )(
                    mock.patch.multiple(
                        running.st, button=lambda *given, pressed=pressed, **_: pressed, rerun=lambda: page.st.code("again")
                    )(view)
                )
            )(
                running.progress,
                running.View(
                    None, spec, None, ns(state=job.State[state], done=done, notices=notices, cells=[], problems=[]), chosen, theme
                ),
            )
            for state, done, notices, pressed in (
                *(("CANCELLED", 0.37, (), pressed) for pressed in (True, False)),
                ("RUNNING", 0.37, ("a *notice*",), False),
                ("RUNNING", 1.2, (), False),
                ("DONE", 1.0, (), False),
            )
        ),
        mock.patch.object(running.watching, "draw_live", lambda job, draw, every: [page.st.code(f"{job} {every}"), draw()])(view)(
            lambda: [
                running.draw_live(some, lambda one: page.st.code(f"{one.sweep}"), every=3.0)
                for some in (None, running.View(None, spec, "sweep", "job", chosen, theme))
            ]
        ),
        "\n".join(
            mock.patch.object(running.watching, "status", mock.Mock(side_effect=states))(
                lambda one=one, made=made: f"{[one.compute_once(name, made.__next__) for name in 'aaba']} {len(one._known)}"
            )()
            for one, made in [(running.View(None, spec, None, None, chosen, theme), iter("uvwx"))]
            for states in [
                [ns(version=version, state=ns(over=over)) for version, over in ((1, False), (1, False), (1, True), (2, True))]
            ]
        ),
    ]
