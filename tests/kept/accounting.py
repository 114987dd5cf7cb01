"""Examples of `dpviz.privacy.accounting`."""

from collections.abc import Iterator
from typing import Any

import numpy as np
from support import noisy_sums
from support_kept import kept_or_refused, progress, refusal

from dpviz.privacy.accounting import (
    account,
    curves,
    division,
    events,
    gaussian,
    heterogeneous,
    mixture,
    pld,
    rdp,
    repeated_selection,
    shuffle,
    tables,
)
from dpviz.privacy.accounting.accountants.base import Method, list_accountants
from dpviz.privacy.accounting.events import Composed, Gaussian, Mixture, PureEpsilon, Repeated, Sampled, Shuffled
from dpviz.privacy.budget import Budget, Neighbouring


def accounting_examples() -> Iterator[Any]:
    yield from [
        [
            heterogeneous.total_epsilon(some, d)
            for some in (
                [Budget(0.5, 1e-06), Budget(0.2)],
                [noisy_sums(1.5, 0.1, 20), Gaussian(1.0, 2.0)],
                [PureEpsilon(0.4)] * 3,
            )
            for d in (1e-05, 0.01)
        ],
        heterogeneous.total_epsilon([noisy_sums(1.5, 0.1, 20), Gaussian.of_rows(1.0, 2.0)], 1e-05, Neighbouring.ADD_REMOVE),
        progress(
            lambda listen: heterogeneous.total_epsilon(
                [Budget(0.5, 1e-06), noisy_sums(1.5, 0.1, 20)], 1e-05, Neighbouring.REPLACE_ONE, listen
            )
        ),
        # alone, with a delta that is just enough or not, of other kinds, very many, very large
        [
            [delta, heterogeneous.total_epsilon(some, delta)]
            for some, delta in (
                ([], 1e-05),
                ([Gaussian(1.0, 2.0)], 0.0),
                ([noisy_sums(1.5, 0.1, 20)], 1e-05),
                ([Budget(0.5, 2**-20), Budget(0.25, 2**-20)], 2**-19),
                ([Budget(0.5, 2**-20), Budget(0.25, 2**-20)], 0.99 * 2**-19),
                ([Budget(0.5, 2**-20)] * 3, 2**-20),
                ([PureEpsilon(0.4), Repeated(PureEpsilon(0.4), 3), Budget(0.3)], 0.0),
                ([PureEpsilon(0.4), Repeated(PureEpsilon(0.4), 30)], 1e-06),
                ([Gaussian(1.0, 2.0), Repeated(Gaussian(1.0, 3.0), 4), Gaussian.of_rows(0.2)], 1e-05),
                ([Mixture((1.0, 2.0), (0.25, 0.75), 3.0), Budget(0.3)], 1e-05),
                ([Shuffled(PureEpsilon(0.4), 5000)] * 2, 1e-05),
                ([Budget(0.05)] * 200, 1e-14),
                ([Budget(0.3), Budget(0.7, 1e-09)], 1e-12),
                ([Gaussian(1e10), Budget(0.5)], 1e-05),
                ([Budget(2e9), Budget(0.25)], 1e-05),
                ([noisy_sums(1.5, 0.1, 2)], 1e-05),
                *(([Budget(0.3, 1e-07)] * 3, delta) for delta in (2.5e-07, 3.1e-07)),
                ([Gaussian(1.0, 1e6), Budget(0.2, 1e-09)], 1e-05),
            )
        ],
        [
            heterogeneous.Losses.of_budget(Budget(0.7, 0.01)),
            heterogeneous.Losses.of_budget(Budget(1e-200)),
            heterogeneous.Losses.of_budget(Budget(800.0)),
            heterogeneous.Losses.of_profile(np.array([0.5, 1.0, 2.0]), np.array([0.3, 0.2, 0.05])),
            heterogeneous._convex([(0.0, 0.5), (1.0, 0.3), (2.0, 0.29), (3.0, 0.05), (3.5, 0.05), (4.0, 0.06), (5.0, 0.01)]),
            heterogeneous._grid(heterogeneous.Losses.of_budget(Budget(0.7, 0.01)), 0.3),
        ],
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
        [curves.advantage(Composed((noisy_sums(1.5, 0.1, 20), noisy_sums(2.0, 0.05, 3))), pure=p) for p in (0.0, 0.3)],
        curves.advantage(Shuffled(PureEpsilon(0.4), 50), pure=0.2),
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
        [
            [
                name,
                relation,
                [
                    kept_or_refused(lambda m=method, e=event: [account.epsilon(e, m, 1e-05), account.log_delta(e, m, 0.7)])
                    for event in (
                        Gaussian(1.0, 3.0),
                        Repeated(Gaussian.of_rows(0.7, 3.0), 2),
                        noisy_sums(1.5, 0.1, 20),
                        Sampled(Gaussian.of_rows(1.0, 1.5), 0.1, "without-replacement"),
                        Sampled(Gaussian.of_rows(1.0, 1.5), 0.1, "fixed"),
                        Mixture((1.0, 2.0), (0.25, 0.75), 3.0),
                        Repeated(PureEpsilon(0.3), 3),
                        Shuffled(PureEpsilon(0.4), 5000),
                        Composed((Gaussian.of_rows(0.7, 3.0), noisy_sums(1.5, 0.1, 20), PureEpsilon(0.1))),
                    )
                ],
            ]
            for name in list_accountants()
            for relation in Neighbouring
            for method in [Method(name, relation, "mironov" if name == "zcdp" else "improved")]
        ],
        "\n".join(
            refusal(lambda e=event, m=method: account.epsilon(e, m, 1e-05))
            for event, method in (
                (PureEpsilon(0.3), Method("pld")),
                (PureEpsilon(0.3), Method("hockey-stick")),
                (Repeated(Shuffled(Gaussian(0.3), 900), 2), account.HOCKEY_STICK),
                (Repeated(Mixture((1.0, 2.0), (0.25, 0.75)), 2), account.HOCKEY_STICK),
                (Gaussian(1.0), Method("pld")),
                (noisy_sums(1.5, 0.1, 20), Method("gaussian")),
                (noisy_sums(1.5, 0.1, 20), Method("zcdp")),
                (noisy_sums(1.5, 0.1, 20, "fixed"), Method("rdp")),
                (noisy_sums(1.5, 0.1, 20, "without-replacement"), Method("pld")),
                (noisy_sums(1.5, 0.1, 20, "without-replacement"), Method("rdp")),
                (Composed((Gaussian(1.0), Gaussian(2.0))), account.HOCKEY_STICK),
                (Composed((Gaussian(1.0), noisy_sums(1.5, 0.1, 20))), Method("pld", Neighbouring.REPLACE_ONE)),
                (noisy_sums(0.001, 0.9, 99), Method("rdp")),
                (Shuffled(PureEpsilon(0.4), 5000), Method("hockey-stick", Neighbouring.ADD_REMOVE)),
                (Sampled(Gaussian.of_rows(1.0), 0.1, "fixed"), Method("pld", Neighbouring.REPLACE_ONE)),
            )
        ),
        " ".join(account.describe(Method(name, relation)) for name in list_accountants() for relation in Neighbouring),
        [
            [account.tightest(event, relation).accountant for relation in Neighbouring]
            for event in (
                Gaussian(1.0),
                noisy_sums(1.5, 0.1, 20),
                noisy_sums(1.5, 0.1, 20, "without-replacement"),
                noisy_sums(1.5, 0.1, 20, "fixed"),
                noisy_sums(1.5, 1.0, 20),
                PureEpsilon(0.3),
                Composed((Gaussian(1.0), Gaussian(2.0))),
            )
        ],
        [
            account.noise_for(event, Method(name, relation), Budget(epsilon, 1e-05))
            for event, name, relation, epsilon in (
                (noisy_sums(1.0, 0.03, 70), "pld", Neighbouring.ADD_REMOVE, 0.8),
                (noisy_sums(1.7, 0.03, 70), "rdp", Neighbouring.REPLACE_ONE, 6.0),
                (Repeated(Gaussian.of_rows(0.6, 2.0), 5), "zcdp", Neighbouring.ADD_REMOVE, 0.8),
                (Repeated(Gaussian(0.6, 2.0), 5), "gaussian", Neighbouring.REPLACE_ONE, 0.8),
                (Mixture((1.0, 2.0), (0.25, 0.75), 3.0), "hockey-stick", Neighbouring.REPLACE_ONE, 0.8),
                (Composed((Gaussian(0.4), Gaussian.of_rows(0.6))), "rdp", Neighbouring.REPLACE_ONE, 0.8),
            )
        ],
        [
            [step, step.formula, *kept_or_refused(lambda s=step: [s.sensitivity, s.total, s.mu])]
            for event in (
                Composed(
                    (Gaussian(1.5, 2.0), Repeated(Gaussian(1.5, 2.0), 3), Repeated(Gaussian(2.5, 2.0), 1), PureEpsilon(0.3))
                ),
                Repeated(Composed((Mixture((1.0, 2.5), (0.25, 0.75), 4.0), noisy_sums(1.5, 1.0, 2))), 3),
                Repeated(Repeated(Sampled(Gaussian.of_rows(1.0), 1.0, "fixed"), 2), 5),
            )
            for step in events.steps_of(event)
        ],
        [
            events.scale_noise(event, 1.3)
            for event in (
                Composed((Gaussian.of_rows(1.5, 2.0), Repeated(Mixture((1.0, 2.5), (0.25, 0.75), 4.0), 3), PureEpsilon(0.3))),
                Sampled(Gaussian(1.5, 2.0), 0.1),
                Shuffled(PureEpsilon(0.3), 70),
            )
        ],
        "\n".join(
            refusal(make)
            for make in (
                lambda: Gaussian(0.0),
                lambda: Gaussian(1.0, -1.0),
                lambda: Gaussian(1.0, 1.0, 0.0),
                lambda: Gaussian(1.0).noise_multiplier,
                lambda: Mixture((), ()),
                lambda: Mixture((1.0, 2.0), (0.5, 0.6)),
                lambda: Mixture((1.0, 2.0), (1.0,)),
                lambda: Mixture((1.0,), (1.1,)),
                lambda: PureEpsilon(0.0),
                lambda: Sampled(Gaussian(1.0), 0.0),
                lambda: Sampled(Gaussian(1.0), 1.1),
                lambda: Sampled(Gaussian(1.0), 0.5, "some"),
                lambda: Repeated(Gaussian(1.0), 0),
                lambda: Composed(()),
                lambda: Shuffled(Gaussian(1.0), 0),
                lambda: events.single_step(Composed((Gaussian(1.0), Gaussian(2.0)))),
                lambda: curves.renyi(PureEpsilon(0.3)),
                lambda: curves.renyi(noisy_sums(1.5, 0.1, 20, "fixed")),
                lambda: tables.options(Gaussian(1.0), Budget(1.0)),
                lambda: rdp.sampled_gaussian(0.1, 1.0, (1.0005, 2.0)),
                lambda: rdp.sampled_gaussian(0.1, 1.0, (2.0, 20.5)),
                lambda: rdp.sampled_gaussian(0.0, 1.0),
                lambda: rdp.epsilon(np.array([0.1, -0.1]), 1e-5, orders=(2.0, 3.0)),
                lambda: rdp.epsilon(np.array([0.1]), 1e-5, orders=(2.0, 3.0)),
                lambda: rdp.zcdp_rho(Budget(1.0)),
                lambda: rdp.gaussian_sigma(Budget(1.0), 1.0),
                lambda: mixture.mixture_delta(0.5, np.array([0.5, -1.0]), np.array([0.3, 0.7]), 2.0),
                lambda: mixture.mixture_delta(0.5, np.array([0.5, 0.0]), np.array([0.3, 0.7]), 2.0),
                lambda: mixture.mixture_delta(0.5, np.array([0.5, 1.0]), np.array([0.3, 0.8]), 2.0),
                lambda: mixture.mixture_rdp(1.0, np.array([0.5]), np.array([1.0]), 2.0),
                lambda: gaussian.gaussian_epsilon(0.0, 1.0),
                lambda: gaussian.gaussian_epsilon(1e-5, -1.0),
                lambda: gaussian.gaussian_mu(Budget(1.0)),
                lambda: shuffle.shuffled_epsilon(5.0, 1000, 1e-06),
                lambda: shuffle.largest_local_epsilon(1000, 0.0),
                lambda: division.composed_budget(Budget(0.5), 0),
                lambda: division.random_search(0.5, -1.0),
                lambda: division.divide_exactly(Budget(1e-12, 1e-300), 3, lambda b: Gaussian(1.0, 1e-3)),
                lambda: repeated_selection.repetitions("fixed", 6.0),
                lambda: repeated_selection.NegativeBinomial(-1.0, 0.5),
                lambda: repeated_selection.NegativeBinomial.with_mean(1.0),
                lambda: repeated_selection.replace_one_curve(noisy_sums(1.5, 0.1, 20, "fixed")),
                lambda: account.noise_for(noisy_sums(1.0, 0.01, 10), Method("rdp"), Budget(1e-3, 1e-12)),
                lambda: heterogeneous.total_epsilon(
                    [Mixture((1.0, 2.0), (0.5, 0.5)), Gaussian(1.0)], 1e-6, Neighbouring.ADD_REMOVE
                ),
            )
        ),
        [
            [tables.relations(e, 1e-05) for e in (Gaussian(1.0, 2.0), Repeated(Gaussian(1.0, 2.0), 4))],
            [vars(tables.composition(1.3, 0.04, 1e-05, r, (1, 7))) for r in Neighbouring],
            vars(tables.composition(0.9, 1.0, 1e-05, Neighbouring.ADD_REMOVE, (2, 3))),
            tables.delta_curve(Gaussian(1.0, 2.0), 1e-05, 3),
            tables.accountants(tables.options(Repeated(Sampled(Gaussian.of_rows(1.5, 2.0), 0.2), 6), Budget(2.0, 1e-05))),
            tables.accountants(tables.options(Sampled(Gaussian.of_rows(1.5), 0.2, "without-replacement"), Budget(2.0, 1e-05))),
        ],
        " ".join(
            f"{o.name} {o.formula} {o.source} {o.note}"
            for e in (Repeated(Gaussian(1.0, 2.0), 2), noisy_sums(1.5, 0.1, 20), Mixture((1.0, 2.0), (0.25, 0.75), 3.0))
            for o in tables.options(e, Budget(1.5, 1e-05))
        ),
        [
            [division.divide(Budget(2.0, 1e-05), k) for k in (1, 2, 40)],
            division.composed_budget(Budget(0.3), 40, 1e-06),
            division.composed_budget(Budget(0.3), 4, 1.0),
            [division.exact_slack(0.3, 40, i) for i in (0, 1, 20)],
            division.divide_exactly(Budget(2.0, 1e-05), 3, lambda b: noisy_sums(2.0 / b.epsilon, 0.1, 20)),
            [
                division.composes(e)
                for e in (
                    Gaussian(1.0),
                    Repeated(Gaussian(1.0), 3),
                    noisy_sums(1.5, 0.1, 20),
                    noisy_sums(1.5, 0.1, 20, "fixed"),
                    Mixture((1.0, 2.0), (0.5, 0.5)),
                    PureEpsilon(0.3),
                    Composed((Gaussian(1.0), Gaussian(2.0))),
                )
            ],
        ],
        [
            [
                mixture.mixture_sigma(Budget(0.7, 1e-05), np.array(s), np.array(q))
                for s, q in (([1.5, 1.5], [0.4, 0.6]), ([1.5], [1]))
            ],
            [
                mixture.mixture_epsilon(d, np.array([0.5, 1.0]), np.array(q), s)
                for d, q, s in ((1e-05, [0, 1], 2.0), (0.1, [0.3, 0.7], 9.0), (0.1, [0.7, 0.3], 4.0), (0.1, [0.7, 0.3], 1.5))
            ],
            mixture.mixture_rdp(np.array([1.5, 9.0]), np.array([0.5, 1.0]), np.array([0.3, 0.7]), 2.0),
            [
                mixture.mixture_rdp_epsilon(1e-05, np.array([0.5, 1.0]), np.array([0.3, 0.7]), s, c)
                for s, c in ((2.0, "mironov"), (2.0, "improved"), (1e-5, "mironov"))
            ],
            mixture.mixture_rdp_sigma(Budget(1.0, 1e-05), np.array([1e-9, 1.0]), np.array([0.999, 0.001]), "improved"),
        ],
        [
            rdp.gaussian(0.3, (1.5, 7.0)),
            rdp.sampled_gaussian(1.0, 1.2, (1.5, 7.0)),
            rdp.sampled_gaussian(0.3, 1e200, (2.0, 7.0)),
            rdp.sampled_gaussian(0.02, 0.03, (1.3, 1.9, 2.5, 7.0)),
            rdp.opposite_rows(1.0, 0.9, (1.5, 7.0)),
            rdp.epsilon(np.array([0.1, 0.2, 0.9]), 1e-3, "mironov", (2.0, 8.0, 30.0)),
            rdp.epsilon(np.array([0.1, 0.2, 0.9]), 0.6, "improved", (2.0, 8.0, 30.0)),
            rdp.epsilons(np.array([[0.0, 0.0], [0.1, 0.3]]), 1e-3, (5.0, 20.0)),
            rdp.log_delta(np.array([0.1, 0.2, 0.9]), 1.4, "mironov", (2.0, 8.0, 30.0)),
            rdp.log_delta(np.array([0.1, 0.2, 0.9]), 0.01, "improved", (2.0, 8.0, 30.0)),
            rdp.gaussian_sigma(Budget(0.7, 1e-05), 1.5),
            [rdp.zcdp_epsilon(rho, d) for rho, d in ((0.03, 1e-05), (2.0, 0.9), (1e-3, 0.9))],
        ],
        [
            [kind, pld.log_delta(pld.Pair(kind, rate, shift), steps, epsilon, -40.0)]
            for kind in ("add", "remove", "opposite", "symmetric")
            for rate, shift, steps, epsilon in ((0.2, 0.8, 3, 0.4), (1.0, 0.5, 7, 1.5), (1e-4, 1.4, 20, 0.01), (0.2, 0.1, 1, 3.0))
        ],
        [pld.log_delta(pld.Pair("remove", 0.2, shift), 2, 0.4, -40.0) for shift in (30.0, 4001.0)],
        [
            [d.mean, [d.draw(u) for u in (0.0, 0.7, 0.99999)], d.rdp(np.asarray(rdp.gaussian(0.3)))[::90]]
            for d in (
                repeated_selection.NegativeBinomial(0.0, 0.004),
                repeated_selection.NegativeBinomial(-0.4, 0.03),
                repeated_selection.NegativeBinomial(1.0, 0.7),
                repeated_selection.Poisson(0.8),
            )
        ],
        repeated_selection.NegativeBinomial(0.0, 0.3).probabilities(4),
        repeated_selection.replace_one_curve(Composed((Gaussian(0.3), PureEpsilon(0.2), noisy_sums(1.5, 0.1, 20))))[::60],
        [
            [shuffle.central_epsilon(e, n, 1e-06) for e, n in ((3.0, 2000), (0.01, 10**7))],
            [
                shuffle.local_epsilon_for(b, 3000)
                for b in (Budget(0.5), Budget(9.0, 1e-06), Budget(0.9, 1e-03), Budget(0.05, 0.01))
            ],
            [vars(shuffle.shuffled_gaussian(mu, n, 1e-06)) for mu, n in ((0.1, 100), (3.0, 5000), (0.1, 300_000), (0.5, 10**7))],
            shuffle.gaussian_mu_for(Budget(0.9, 1e-06), 2_000_000),
        ],
        [
            gaussian.gaussian_epsilon(1e-3, np.array([[0.0, 1e-4, 0.3], [2.0, 40.0, 0.9]])),
            gaussian.log_gaussian_delta(np.array([-1.0, 0.0, 0.7, 60.0, 1e6]), 0.7),
            gaussian.gaussian_detections(0.7, np.array([0.0, 0.03, 0.5, 1.0])),
            gaussian.gaussian_sigma(Budget(0.7, 1e-04), 1.5),
            [gaussian.gaussian_mu(Budget(e, d)) for e, d in ((1e-3, 1e-9), (30.0, 0.2), (900.0, 1e-05))],
            gaussian.total_variation(0.7),
        ],
        [
            curves.detections(Repeated(Gaussian.of_rows(1.0, 3.0), 4), np.array([0.01, 0.3]), Neighbouring.ADD_REMOVE),
            curves.detections(Gaussian.of_rows(1.0, 3.0), np.array([0.01, 0.3]), Neighbouring.ADD_REMOVE, 0.2),
            curves.detections(PureEpsilon(0.4), np.array([0.0, 0.01, 0.3, 0.9])),
            curves.advantage(Repeated(Gaussian.of_rows(1.0, 3.0), 4), Neighbouring.ADD_REMOVE),
            curves.advantage(Shuffled(Gaussian(0.4, 2.0), 50)),
            curves.advantage(Mixture((1.0, 2.0), (0.25, 0.75), 3.0)),
        ],
    ]
