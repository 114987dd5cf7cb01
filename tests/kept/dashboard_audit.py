"""Examples of `dpviz.dashboard`: the pages of audits and accounting."""

from dataclasses import replace
from types import SimpleNamespace as ns
from unittest import mock

import numpy as np
import pandas as pd
from support_kept import drawn, view

import dpviz
from dpviz.auditing.runs import one_run_of
from dpviz.dashboard.accounting import comparison, ledger
from dpviz.dashboard.audit import all_mechanisms, attack, one_training, ordinary_rows
from dpviz.experiments.run.metrics import METRICS
from dpviz.experiments.run.setup import calibration_of, setting_of
from dpviz.experiments.studies import noise_comparison
from dpviz.figures import style
from dpviz.spending.ledger import Contents
from dpviz.spending.of_run import entry_of


def audit_examples() -> list[object]:
    spec, theme = dpviz.RunSpec("teaching", mechanism="dp-gd", seeds=2), style.LIGHT
    cal = calibration_of(dpviz.RunSpec("teaching", mechanism="dp-gd", epsilon=0.5))
    return [
        "\n".join(
            " ".join(attack.sentence(replace(r, allowed=a), p, s, over=o))
            for s in [dpviz.RunSpec("teaching", mechanism="output-gaussian", seeds=1)]
            for r in [dpviz.audit_run(s, runs=40)]
            for p in [ns(asks="which row was there")]
            for a in (r.guessed_right - 0.01, r.guessed_right + 0.01, None)
            for o in (True, False)
        ),
        "\n".join(
            " ".join(attack.sentence(r, ns(asks="which row was there"), s, over=True))
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
        [
            attack._ceiling(ns(counts=ns(trials=t), requested=500, runs=r, **rest))
            for t, r in ((0, 0), (20, 40), (250, 500), (7, 31))
            for rest in [{"calibration": cal, "counts_confidence": 0.9}]
        ],
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
            mock.patch.object(attack.charts, "chart", lambda _, *given, **__: attack.st.code(f"{given[:2]}"))(view)(
                attack._clouds, ns(cloud=pd.DataFrame({"side": [0, 0, 1, 1], "u": u})), ns(name=name), spec, theme
            )
            for name, u in (("without", [0, 1, 2.5, 3.5]), ("two-rows", [0, 1, -2.5, -1.5]), ("two-rows", [1, 1, 2, 2]))
        ),
        "\n".join(
            mock.patch.object(all_mechanisms.charts, "chart", lambda _, *given: attack.st.code(f"{given[:2]}"))(
                mock.patch.object(all_mechanisms.tables, "table", lambda rows, heads: attack.st.code(f"{rows} {heads}"))(
                    mock.patch.object(all_mechanisms.pictures, "board", lambda rows, _: attack.st.code(f"{rows}"))(view)
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
        one_training.detectable_noise(ns(visible_share=None, most=3.214)),
        "\n".join(
            mock.patch.object(attack, "attacks_persons", lambda _, persons=persons: persons)(
                mock.patch.object(
                    attack.watching,
                    "draw_live",
                    lambda task, draw, *rest, **more: [attack.st.code(f"{task} {rest} {more}"), draw()],
                )(view)
            )(lambda draw=draw: draw(ns(results=[]), spec))
            for draw in (attack.headline, lambda task, spec: ordinary_rows._headline(task, spec, 1024))
            for persons in (True, False)
        ),
        "\n".join(view(attack.other_run, ns(attack=a, spec=spec)) for a in (None, ns(accuracy=0.731))),
    ]


def accounting_examples() -> list[object]:
    specs = {n: dpviz.RunSpec("teaching", mechanism=n, seeds=2) for n in ("dp-gd", "cms-output", "majority")}
    spec, metric, theme, limit = specs["dp-gd"], METRICS["accuracy"], style.LIGHT, dpviz.Budget(0.9, 1e-5)
    cal = calibration_of(half := replace(spec, epsilon=0.5))
    entry = entry_of(half.build(), setting_of(half), cal, "this run")
    held = [Contents("people", "row", cal.neighbouring, limit, (entry,) * k) for k in (0, 1, 4)]
    return [
        " ".join(
            ledger._verdict(total, dpviz.Budget(total.budget.epsilon * share, 1e-5))
            for total in [held[2].total()]
            for share in (1 - 5e-10, 1 - 1.5e-9)
        ),
        "\n".join(ledger.sentence(one, total, e) for one in held for total in [one.total()] for e in (None, limit, one.limit)),
        "\n".join(" | ".join(comparison._published(row)) for row in noise_comparison.published_noise(half)),
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
                        lambda fig, *given, **_: attack.st.code(
                            f"{given[:2]} {given[2]()} {fig.layout.xaxis.range} {fig.data[0].x} {fig.data[0].text} "
                            f"{fig.data[0].marker.line.width} {fig.data[0].marker.pattern.shape}"
                        ),
                    )(
                        mock.patch.object(
                            comparison.tasks,
                            "observe",
                            lambda *given, ask, m=m, values=values, **more: [
                                attack.st.code(f"{given[:2]} {more['given']} {ask}"),
                                ({m.column: np.array(values)}, True),
                            ][1],
                        )(view)
                    )
                )
            )(
                comparison.usefulness,
                ns(run=spec, mechanism=ns(id="dp-gd"), calibration=ns(noise_scale=0.7)),
                theme,
                [
                    ns(name=name, sigma=sigma, status=status)
                    for name, sigma, status in (
                        ("A", 0.7, calibration_of(spec).status),
                        ("B", np.inf, None),
                        ("C", 0.70008, None),
                    )
                ],
            )
            for m, values, base in (
                (metric, [[0.7, 0.72], [0.6, 0.81]], [0.93, 0.52]),
                (METRICS["log-loss"], [[0.7, 0.72], [0.6, 0.81]], [0.33, np.nan]),
                (metric, [[0.7, 0.72]], [0.93, 0.52]),
                (METRICS["roc-auc"], [[0.7, 0.72], [0.6, np.nan]], [0.93, np.nan]),
            )
        ),
        "\n".join(
            mock.patch.object(
                ledger.tasks, "current_result", lambda *given, **more: [attack.st.code(f"{given[:2]} {more['given']}"), None][1]
            )(view)(ledger._draw_total, specs[name], calibration_of(specs[name]), theme, file, **state)
            for name, file, state in (
                ("majority", None, {}),
                ("dp-gd", ns(getvalue=lambda: b"x = 1"), {}),
                ("dp-gd", None, {"releases": "1"}),
                ("dp-gd", None, {}),
            )
        ),
        "\n".join(
            mock.patch.object(comparison.tables, "table", lambda rows, heads: attack.st.code(f"{rows} {heads}"))(view)(
                comparison.own_noise, ns(calibration=calibration_of(specs[name]), mechanism=specs[name].build())
            )
            for name in ("cms-output", "majority")
        ),
        "\n".join(
            mock.patch.object(comparison, "setting_of", mock.Mock(return_value=ns(n=n, m=1000)))(
                mock.patch.object(comparison.tasks, "observe", lambda *_, ask, **__: [attack.st.code(ask), (None, False)][1])(
                    view
                )
            )(comparison.usefulness, ns(run=spec, mechanism=ns(id="dp-gd"), calibration=calibration_of(spec)), theme, [])
            for n in (199, 200)
        ),
        [drawn(ledger._parts(one, one.total(), most, spec, theme)) for one in held[1:] for most in (None, limit)],
    ]
