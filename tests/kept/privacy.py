"""Examples of `dpviz.privacy`."""

import random
from collections.abc import Iterator
from typing import Any

import numpy as np
import pandas as pd
from support import noisy_sums
from support_kept import progress

import dpviz
from dpviz.privacy import audit_bounds, individual, noise, objective, one_run_audit, private_ranges, utility_bounds
from dpviz.privacy.accounting import (
    curves,
    distance,
    division,
    gaussian,
    heterogeneous,
    mixture,
    rdp,
    repeated_selection,
    shuffle,
    tables,
)
from dpviz.privacy.accounting.events import Gaussian, Mixture, Sampled, Shuffled
from dpviz.privacy.budget import Budget, Neighbouring, Status, corner, default_delta, status_sentence, trade_off
from dpviz.privacy.sensitivity import bounds


def accounting_heterogeneous_examples() -> Iterator[Any]:
    yield from [
        [
            heterogeneous.total_epsilon(some, d)
            for some in (
                [Budget(0.5, 1e-06), Budget(0.2)],
                [noisy_sums(1.5, 0.1, 20), dpviz.privacy.accounting.events.Gaussian(1.0, 2.0)],
                [dpviz.privacy.accounting.events.PureEpsilon(0.4)] * 3,
            )
            for d in (1e-05, 0.01)
        ],
        heterogeneous.total_epsilon([noisy_sums(1.5, 0.1, 20), Gaussian.of_rows(1.0, 2.0)], 1e-05, Neighbouring.ADD_REMOVE),
        progress(
            lambda listen: heterogeneous.total_epsilon(
                [Budget(0.5, 1e-06), noisy_sums(1.5, 0.1, 20)], 1e-05, Neighbouring.REPLACE_ONE, listen
            )
        ),
    ]


def private_ranges_examples() -> Iterator[Any]:
    rng = np.random.default_rng(1)
    r = private_ranges.private_ranges(
        {"a": rng.normal(40, 10, 3000), "b": rng.integers(0, 3, 3000) * 1.0, "c": np.full(3000, 7.0)},
        Budget(1.0, 1e-06),
        random.Random(3),
        categories={"k": pd.Series(list("xyyz") * 750)},
    )
    yield from [
        [r.ranges, r.categories],
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
    ]


def accounting_examples() -> Iterator[Any]:
    yield from [
        curves.advantage(noisy_sums(1.5, 0.1, 20)),
        curves.advantage(noisy_sums(1.5, 0.1, 20), Neighbouring.ADD_REMOVE),
        curves.advantage(Gaussian(2.0, 3.0)),
        curves.advantage(Gaussian(2.0, 3.0), pure=0.2),
        curves.detections(Gaussian(2.0, 3.0), np.array([0.01, 0.3])),
        curves.detections(Gaussian(2.0, 3.0), np.array([0.01, 0.3]), pure=0.2),
        curves.detections(noisy_sums(1.5, 0.1, 20), np.array([0.01, 0.3])),
        [curves.best_order(event, 1e-05, "improved") for event in (Gaussian(2.0, 3.0), noisy_sums(1.5, 0.1, 20))],
        curves.best_order(Mixture((1.0, 2.0), (0.25, 0.75), 3.0), 1e-05, "mironov"),
        [
            curves.renyi(event)[1][::60]
            for event in (Gaussian(2.0, 3.0), noisy_sums(1.5, 0.1, 20), Mixture((1.0, 2.0), (0.25, 0.75), 3.0))
        ],
        [curves.advantage(noisy_sums(0.8, 0.0001, 100), pure=p) for p in (0.0, 0.3)],
        [
            curves.advantage(
                dpviz.privacy.accounting.events.Composed((noisy_sums(1.5, 0.1, 20), noisy_sums(2.0, 0.05, 3))), pure=p
            )
            for p in (0.0, 0.3)
        ],
        curves.advantage(Shuffled(dpviz.privacy.accounting.events.PureEpsilon(0.4), 50), pure=0.2),
        [
            division.composed_budget(Budget(0.5, 1e-06), 4),
            division.composed_budget(Budget(0.5, 1e-06), 4, 1e-06),
            division.exact_slack(0.5, 6, 2),
            division.random_search(0.5, 0.7),
            division.divide(Budget(2.0, 1e-05), 5),
            division.divide(Budget(2.0), 3),
        ],
        [
            mixture.mixture_delta(0.5, np.array([0.5, 1.0]), np.array([0.3, 0.7]), 2.0),
            mixture.mixture_sigma(Budget(1.0, 1e-05), np.array([0.5, 1.0]), np.array([0.3, 0.7])),
            mixture.mixture_epsilon(1e-05, np.array([0.5, 1.0]), np.array([0.3, 0.7]), 2.0),
            mixture.mixture_rdp_sigma(Budget(1.0, 1e-05), np.array([0.5, 1.0]), np.array([0.3, 0.7])),
        ],
        rdp.log_excess_moments(0.01, 0.8, np.array([1.1, 2.5, 7.3])),
        rdp.log_excess_moments(0.3, 4.0, np.array([1.1, 2.5, 7.3])),
        rdp.log_excess_moments(1e-06, 20.0, np.array([1.1, 2.5, 7.3])),
        rdp.log_excess_moments(0.01, 0.04, np.array([1.1, 2.5, 7.3])),
        rdp.sampled_gaussian(0.02, 1.2)[::40],
        rdp.opposite_rows(0.02, 0.9)[::40],
        rdp.opposite_rows(0.02, 4.5)[::40],
        [
            [r.mean, [r.draw(u) for u in (0.01, 0.5, 0.999)], repeated_selection.best_of(np.asarray(rdp.gaussian(0.2)), r, 1e-05)]
            for kind in repeated_selection.KINDS
            for r in [repeated_selection.repetitions(kind, 6.0)]
        ],
        repeated_selection.NegativeBinomial.with_mean(5.0, 0.3).probabilities(6),
        [
            shuffle.largest_local_epsilon(1000, 1e-06),
            shuffle.shuffled_epsilon(0.7, 5000, 1e-06),
            shuffle.central_epsilon(0.7, 5000, 1e-06),
            shuffle.local_epsilon_for(Budget(0.5, 1e-06), 1000),
            shuffle.extra_delta(0.7, 1e-09, 5000, 0.3),
            vars(shuffle.shuffled_gaussian(0.1, 50000, 1e-06)),
            shuffle.gaussian_mu_for(Budget(0.5, 1e-06), 5000),
        ],
        [
            [vars(o) for o in tables.options(e, Budget(epsilon, 1e-05))]
            for e, epsilon in (
                (noisy_sums(1.5, 0.1, 20), 1.0),
                (Gaussian(1.0, 2.0), 1.0),
                (Gaussian(1.0, 2.0), 0.5),
                (Mixture((1.0, 2.0), (0.25, 0.75), 3.0), 0.5),
            )
        ],
        tables.accountants(tables.options(Gaussian(1.0, 2.0), Budget(2.0, 1e-05))),
        [
            [one, one.sensitivity]
            for values in ([1.5], [1.0, 2.5])
            for one in [Mixture.combine(np.array(values), np.full(len(values), 1 / len(values)))]
        ],
        [
            tables.delta_curve(noisy_sums(1.5, 0.1, 20), 1e-05, 4),
            tables.relations(noisy_sums(1.5, 0.1, 20), 1e-05),
            tables.delta_at(noisy_sums(1.5, 0.1, 20), 0.8),
            vars(tables.renyi_curve(noisy_sums(1.5, 0.1, 20), 1e-05)),
        ],
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
        ],
        [individual.gaussian_epsilons(1e-5, np.geomspace(1e-6, 9.0, count)) for count in (9, 4000)],
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
    ]


def sensitivity_examples() -> Iterator[Any]:
    yield from [
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
    ]
