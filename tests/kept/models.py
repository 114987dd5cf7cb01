"""Examples of `dpviz.models`."""

from collections.abc import Iterator
from typing import Any

import numpy as np
from support import make_problem

from dpviz.models import Rows, base, get_model
from dpviz.models.solvers import lbfgs


def models_examples() -> Iterator[Any]:
    a = np.random.default_rng(3).standard_normal((60, 60))
    for model in map(get_model, ("logistic", "svm", "mlp-3")):
        rows, m, noise = make_problem(30, model=model.id).rows, make_problem(model=model.id).m, a[None, :30, :4]
        yield from [
            [
                [
                    model.scores(theta, rows),
                    model.measure(theta, rows),
                    model.sum_gradient(theta, rows),
                    model.sum_gradient(theta, rows, clip_norm=0.3, weights=a[:30, :replicas] ** 2),
                    model.gradient_norms(theta, rows),
                    base.Model.gradient_norms(model, theta, rows) - model.gradient_norms(theta, rows),
                    model.line_losses(theta, theta[::-1], np.arange(1.0, replicas + 1), 3, rows, clip=0.8),
                    model.feature_noise.noisy_gradient(theta, rows, noise, np.linspace(0.1, 0.4, replicas)),
                    model.feature_noise.over_batches(
                        theta[None], rows, np.array([[4, 7, 2]]), noise, np.linspace(0.1, 0.4, replicas)
                    ),
                ]
                for replicas in (1, 2, 5)
                for theta in [a[:replicas, :m]]
            ],
            [
                f(at, rows)
                for at in (a[7, :m], a[:30, -m:])
                for f in (
                    model.derivatives.row_scores,
                    model.derivatives.score_gradients,
                    model.derivatives.slopes,
                    model.feature_noise.data_weights,
                )
            ],
            [model.derivatives.hessian(a[7, :m], rows, 0.2), model.derivatives.hessian_product(a[7, :m], rows, 0.2, a[:2, :m])],
            [fact for fact in vars(model.setting(50, 4, 0.02)).values() if isinstance(fact, int | float)],
            [
                [one.X, one.y, one.weights, one.weights_with(np.array([1.0, -1.0, -1.0]))]
                for known in [Rows(rows.X[:3], rows.y[:3], 2, persons=np.array([4, 9, 4]))]
                for weighted in [Rows(rows.X[:3], rows.y[:3], 2, class_weights=(0.5, 1.0), persons=np.array([4, 9, 4]))]
                for one in (
                    known.average_persons(),
                    weighted.average_persons(),
                    weighted.replace_row(1, np.full(rows.X.shape[1], 0.2), -rows.y[1]),
                    known.replace_row(np.array([0, 2]), np.zeros((2, rows.X.shape[1])), np.array([1.0, -1.0])),
                )
            ],
            [rows.take(np.array([3, 1])).X, Rows(rows.X, rows.y, class_weights=(0.5, 1.0)).weights],
        ]
    yield [lbfgs._inverse(np.array(data, np.float32), 0.5) for data in ([[2, 1], [1, 3]], [[0, 2], [2, 0]])]
