"""Examples of `dpviz.influence`."""

from collections.abc import Iterator
from typing import Any

import numpy as np
from support import make_problem
from support_kept import progress

from dpviz import influence
from dpviz.influence import functions, leave_one_out


def functions_examples() -> Iterator[Any]:
    i = functions.influence_of(make_problem())
    r = functions.influence_of(make_problem()).leave_one_out([2, 5, 11])
    yield from [
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
        ],
        [r.change, r.norm, r.loss_change(make_problem(8, seed=3).rows), r.score_change(make_problem(8, seed=3).rows)],
    ]


def leave_one_out_examples() -> Iterator[Any]:
    yield from [
        [
            leave_one_out.error_bound(make_problem().setting),
            leave_one_out.row_gradients(make_problem().model, np.ones(4), make_problem().rows),
        ],
        progress(lambda listen: influence.influence_of(make_problem()).leave_one_out([2, 5, 11], monitor=listen)),
    ]
