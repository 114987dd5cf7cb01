"""Examples of `dpviz.privacy`."""

import math
import random
from collections.abc import Iterator
from typing import Any

import numpy as np
import pandas as pd
from support_kept import kept_or_refused, refusal

from dpviz.common.random import spawn
from dpviz.privacy import (
    audit_bounds,
    budget,
    individual,
    noise,
    objective,
    one_run_audit,
    private_ranges,
    published_noise,
    search,
    utility_bounds,
)
from dpviz.privacy.accounting import distance, gaussian
from dpviz.privacy.accounting.events import Gaussian, Sampled
from dpviz.privacy.budget import Budget, Neighbouring, Status, corner, default_delta, status_sentence, trade_off
from dpviz.privacy.sensitivity import algorithm2, bounds, iteration


def private_ranges_examples() -> Iterator[Any]:
    yield from [
        *(
            [r.ranges, r.categories, vars(r.noise)]
            for rng in [np.random.default_rng(1)]
            for r in [
                private_ranges.private_ranges(
                    {"a": rng.normal(40, 10, 3000), "b": rng.integers(0, 3, 3000) * 1.0, "c": np.full(3000, 7.0)},
                    Budget(1.0, 1e-06),
                    random.Random(3),
                    categories={"k": pd.Series(list("xyyz") * 750)},
                )
            ]
        ),
        [
            vars(private_ranges.plan_noise(n, c, Budget(e, d)))
            for n, c, e, d in ((3, 0, 1.0, 1e-06), (0, 2, 1.0, 1e-06), (3, 2, 0.1, 1e-05))
        ],
        [
            private_ranges.shares(Budget(2.0, 1e-05)),
            private_ranges.total_budget(Budget(1.0, 1e-06), Budget(0.5, 1e-07)),
            private_ranges.total_budget(None, Budget(0.5, 1e-07)),
            private_ranges.total_budget(Budget(1.0, 1e-06), None),
        ],
        # few rows: what is seen in a group of bins only, or nowhere
        [
            private_ranges.private_ranges(
                {"a": np.r_[values, math.nan]}, Budget(1.0, 1e-06), random.Random(4), unseen=(-3.0, 5.0)
            ).ranges["a"]
            for values in ([0.3] * 9, np.linspace(-70.0, 900.0, 150), np.geomspace(1e-9, 1e15, 900), -np.geomspace(0.2, 9.0, 60))
        ],
        # numbers of rows at which noise decides
        [
            [
                n,
                kept_or_refused(
                    lambda c=columns, n=n, k=k: private_ranges.private_ranges(
                        c, Budget(1.0, 1e-06), random.Random(n), categories=k
                    )
                ),
            ]
            for n in range(20, 62, 3)
            for columns, k in (({"a": [0.3] * n}, None), ({}, {"k": list("x" * n + "y" * (n + 9))}))
        ],
        "\n".join(
            refusal(lambda c=columns, b=budget, k=categories: private_ranges.private_ranges(c, b, random.Random(5), categories=k))
            for columns, budget, categories in (
                ({}, Budget(1.0, 1e-06), None),
                ({"a": [1.0]}, Budget(1.0), None),
                ({"a": ["x"]}, Budget(1.0, 1e-06), None),
                ({"a": [[1.0]]}, Budget(1.0, 1e-06), None),
                ({"a": [1.0]}, Budget(1.0, 1e-06), None),
                ({}, Budget(1.0, 1e-06), {"k": [["x"]]}),
                ({}, Budget(1.0, 1e-06), {"k": ["x", None, "y"]}),
                ({"k": [1.0]}, Budget(1.0, 1e-06), {"k": ["x"]}),
            )
        ),
    ]


def privacy_examples() -> Iterator[Any]:
    yield from [
        " ".join(f"{default_delta(n):.15g}" for n in (2, 455, 9_999, 10_001, 39_073, 800_000, *(10**k for k in range(1, 12)))),
        " ".join(map(str, (Budget(1.0), Budget(0.123456, 1e-5), Budget(30.0, 0.01)))),
        " | ".join(status_sentence(s, k, w) for s in Status for k, w in ((0, ""), (1, ""), (1234, ""), (2, "short"))),
        [[corner(b), trade_off(b, np.array([0.0, 0.1, 0.3, 0.9]))] for b in (Budget(1.0), Budget(0.5, 0.01), Budget(800.0, 0.1))],
        [
            [distance.distance_by_profile(lambda e: -3 * e - 1, m) for m in (0.5, 20.0)],
            [distance.distance_by_divergence(kl) for kl in (0.01, 1.0, 9.0)],
            [distance.gamma_sphere_distance(0.4, s, d) for s in (0.1, 2.0) for d in (1, 5)],
            [gaussian.gaussian_budget(mu, Budget(0.5, 1e-5)) for mu in (1e-7, 0.3, 3.0)],
            # rounded down
            [gaussian.gaussian_budget(mu, Budget(0.5, 1e-5)).epsilon < gaussian.gaussian_epsilon(1e-5, mu) for mu in (0.3, 3.0)],
        ],
        [individual.gaussian_epsilons(1e-5, np.geomspace(1e-6, 9.0, count)) for count in (9, 4000, 4001)],
        [
            individual.PoissonPath(Sampled(Gaussian.of_rows(1.0, 0.7), 0.02)).divergence(shares)
            for shares in (np.array([[0.0, 0.3, 1.0], [0.51, 0.5, 0.013]]), np.linspace(0, 1, 50).reshape(10, 5))
        ],
        [noise.GAMMA_SPHERE.individual(np.array([0.1, 0.5]), 0.7, 1e-5, 0.4, 0.5), noise.GAMMA_SPHERE.mean_square(3)],
        [objective._two_rows(left, s) for left in (-1.0, 0.01, 0.5, 2.0) for s in (0.1, 0.7, 3.0)],
        [
            audit_bounds.clopper_pearson_upper([0, 3, 10], 10, 0.9),
            audit_bounds.clopper_pearson_lower([0, 3, 10], 10, 0.9),
            audit_bounds.epsilon_lower_bound([0, 3, 30], [1, 3, 40], 100, 0.001),
            audit_bounds.epsilon_ceiling(200, 1e-05),
            audit_bounds.power(Budget(1.0, 1e-05), 300, 0.5),
            audit_bounds.count_errors(np.arange(9.0), np.arange(9.0) + 3, 4.0),
            audit_bounds.best_threshold(np.arange(90.0), np.arange(90.0) + 60, trials=90, delta=0.001),
            audit_bounds.roc(np.arange(9.0), np.arange(9.0) + 3, points=7),
            audit_bounds.gaussian_claim(Budget(1.0, 1e-05)),
            audit_bounds.gaussian_claim(Budget(1.0)),
        ],
        [
            individual.gaussian_output(np.array([0.1, 0.5]), 0.7, 1e-05),
            individual.gaussian_output(np.array([0.1, 0.5]), 0.7, 1e-05, 0.4, 1.0),
            individual.gamma_output(np.array([0.1, 0.5]), 0.7),
            individual.gamma_output(np.array([0.1, 0.5]), 0.7, 0.4, 0.5),
            individual.gaussian_path(np.array([0.2, 3.0]), 10, 1.0, 2.0, 1e-05),
            individual.objective_ex_post(
                np.array([0.1]), np.array([0.2]), np.array([0.9]), np.array([0.3]), np.array([0.4]), 1.5
            ),
            individual.objective_publishable(np.array([0.1]), np.array([0.2]), np.array([0.9]), 2.0, 1.5, 0.001),
        ],
        [
            one_run_audit.one_run_p_value(60, 80, 100, 0.5, 0.0001),
            one_run_audit.one_run_p_value(60, 80, 100, 0.5),
            one_run_audit.one_run_epsilon_lower_bound(75, 80, 100, 0.0001),
            one_run_audit.one_run_mu_lower_bound(75, 80, 100),
            one_run_audit.one_run_gaussian_epsilon(75, 80, 100, 1e-05, 0.9),
        ],
        [
            utility_bounds.output_excess(0.1, 5, 0.3),
            utility_bounds.output_excess(0.1, 5, 0.3, noise.GAMMA_SPHERE),
            utility_bounds.descent_excess(1.0, 20, 0.1, 5, 0.05, 0.3, None),
            utility_bounds.descent_excess(1.0, 20, 0.1, 5, 0.05, 0.3, 1.5),
            utility_bounds.descent_excess_near_minimum(np.array([0.1, 0.3]), 20, 0.1, 1.5),
            utility_bounds.output_excess_near_minimum(np.array([0.1, 0.3]), 0.1),
        ],
        [
            [
                [p.delta(epsilon, s) for epsilon, s in ((0.1, 0.6), (0.35, 0.6), (2.5, 0.6), (2.5, 3.0))],
                p.log_delta(40.0, 3.0),
                p.sigma(Budget(0.8, 1e-05)),
                [p.epsilon(d, 1.7) for d in (1e-05, 0.9, 0.7 * p.delta(0.0, 1.7))],
            ]
            for p in (
                objective.PerturbedObjective(0.9, 0.25, 1.3, relation, bound)
                for relation in Neighbouring
                for bound in objective.BOUNDS
            )
        ],
        [objective.joint_remainder(e, 0.25, Lam) for e, Lam in ((1.0, 0.3), (0.2, 3.0), (0.02, 0.5), (3.0, 0.01), (0.5, 40.0))],
        [
            [f(left, s) for left, s in ((0.08, 0.4), (0.07, 0.4), (0.0, 0.7), (2.0, 0.4))]
            for f in (objective._folded, objective._one_sided)
        ],
        "\n".join(
            refusal(make)
            for make in (
                lambda: objective.PerturbedObjective(0.0, 0.25, 1.0),
                lambda: objective.PerturbedObjective(1.0, -0.1, 1.0),
                lambda: objective.PerturbedObjective(1.0, math.inf, 1.0),
                lambda: objective.PerturbedObjective(1.0, 0.25, 1.0, bound="none"),
                lambda: objective.PerturbedObjective(1.0, 0.0, 1.0).delta(0.5, 0.0),
                lambda: objective.PerturbedObjective(1.0, 0.25, 1.0).sigma(Budget(1.0)),
                lambda: objective.PerturbedObjective(1.0, 0.25, 1.0).sigma(Budget(0.2, 1e-5)),
                lambda: audit_bounds.Counts(1.0, 9.5, 9),
                lambda: audit_bounds.epsilon_ceiling(9, 0.0, 1.0),
                lambda: audit_bounds.power(Budget(1.0, 1e-05), 300, 1.1),
                lambda: audit_bounds.count_errors(np.arange(3.0), np.arange(4.0), 1.0),
                lambda: individual.gaussian_output(np.ones(1), 0.0, 1e-5),
                lambda: individual.PoissonPath(Sampled(Gaussian.of_rows(1.0), 0.1)).divergence(np.array([[1.1]])),
                lambda: individual.PoissonPath(Sampled(Gaussian.of_rows(1.0), 0.1)).divergence(np.array([0.1])),
                lambda: individual.objective_publishable(np.ones(1), np.ones(1), np.ones(1), 2.0, 1.5, 1.1),
                lambda: one_run_audit.one_run_p_value(2, 3, 4, 0.5, 1.0),
                lambda: one_run_audit.one_run_p_value(2, 3, 4, -0.5),
                lambda: one_run_audit.one_run_mu_lower_bound(2, 3, 4, 0.4),
                lambda: noise.LAPLACE.sample(spawn(5, 1), 2),
                lambda: noise.LAPLACE.prob_positive(1.0, np.ones(1), np.ones(1), 2),
                lambda: published_noise.input_perturbation_sigma(100, 30, 0.5, 1e-5, strong_convexity=0.0),
                lambda: utility_bounds.descent_excess(1.0, 20, 0.1, 5, 0.4, 0.3, None),
                lambda: utility_bounds.descent_excess(1.0, 20, 0.1, 5, 0.05, 0.5, 4.0),
                lambda: budget.check_delta(0.1, 10),
                lambda: budget.row_budget(1.0, 0.5, 10),
                lambda: budget.check_public_n(Neighbouring.ADD_REMOVE, None),
                lambda: budget.check_public_n(Neighbouring.REPLACE_ONE, 10),
                lambda: Budget(1.0, -0.1),
                lambda: search.smallest(lambda x: 1.0, 0.0, limits=(0.5, 2.0)),
            )
        ),
        [
            budget.check_public_n(Neighbouring.ADD_REMOVE, 10),
            budget.row_budget(0.7, 1e-4, 500),
            budget.row_budget(0.7, None, 5000),
        ],
        [budget.attack_accuracy(b) for b in (Budget(0.3, 0.1), Budget(0.3, 0.99), Budget(900.0))],
        # the bracket of a search: even steps or doubling ones, up or down, at a limit
        [
            [
                find(
                    lambda x, sign=sign: sign * (math.log(x) - 0.7),  # type: ignore[misc]
                    start,
                    step=0.3,
                    tolerance=1e-3,
                    margin=margin,
                    even=even,
                    limits=limits,
                )
                for start, margin, even, limits in (
                    (-5.0, 0.0, False, (1e-9, 1e9)),
                    (6.0, 0.01, True, (1e-9, 1e9)),
                    (0.2, 0.01, False, (0.3, 2.5)),
                    (-9.0, 0.0, True, (2.9, 3.5) if sign < 0 else (0.5, 1.5)),
                )
            ]
            for find, sign in ((search.smallest, -1), (search.largest_argument, 1))
        ],
        [
            [
                search._bracket(at, first, towards, 0.4, even, (-3.0, 5.0))
                for at, first in (
                    (lambda x: 1.1 - x, -0.5),
                    (lambda x: 1.1 - x, 2.0),
                    (lambda x: 1.0, 0.5),
                    (lambda x: -1.0, 0.5),
                )
                for towards in (1, -1)
                for even in (False, True)
            ]
        ],
        [
            [c.epsilon_lower_bound(1e-3, 0.9), c.mu_lower_bound(0.9), c.gaussian_epsilon_lower_bound(1e-3, 0.9), c.p_value(0.8)]
            for c in (audit_bounds.Counts(*errors, 200) for errors in ((3, 40.5), (90, 80), (0, 200), (60, 51), (70, 69)))
        ],
        [
            [r.mu_lower_bound(0.9), r.epsilon_lower_bound(1e-3, 0.9), r.p_value(0.8)]
            for r in (audit_bounds.Residuals(0.7, 55.0, 60), audit_bounds.Residuals(0.0, 55.0, 60))
        ],
        [
            *(
                f(0.01)
                for f in (
                    audit_bounds.Counts(3, 40.5, 200).epsilon_lower_bound,
                    audit_bounds.Residuals(3.0, 55.0, 60).epsilon_lower_bound,
                )
            ),
            *(c.mu_lower_bound() for c in (audit_bounds.Counts(3, 40.5, 200), audit_bounds.Residuals(0.7, 55.0, 60))),
            *(f(3, 10) for f in (audit_bounds.clopper_pearson_upper, audit_bounds.clopper_pearson_lower)),
            [f(audit_bounds.roc(np.arange(900.0), np.arange(900.0) + 300)["false_positive_high"]) for f in (len, np.mean)],
            [one_run_audit.one_run_mu_lower_bound(v, 80, 100) for v in (58, 70, 80)],
            [one_run_audit.one_run_gaussian_epsilon(v, 80, 100, 1e-05) for v in (58, 70)],
        ],
        [
            audit_bounds.best_threshold(np.full(4, 2.5), np.full(4, 2.5), trials=4, delta=0.001),
            audit_bounds.best_threshold(np.array([1.0, 4.0, 5.0]), np.array([2.0, 3.0, 4.0]), trials=3, delta=0.001),
            audit_bounds.best_threshold(
                np.arange(1900.0) % 977, np.arange(1900.0) % 977 + 60, trials=900, delta=0.1, confidence=0.8
            ),
            audit_bounds._tried(1500)[[0, -1]],
            audit_bounds._tried(4000),
            audit_bounds.count_errors(np.arange(9.0), np.arange(9.0) + 3, 3.5),
            audit_bounds.roc(np.arange(9.0) % 4, np.arange(9.0) % 5, 0.8, 5),
            audit_bounds.gaussian_claim(None),
            audit_bounds.epsilon_ceiling(200, 0.3, 0.8),
            audit_bounds.power(Budget(3.0, 1e-02), 90, 0.4, 0.8),
            audit_bounds.epsilon_lower_bound([0, 50], [100, 49], 100, 0.2, 0.8),
        ],
        [
            one_run_audit.one_run_p_value(0, 80, 100, 0.5, 0.01),
            one_run_audit.one_run_p_value(70, 80, 100, 700.0, 0.01),
            one_run_audit.one_run_p_value(80, 80, 4000, 0.3, 1e-9),
            one_run_audit.one_run_epsilon_lower_bound(42, 80, 100),
            one_run_audit.one_run_epsilon_lower_bound(65, 80, 100, 0.01, 0.8),
            [one_run_audit.one_run_mu_lower_bound(v, 80, 100, 0.8) for v in (42, 60)],
            one_run_audit.one_run_gaussian_epsilon(42, 80, 100, 1e-05),
            [one_run_audit.possible(v, 30, 40, 0.07, lambda x: x**1.5) for v in range(0, 31, 3)],
        ],
        [
            [family.prob_positive(s, np.array([-0.3, 0.0, 0.8]), np.array([0.7, 0.2, 0.4]), m), family.mean_square(m)]
            for family in (noise.GAUSSIAN, noise.GAMMA_SPHERE)
            for s, m in ((0.0, 3), (0.9, 3), (0.9, 19), (0.9, 20), (0.9, 300), (0.9, 301))
        ],
        [family.sample(spawn(5, 2), 3) for family in (noise.GAUSSIAN, noise.GAMMA_SPHERE)],
        [
            noise.GAUSSIAN.individual(np.array([0.1, 0.5]), 0.7, 1e-5, 0.4, 0.5),
            noise.LAPLACE.individual(np.ones(1), 1.0, 0.1, 1.0, 1.0),
        ],
        [
            published_noise.input_perturbation_sigma(100, 30, 0.6, 1e-5, lipschitz=1.3, c=2.3),
            published_noise.input_perturbation_sigma(100, 30, 0.6, 1e-5, lipschitz=1.3, strong_convexity=0.07, c=2.3),
            published_noise.dbdp_sigma(0.3, 30, 0.6, 1e-5, lipschitz=1.3, c=2.3),
            published_noise.sgd_sigma(100, 30, 0.6, 1e-5, lipschitz=1.3, c=2.3),
            published_noise.contribution_sigma(100, 7, 0.2, 0.6, 1e-5, lipschitz=1.3),
            published_noise.pidp_passes(np.array([[0.01, -0.5], [0.03, 0.02], [0.05, -0.06], [-0.07, 0.01]]), 0.7, 0.6, 0.03),
            published_noise.pidp_threshold(0.7, 0.6, 0.03),
            published_noise.ratio_norm(np.array([[0.5, 0.0], [0.4, 0.0]]), np.array([[0.1, 0.0], [-0.1, 0.2]])),
            published_noise.ratio_norm(np.array([[0.5, 0.3], [0.4, 0.7]]), np.array([[0.1, -0.2], [-0.4, 0.0]])),
            published_noise.largest_log_ratio(np.array([[0.5, 0.3], [0.4, 0.7]]), np.array([[0.1, -0.2], [-0.4, 0.2]])),
        ],
        [
            utility_bounds.descent_excess(0.6, 7, 0.1, 5, 0.3, 0.3, 1 / 0.3),
            utility_bounds.descent_excess_near_minimum(np.array([0.1, 0.3]), 7, 0.2, 10.0),
        ],
        [
            bounds.cms(100, 0.1),
            bounds.zhang(100, 0.1, 0.4),
            bounds.gradient_descent(100, 20, 1.5, 0.1, 0.4),
            bounds.proposition2(1.5, 10, 8, 0.1, 0.4),
            bounds.step_recursion(np.full(10, 0.5), 5, 20, 0.1, 0.4),
            bounds.logistic_diameter(0.7),
            bounds.logistic_worst_pair(0.7),
            bounds.minimiser_radius(0.2),
            bounds.cms_refined(100, 0.1),
            bounds.balanced_batches(103, 10),
        ],
        vars(bounds.step_trace(np.full(10, 0.5), 5, 20, 0.1, 0.4, 1.0, 3)),
        [
            bounds.cms(100, 0.1, 0.7),
            bounds.zhang(100, 0.1, 0.4, 0.7),
            bounds.gradient_descent(100, 20, 5.0, 0.0, 0.4, 0.7),
            [bounds.proposition2(step, 10, 8, 0.1, 0.4, 0.7) for step in (2.5, 4.9)],
            bounds.proposition2(2.5, 10, 1, 0.4, 0.4),
            [bounds.logistic_diameter(r) for r in (0.0, 3.0, 900.0)],
            [bounds.logistic_worst_pair(r) for r in (0.2, 3.0)],
            [bounds.minimiser_radius(lam) for lam in (0.9, 2.0)],
            [bounds.balanced_batches(n, b) for n, b in ((7, 9), (9, 9), (30, 4))],
        ],
        [
            [
                bounds.wu_bolt_on(rule, passes=3, batch_size=5, batches=4, mu=0.1, L=0.4, G=0.7, step=1.5, n=n, decay=0.3),
                bounds.wu_steps(rule, passes=3, batches=4, mu=0.1, L=0.4, step=1.5, n=23, decay=0.3),
            ]
            for rule in bounds.WU_RULES
            for n in (None, 23)
        ],
        bounds.wu_bolt_on("sc-constant", passes=3, batch_size=5, batches=4, mu=0.4, L=0.4, step=2.5),
        bounds.step_recursion(np.linspace(0.1, 1.9, 10), 5, 20, 0.1, 0.4, 0.7),
        vars(bounds.step_trace(np.linspace(0.1, 1.9, 40), 20, 5, 0.1, 0.4, 0.7)),
        "\n".join(
            refusal(make)
            for make in (
                lambda: bounds.zhang(100, 0.0, 0.4),
                lambda: bounds.zhang(100, 0.5, 0.4),
                lambda: bounds.gradient_descent(100, 20, 1.5, -0.1, 0.4),
                lambda: bounds.gradient_descent(100, 0, 1.5, 0.1, 0.4),
                lambda: bounds.proposition2(5.0, 10, 8, 0.1, 0.4),
                lambda: bounds.wu_bolt_on("none", passes=3, batch_size=5, batches=4, L=0.4),
                lambda: bounds.wu_bolt_on("convex-constant", passes=3, batch_size=5, batches=4, L=0.4, step=5.1),
                lambda: bounds.wu_bolt_on("sc-constant", passes=3, batch_size=5, batches=4, mu=0.1, L=0.4, step=2.6),
                lambda: bounds.wu_bolt_on("convex-sqrt", passes=3, batch_size=5, batches=4, L=0.4, decay=1.0),
                lambda: bounds.wu_steps("sc-decreasing", passes=3, batches=4, mu=0.0, L=0.4),
                lambda: bounds.step_recursion(np.ones(9), 5, 20, 0.1, 0.4),
                lambda: bounds.step_recursion(np.zeros(10), 5, 20, 0.1, 0.4),
                lambda: bounds.logistic_diameter(-1.0),
                lambda: algorithm2.Algorithm2(0, 4, 1.5, 5, 0.1, 0.4),
                lambda: algorithm2.Algorithm2(3, 0, 1.5, 5, 0.1, 0.4),
                lambda: algorithm2.Algorithm2(3, 4, 0.0, 5, 0.1, 0.4),
                lambda: algorithm2.Algorithm2(3, 4, 1.5, 5, 0.1, 0.4, tau=-1),
                lambda: algorithm2.Algorithm2(3, 4, 1.5, 5, 0.1, 0.4, decay=1.1),
                lambda: algorithm2.Algorithm2(3, 4, 1.5, 5, 0.1, 0.4).trace([]),
                lambda: algorithm2.Algorithm2(3, 4, 1.5, 5, 0.1, 0.4).trace([0]),
                lambda: algorithm2.Algorithm2(3, 4, 1.5, 5, 0.1, 0.4).trace([5]),
                lambda: algorithm2.Algorithm2(10**6, 11, 1.5, 5, 0.1, 0.4).trace([5]),
            )
        ),
        # all passes in whole windows or not, averaged, restarted or both, with a shared or a long step
        [
            [a.by_position(), [vars(a.trace(at)) for at in (None, [1, 4])]]
            for tau, average, restart, decay, epochs in (
                (0, True, True, 1.0, 5),
                (2, True, True, 0.6, 5),
                (2, True, False, 0.6, 6),
                (2, False, True, 0.6, 5),
                (3, True, True, 0.0, 2),
            )
            for a in [algorithm2.Algorithm2(epochs, 4, 1.5, 5, 0.1, 0.4, 0.7, tau, average, restart, decay)]
        ],
        [
            algorithm2.Algorithm2(3, 26, 1.5, 5, 0.1, 0.4).trace().positions,
            algorithm2.contraction(np.array([0.5, 4.5, 6.0]), 0.1, 0.4),
            algorithm2.geometric(np.array([0.0, 0.3, 1.0, 1.2]), 5),
            algorithm2.log_factor(np.array([0.0, 0.3, 0.5, 0.9, 1.4])),
            [algorithm2.epoch_steps(7, 1.5, restart, 0.6) for restart in (0, 3)],
        ],
        [iteration.iteration(np.array([1.5, 0.9, 0.7]), 4, 5, mu, L, 0.7) for mu, L in ((0.1, 0.4), (0.0, 2.0))],
    ]
