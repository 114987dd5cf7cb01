"""Examples of `dpviz.influence`."""

from collections.abc import Iterator
from dataclasses import replace
from typing import Any

import numpy as np
from support import make_problem
from support_kept import progress, refusal

from dpviz import influence
from dpviz.influence import functions, leave_one_out
from dpviz.models import Rows


def influence_examples() -> Iterator[Any]:
    yield from [
        *(
            [
                i.norm,
                i.leverage,
                i.newton_norm,
                i.order,
                i.flip_norm,
                i.frame(),
                i.parameters([1, 3]),
                i.objective_change,
                i.own_loss_change,
                i.training_loss_change,
                i.loss_change(make_problem(8, seed=3).rows),
                i.score_change(make_problem(8, seed=3).rows),
                i.residual,
                i.exact_curvature,
            ]
            for i in [functions.influence_of(make_problem())]
        ),
        *(
            [
                [r.change, r.norm, r.loss_change(make_problem(8, seed=3).rows), r.score_change(make_problem(8, seed=3).rows)],
                [r.certificate, r.steps, r.index, r.rank_correlation(np.array([3.0, 1.0, 2.0]))],
            ]
            for r in [
                functions.influence_of(make_problem()).leave_one_out([2, 5, 11]),
                functions.influence_of(make_problem(25, 4, 0.02, "svm")).leave_one_out([0, 7, 24], tolerance=1e-3),
            ]
        ),
        # by products, beside the minimum, at weights of labels, and a network with each of its inverses
        *(
            [
                [
                    i.solver,
                    i.at_minimum,
                    i.residual,
                    i.norm,
                    i.newton_norm,
                    i.published_norm,
                    i.order,
                    i.leaders and i.leaders.index,
                ],
                [i.parameters([1, 3], kind) for kind in ("influence", "newton", "published")],
                [i.effect(np.linspace(0.1, 0.9, i.problem.m), newton=newton) for newton in (False, True)],
                [
                    i.leverage,
                    i.own_loss_change,
                    i.objective_change,
                    i.flip_norm,
                    i.exact_curvature,
                    i.frame().index[[0, -1]].tolist(),
                ],
            ]
            for i in (
                functions.influence_of(make_problem(25, 3, 0.02), solver="cg", row_ids=np.arange(25) * 7),
                functions.influence_of(make_problem(25, 3, 0.02, "svm"), np.linspace(0.3, -0.2, 3)),
                functions.influence_of(
                    replace(
                        make_problem(25, 3, 0.02),
                        rows=Rows(make_problem(25, 3).rows.X, make_problem(25, 3).rows.y, 0, None, (0.3, 0.8)),
                    )
                ),
                *(
                    functions.influence_of(make_problem(25, 3, 0.02, "mlp-2"), np.linspace(-0.7, 0.9, 11), solver=solver)
                    for solver in ("auto", "cg", "factored")
                ),
            )
        ),
        functions.influence_of(make_problem(25, 3, 0.02)).parameters([1, 3]),
        functions.influence_of(make_problem(25, 3, 0.02), solver="dense").solve(np.eye(3)[:1]),
        "\n".join(
            refusal(make)
            for make in (
                lambda: functions.influence_of(make_problem(), solver="none"),
                lambda: functions.influence_of(make_problem(), solver="factored"),
                lambda: functions.influence_of(make_problem(), np.ones(3)),
                lambda: functions.influence_of(make_problem(), np.full(4, np.inf)),
                lambda: functions.influence_of(make_problem(), np.full(4, np.nan)),
                lambda: functions.influence_of(make_problem()).parameters([40]),
                lambda: functions.influence_of(make_problem()).parameters([-1]),
                lambda: functions.influence_of(make_problem()).parameters([0.5]),
                lambda: functions.influence_of(make_problem()).parameters([1], "none"),
                lambda: functions.influence_of(make_problem(), np.ones(4)).leave_one_out([1]),
                lambda: functions.influence_of(make_problem(25, 3, 0.02, "mlp-2"), np.linspace(-0.7, 0.9, 11)).leave_one_out([1]),
            )
        ),
        [
            leave_one_out.error_bound(make_problem().setting),
            leave_one_out.row_gradients(make_problem().model, np.ones(4), make_problem().rows),
            leave_one_out.row_gradients(make_problem(3).model, np.arange(12.0).reshape(3, 4) / 9, make_problem(3).rows),
            [leave_one_out.error_bound(make_problem(30, 3, 0.2, model).setting) for model in ("logistic", "svm")],
            vars(influence.influence_of(make_problem()).leave_one_out([])),
        ],
        progress(lambda listen: influence.influence_of(make_problem()).leave_one_out([2, 5, 11], monitor=listen)),
    ]
