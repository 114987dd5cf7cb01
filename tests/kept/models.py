"""Examples of `dpviz.models`."""

from collections.abc import Iterator
from typing import Any
from unittest import mock

import numpy as np
from support import make_problem
from support_kept import refusal

from dpviz.common import random
from dpviz.models import Rows, base, capabilities, feature_derivative, get_model, losses, problem, products, row_budget
from dpviz.models.rows import gram, row_blocks
from dpviz.models.solvers import lbfgs, many, minibatch, network_training


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
    yield from [
        # mini-batches of a network in single precision, to three digits
        [
            [len(ticks), max(ticks), np.round(theta, 3)]
            for one, ticks in [(make_problem(40, 3, 0.05, "mlp-2"), list[float]())]
            for theta in [
                mock.patch.multiple(network_training, _BATCH=8, _EPOCHS=3, _RATE=0.1)(network_training._adam)(
                    one.model, one.rows, 0.05, a[:2, : one.m], ticks.append
                )
            ]
        ],
        [lbfgs._inverse(np.array(data, np.float32), 0.5) for data in ([[2, 1], [1, 3]], [[0, 2], [2, 0]])],
        [
            [
                [loss.slope_bound, loss.curvature_bound, loss.third_bound, loss.centre, loss.sigmoid_slope, loss.probabilities],
                [loss.value(m), loss.slope(m), loss.curvature(m), loss.slope_inplace(m.copy()), loss.probability(m)],
                [loss.total(np.outer(f, a[7, :37])) for f in ([1.3], [60.0], [0.7, 300.0, 1.9], [50.0, 90.0])],
                [
                    loss.line_sums(f * a[:37, :3].astype(np.float32), f * a[:37, 5:8].astype(np.float32), 4, clip)
                    for f in (1, 30)
                    for clip in (0.8, 3.5, 70.0)
                ],
            ]
            for loss in (losses.Logistic(), losses.HuberHinge(), losses.HuberHinge(0.3))
            for m in [np.array([-50.0, -3.2, 0.0, 0.2, 0.5, 0.7, 1.0, 1.3, 1.5, 2.4, 90.0])]
        ],
        [losses.group_size(clip) for clip in (0.5, 1.0, 4.0, 5.0, 63.0, 64.0, 70.0)],
        [
            2.0**22
            * (losses.HuberHinge().line_sums(np.full((5, 1), -9, np.float32), np.zeros((5, 1), np.float32), 1, clip) / clip - 5)
            for clip in (0.75, 3.0)
        ],
        [
            [[one.start, one.stop] for one in row_blocks(n, replicas)]
            for n, replicas in ((0, 1), (5, 0), (2048, 1), (2049, 128), (4100, 129), (900, 2000))
        ],
        [
            [[at, len(part), part.X, part.weights, part.persons] for at, part in rows.parts(3)]
            + [
                rows.parts(1)[0][0],
                rows.parts(3) is rows.parts(3),
                rows.compute_once("k", lambda: 7),
                rows.compute_once("k", lambda: 8),
            ]
            + [rows.sample(12).X, rows.sample(12).weights, rows.extended, rows.extended32, rows.norms, rows.longest, len(rows)]
            + [
                [
                    len(part),
                    part.X,
                    part.y,
                    part.weights,
                    part.persons,
                    part.longest,
                    part.person_rows,
                    part.class_weights or 0,
                    part.looked_at,
                    part.signed_rows,
                    part.norms,
                    part.part("signed_rows", slice(1, 3)),
                    part.weights_with(part.y),
                ]
                for part in (rows.batch(np.array([30, 4, 4, 9])), rows.take(np.array([30, 4, 9])), rows.take(slice(3, 9)))
            ]
            for y in [np.where(a[:40, 9] > 0.4, 1.0, -1.0)]
            for o in (
                {"weights": np.arange(40) / 40},
                {"class_weights": (0.25, 1.0), "persons": np.arange(40) // 3, "looked_at": 2},
            )
            for rows in [Rows(a[:40, :3], y, 3, **o)]
        ],
        [
            gram(x, w)
            for x in (a[:9, :4], np.vstack([a, a, a, a, a])[:, :5])
            for w in (np.arange(len(x)) % 3 / 2.0, np.ones(len(x)))
        ],
        [
            [
                [budget(block, a[:2, block].astype(kind) ** 2) for block in (slice(0, 3), slice(3, 5))]
                + [
                    budget.limit,
                    budget.active,
                    budget.end_step(),
                    budget.spent,
                    budget.free,
                    (budget.up - 1) / np.finfo(kind).eps,
                ]
                for _ in range(4)
            ]
            + [row_budget.rule_of_part(budget, 2).spent, row_budget.rule_of_part(budget, 0) is budget]
            for kind in (np.float64, np.float32)
            for budget in [row_budget.RowBudget(5, 2, 1.5, slack=0.25, free=1, precision=kind)]
        ],
        [row_budget.rule_of_part(lambda block, norms: np.array([block.start, block.stop]), k)(slice(1, 4), a) for k in (0, 5)]
        + [row_budget.rule_of_part(None, 5)],
        [
            base.count_right(np.array([[0.5, 0.0], [0.0, -1.0], [-2.0, 3.0]]), np.array([[1.0], [-1.0], [1.0]])),
            base.count(a[:3] > 0.3),
            base.regulariser(a[:3], 0.3),
        ],
        "\n".join(refusal(lambda one=one: base._given(get_model("svm"), None, one)) for one in base.Ability),
        [
            [
                [
                    model.sum_batches(theta, rows, np.array([[7, 2, 9], [1, 7, 0]]), clip_norm=clip, precision=kind),
                    base.Model.sum_batches(
                        model, theta, rows, [np.array([7, 2, 9]), np.arange(30)], clip_norm=clip, precision=kind
                    ),
                ]
                for kind in (np.float64, np.float32)
                for clip in (0.2, np.inf)
            ]
            + [
                model.initial(theta.shape[2], random.spawn(3, 2)),
                model.from_one_start(5).initial(theta.shape[2], random.spawn(3, 2)),
            ]
            + [base.Model.measure(model, theta[0], rows), base.margins(model, theta[0], rows)]
            + [
                derivatives.score_products(theta[0, 0], rows, theta[0]),
                derivatives.hessian_product(theta[0, 0], rows, 0.3, theta[0]),
            ]
            + [capabilities.Derivatives.slopes(derivatives, theta[0, 0], rows)]
            + [capabilities.Derivatives.hessian_product(derivatives, theta[0, 0], rows, 0.3, theta[0])]
            + [capabilities.Derivatives.hessian(derivatives, theta[0, 0], rows, 0.3)]
            + [one.optimal_value, one.measure(theta[0]), one.objective(theta[0]), one.n, one.solved]
            + [problem.accuracy(model, theta[0], rows), one.replace_row(3, rows.X[0], -1.0).objective(theta[0])]
            + [
                [model.setting(50, d, lam).L, model.setting(50, d, lam).mu, model.setting(50, d, lam).linear]
                for d, lam in ((4, 0.3),)
            ]
            for model in map(get_model, ("logistic", "svm", "mlp-2"))
            for one in [problem.Problem(make_problem(30, model=model.id).rows, model, 0.2, 25)]
            for rows, derivatives in [(one.rows, model.derivatives)]
            for theta in [a[:6, : one.m].reshape(2, 3, one.m)]
        ],
        [
            [
                fact
                for fact in vars(problem.Problem(rows, get_model("svm"), 0.2, n).setting).values()
                if isinstance(fact, int | float)
            ]
            for n in (0, 25)
            for rows in (Rows(a[:9, :4], np.ones(9), 3, np.arange(9) / 9, looked_at=2), Rows(a[:9, :4], np.ones(9)))
        ],
        [
            [
                [
                    model.sum_gradient(
                        theta, rows, clip_norm=clip, weights=w, rule=lambda block, norms, t=theta: norms > len(t) / 4
                    ),
                    # few enough to be kept one by one: a sum of them that cancels differs on other processors
                    model.sum_gradient(theta.astype(np.float32), rows, clip_norm=clip, weights=w)[-1:, :12],
                ]
                for clip in (0.2, 0.8, np.inf)
                for w in (None, a[:30, : len(theta)] ** 2)
            ]
            + [budget.spent, budget.end_step(), model.sum_gradient(theta, rows, rule=budget), budget.spent, budget.end_step()]
            for model in map(get_model, ("logistic", "mlp-2", "mlp"))
            for rows, m in [(make_problem(30).rows, model.setting(30, 4, 0.1).m)]
            for theta in (a[:1, :m], a[:3, :m])
            for budget in [row_budget.RowBudget(30, len(theta), 0.1)]
        ],
        [
            [model.layer.features(m), model.layer.units(4), *model.layer.split(a[:2, :m])]
            + [
                [one.start, one.stop]
                for n, hidden in ((0, 3), (1536, 1), (1537, 1), (500, 4000))
                for one in model.layer.blocks(n, hidden)
            ]
            + [
                curvature.solve(a[5:7, :m]),
                *curvature.quadratic(rows),
                model.derivatives.score_products(a[7, :m], rows, a[:2, :m]),
            ]
            + [model.initial(m, random.spawn(8, 2))]
            for model in map(get_model, ("mlp-2", "mlp"))
            for rows, m in [(make_problem(30).rows, model.setting(30, 4, 0.1).m)]
            for curvature in [model.derivatives.curvature(a[7, :m], rows, 0.2)]
        ],
        [
            many.minimise_many(Rows(x, y, weights=weights), loss, np.array([0.1, 0.02]), a[:2, :4] / 9)
            for x, y in [
                (np.vstack([a] * 120)[:, :4] * np.cos(np.arange(7200))[:, None] / 5, np.where(np.arange(7200) % 3, 1.0, -1.0))
            ]
            for loss in (losses.Logistic(), losses.HuberHinge())
            for weights in (None, np.arange(7200) % 5 / 4)
        ],
        [
            minibatch.minibatch_descent(make_problem(30), 0.3 / np.arange(1.0, 13.0), 4),
            *(
                minibatch.minibatch_descent(
                    make_problem(30), np.outer(f, 1 / np.arange(1.0, 13.0)), 4, orders, average_every=every, lams=lams
                )
                for orders in [minibatch.permutations(random.spawn(3, 2), 30)]
                for f, lams in (([0.3], None), ([0.3, 0.8], np.array([0.2, 0.7])))
                for every in (0, 1, 2)
            ),
            minibatch.minibatch_descent(make_problem(30), 0.3 / np.arange(1.0, 13.0), 4, stops=(3, 8, 12)),
        ],
        [
            [
                many.newton(rows.signed_rows, loss, 0.1, linear=a[:2, :4] / 9, start=start, weights=weights)
                for loss in (losses.Logistic(), losses.HuberHinge(0.3))
                for start in (None, a[5, :4])
                for weights in (None, np.arange(len(rows)) % 3 / 2)
            ]
            + [
                many.minimise_many(rows, losses.Logistic(), np.array([0.1, 0.4, 0.05]), a[:3, :4] / 9, 1e-10, strict)
                for strict in (False, True)
            ]
            for rows in (make_problem(30).rows, Rows(np.vstack([a] * 7)[:, :4] / 5, np.where(np.arange(420) % 3, 1.0, -1.0)))
        ],
        [
            many.conjugate_gradients(
                lambda x: x @ (a[:5, :5] @ a[:5, :5].T + np.eye(5)), np.vstack([a[7, :5], np.zeros(5), a[9, :5]])
            )
        ],
        [
            feature_derivative.linear_mixed(a[0, :6], a[1, :6] ** 2, a[:6, 8 : 8 + d], w, constant=c)
            for d in (1, 3)
            for w in (a[4, :d], a[10:16, :d])
            for c in (0.0, 0.7)
        ]
        + [
            feature_derivative.network_mixed(a[:2, :4], a[5, :2], 0.3, a[6, :3], y, loss)
            for y in (1.0, -1.0)
            for loss in (losses.Logistic(), losses.HuberHinge())
        ],
        [products.rows_per_product(n, each) for n in (0, 7, 500, 5000, 99_999) for each in (0, 1, 40, 900, 70_000)]
        + [products.short_sums(a[:3, :50].astype(kind), a[:50, :4].astype(kind), 16) for kind in (float, np.float32)]
        + [products.by_replica(a[:5, :4], a[:many_of, :4]) - a[:5, :4] @ a[:many_of, :4].T for many_of in (1, 3, 33)]
        + [products.matmul(a[:50, :4], a[:4, :7]) - a[:50, :4] @ a[:4, :7]],
    ]
