"""What means nothing is refused by its name, and what no proof covers by every accountant."""

import math
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest
from support import assert_refused, noisy_sums

from dpviz.common.random import spawn
from dpviz.common.validate import InvalidInput
from dpviz.privacy import audit_bounds as ab
from dpviz.privacy import published_noise as pn
from dpviz.privacy.accounting import account, rdp, shuffle
from dpviz.privacy.accounting import events as ev
from dpviz.privacy.accounting.account import HOCKEY_STICK, Method
from dpviz.privacy.accounting.division import composed_budget, divide, divide_exactly, random_search
from dpviz.privacy.accounting.gaussian import gaussian_epsilon, gaussian_mu
from dpviz.privacy.accounting.mixture import mixture_delta, mixture_rdp, mixture_rdp_sigma, mixture_sigma
from dpviz.privacy.accounting.repeated_selection import repetitions
from dpviz.privacy.budget import Budget, Neighbouring
from dpviz.privacy.individual import gaussian_output
from dpviz.privacy.noise import LAPLACE
from dpviz.privacy.objective import PerturbedObjective
from dpviz.privacy.one_run_audit import one_run_mu_lower_bound, one_run_p_value
from dpviz.privacy.private_ranges import private_ranges
from dpviz.privacy.search import smallest
from dpviz.privacy.sensitivity import bounds as sb
from dpviz.privacy.sensitivity.algorithm2 import Algorithm2
from dpviz.privacy.sensitivity.iteration import iteration

ADD, REPLACE = Neighbouring.ADD_REMOVE, Neighbouring.REPLACE_ONE
BUDGET, ROWS, PURE = Budget(1.0, 1e-5), ev.Gaussian.of_rows(0.5, 2.0), ev.PureEpsilon(1.0)
SENSITIVITIES, WEIGHTS = np.array([0.2, 0.5, 1.0, 3.0]), np.array([0.4, 0.3, 0.2, 0.1])
KINDS = ev.Composed((ev.Repeated(ROWS, 3), ev.Repeated(ev.Sampled(ROWS, 0.05), 40)))
ACCOUNTANTS = ("pld", "rdp", "zcdp", "gaussian")
CURVE = np.where(np.arange(len(rdp.ORDERS)) == 3, math.nan, rdp.gaussian(1.0))
BAD = [0.0, -1.0, math.nan, math.inf, "1", None]


def bounded(**changed: float) -> PerturbedObjective:
    return PerturbedObjective(**{"G": 1.0, "beta": 0.25, "Lam": 45.222} | changed)


def iterated(**changed: float) -> object:
    return iteration(np.ones(3), **{"batches": 3, "batch_size": 2, "mu": 0.2, "L": 1.0, "G": 1.0} | changed)  # type: ignore[arg-type]


def one_run(**changed: float) -> float:
    return one_run_p_value(**{"correct": 5, "guesses": 10, "canaries": 100, "epsilon": 1.0, "delta": 0.0} | changed)  # type: ignore[arg-type]


def wu(rule: str, **changed: float) -> float:
    return sb.wu_bolt_on(rule, **{"passes": 1, "batch_size": 1, "batches": 1, "L": 1.0} | changed)  # type: ignore[arg-type]


#: what the message begins with, usually the field's name; and calls
REFUSED: dict[str, list[Callable[[], Any]]] = {
    "G:": [lambda: bounded(G=-1.0), lambda: iterated(G=-1.0)],
    "L:": [lambda: Algorithm2(1, 1, 1.0, 1, 0.1, math.nan).by_position()],
    "Lam:": [lambda: bounded(Lam=0.0)],
    "accountant:": [lambda bad=bad: account.epsilon(ROWS, Method(bad), 1e-6) for bad in ("abacus", "chernoff")],
    "alpha:": [lambda: mixture_rdp(1.0, SENSITIVITIES, WEIGHTS, 1.0)],
    "batch_size:": [lambda: iterated(batch_size=0)],
    "batches:": [lambda: iterated(batches=0)],
    "beta:": [lambda bad=bad: bounded(beta=bad) for bad in (math.nan, -0.1, math.inf)],
    "budget: must be a Budget": [lambda: private_ranges({"age": [1.0]}, 1.0)],  # type: ignore[arg-type]
    "canaries:": [lambda: one_run(canaries=0)],
    r"categories\['x'\]: is among the numbers": [lambda: private_ranges({"x": np.ones(9)}, BUDGET, categories={"x": ["a"]})],
    "columns": [lambda bad=bad: private_ranges(bad, BUDGET) for bad in ({}, {"x": ["a"]}, {"x": np.zeros((3, 3))})],
    "columns: must be a Mapping": [lambda: private_ranges(3, BUDGET)],  # type: ignore[arg-type]
    "categories": [lambda bad=bad: private_ranges({}, BUDGET, categories={"x": bad}) for bad in (["a"] * 9, [["a"]], [None])],
    "confidence:": [lambda bad=bad: ab.epsilon_ceiling(100, 1e-5, bad) for bad in (0.0, 1.0, -1.0, math.nan)],
    "conversion:": [
        lambda: account.epsilon(ROWS, Method(conversion="none"), 1e-6),
        lambda: mixture_rdp_sigma(BUDGET, SENSITIVITIES, WEIGHTS, "best"),
    ],
    "correct:": [lambda: one_run(correct=11), lambda: one_run_mu_lower_bound(7, 6, 8), lambda: one_run_mu_lower_bound(-1, 5, 5)],
    "count:": [lambda bad=bad: ev.Repeated(ROWS, bad) for bad in (*BAD, 10**9 + 1)],
    "curve:": [lambda: rdp.epsilon(CURVE, 1e-5)],
    "decay:": [lambda: Algorithm2(2, 1, 1.0, 1, 0.1, 1.0, decay=math.nan).by_position(), lambda: wu("convex-sqrt", decay=1.0)],
    "delta:": [
        *(lambda bad=bad: Budget(1.0, bad) for bad in (1.0, -0.1, "none")),
        *(lambda bad=bad: account.epsilon(noisy_sums(1.0), Method(), bad) for bad in (0.0, 1.0, math.nan)),
        *(lambda bad=bad: gaussian_epsilon(bad, 1.0) for bad in (0.0, 1.0, 1.5, -0.1)),
        *(lambda bad=bad: shuffle.largest_local_epsilon(1000, bad) for bad in (0.0, 1.0, 1.5)),
        *(lambda bad=bad: one_run(delta=bad) for bad in (1.0, math.nan)),
        lambda: account.noise_for(noisy_sums(1.0, 0.1, 10), Method(), Budget(1.0)),
        lambda: gaussian_mu(Budget(1.0)),
        lambda: mixture_sigma(Budget(1.0), SENSITIVITIES, WEIGHTS),
        lambda: mixture_rdp_sigma(Budget(1.0), SENSITIVITIES, WEIGHTS),
        lambda: private_ranges({"x": [1.0]}, Budget(1.0)),
        lambda: rdp.zcdp_rho(Budget(1.0)),
        lambda: shuffle.shuffled_epsilon(1.0, 1000, 0.0),
    ],
    "delta: too small": [
        lambda: smallest(lambda x: 1 + 1 / x, 0.0, limits=(1.0, 1e6), refusal=InvalidInput("delta", "too small", "Raise it."))
    ],
    "epochs:": [lambda: Algorithm2(0, 1, 1.0, 1, 0.1, 1.0).by_position()],
    "epsilon:": [
        lambda: Budget(0.0, 1e-5),
        lambda: Budget("one", 1e-5),  # type: ignore[arg-type]
        *(lambda bad=bad: ev.PureEpsilon(bad) for bad in BAD),
        lambda: one_run(epsilon=-1.0),
    ],
    "epsilon: no noise is large enough": [lambda: smallest(lambda x: 1.0, 0.0, limits=(1.0, 1e6))],
    "epsilon: is too small to be divided by 3 classes": [
        lambda: divide_exactly(Budget(0.5, 1e-5), 3, lambda _: ev.Gaussian(1.0, 0.1))
    ],
    "eta0:": [lambda: Algorithm2(1, 1, -1.0, 1, 0.1, 1.0).by_position()],
    "eta: must be above -1": [lambda bad=bad: random_search(0.5, bad) for bad in (-1.0, -1.5)],
    "events:": [lambda: ev.Composed(())],
    "false_positives:": [lambda: ab.Counts(11, 0, 10), lambda: ab.Counts(-1, 0, 10)],
    "false_negatives:": [lambda: ab.Counts(0, 11, 10)],
    "trials:": [lambda: ab.Counts(0, 0, 0)],
    "guesses:": [lambda: one_run(guesses=200), lambda: one_run_mu_lower_bound(1, 0, 5), lambda: one_run_mu_lower_bound(1, 6, 5)],
    "repetitions:": [lambda: repetitions("uniform", 5.0)],
    "lam:": [lambda: sb.cms(100, 0.0)],
    "local_epsilon:": [lambda: shuffle.shuffled_epsilon(1.001 * shuffle.largest_local_epsilon(1000, 1e-6), 1000, 1e-6)],
    "mean_runs:": [lambda bad=bad: repetitions(*bad) for bad in (("geometric", 1.0), ("geometric", math.nan), ("poisson", 0.0))],
    "mu:": [
        *(lambda bad=bad: gaussian_epsilon(1e-5, bad) for bad in (math.nan, math.inf, -1.0)),
        *(lambda bad=bad: rdp.gaussian(bad) for bad in BAD),
        lambda: Algorithm2(1, 1, 1.0, 1, 2.0, 1.0).by_position(),
        lambda: iterated(mu=2.0),
        lambda: sb.proposition2(1.0, 10, 1, 0.0, 1.0),
        *(lambda rule=rule: wu(rule, mu=0.0, step=0.1) for rule in ("sc-constant", "sc-decreasing")),
        *(lambda r=r: sb.wu_steps(r, passes=1, batches=1, mu=0.0, L=1.0, step=0.1) for r in ("sc-constant", "sc-decreasing")),
    ],
    "n:": [lambda bad=bad: ev.Shuffled(ROWS, bad) for bad in (0, 2**62 + 1)]
    + [lambda: shuffle.largest_local_epsilon(2**62 + 1, 1e-6)],
    "noise_family:": [lambda: LAPLACE.sample(spawn(0, 1), 2), lambda: LAPLACE.prob_positive(1.0, np.ones(1), np.ones(1), 2)],
    "noise_multiplier:": [lambda bad=bad: rdp.sampled_gaussian(0.1, bad) for bad in BAD],
    "orders:": [lambda bad=bad: rdp.sampled_gaussian(0.1, 1.0, (bad, 2.0)) for bad in (1.0, 0.5, 25.5, math.nan, 1.0005)],
    "parts:": [
        *(lambda bad=bad: divide(Budget(2.0), bad) for bad in (0, 10_001)),
        *(
            lambda bad=bad: divide_exactly(Budget(2.0, 1e-5), bad, lambda e: ev.Gaussian(1.0, 5 / e.epsilon))
            for bad in (0, 10_001)
        ),
    ],
    "positions:": [lambda: Algorithm2(2, 5, 1.0, 10, 0.01, 0.3).trace([6])],
    "radius:": [lambda: sb.logistic_diameter(-1.0)],
    "rate:": [lambda bad=bad: ev.Sampled(ROWS, bad) for bad in (*BAD, 0.9e-9, 1.1)],
    "event: must be a Gaussian": [lambda: ev.Sampled(PURE, 0.01)],  # type: ignore[arg-type]
    "rule:": [lambda: wu("best")],
    "runs:": [lambda bad=bad: composed_budget(Budget(1.0), bad) for bad in (0, 10_001)],
    "sampling:": [lambda: ev.Sampled(ROWS, 0.5, "bernoulli")],
    "scores:": [lambda: ab.count_errors(np.zeros(3), np.zeros(4), 0.0)],
    "sensitivities:": [
        *(lambda bad=bad: ev.Mixture((bad,), (1.0,)) for bad in BAD),
        *(lambda bad=bad: mixture_delta(1.0, np.array([1.0, bad]), np.full(2, 0.5), 1.0) for bad in (math.inf, math.nan, 0.0)),
    ],
    "sensitivity:": [lambda bad=bad: ev.Gaussian(bad) for bad in BAD],
    "sigma:": [lambda bad=bad: ev.Gaussian(1.0, bad) for bad in BAD] + [lambda: gaussian_output(np.zeros(1), 0.0, 1e-5)],
    "step:": [
        lambda: wu("sc-constant", mu=0.1, step=1.5),
        lambda: wu("convex-constant", step=2.01),
        lambda: sb.proposition2(2.0, 500, 1, 0.01, 1.0),
    ],
    "steps:": [
        lambda: sb.step_recursion(np.ones(5), 2, 10, 0.1, 1.0),
        lambda: sb.step_trace(np.ones(4), 3, 25, 0.05, 0.8),
        lambda: sb.step_trace(-np.ones(3), 3, 25, 0.05, 0.8),
    ],
    "strong_convexity:": [lambda: pn.input_perturbation_sigma(700, 30, 0.4, 1e-6, lipschitz=1.7, c=2.3, strong_convexity=0.0)],
    "epochs: 10000 epochs of 5000 batches are too many": [lambda: Algorithm2(10_000, 5_000, 1.0, 10, 0.01, 0.3).trace()],
    "ranges: too few rows to see": [lambda: private_ranges({"x": np.arange(20.0)}, Budget(0.1, 1e-6))],
    "weights:": [
        lambda: ev.Mixture((1.0, 2.0), (0.5, 0.4)),
        lambda: mixture_sigma(BUDGET, SENSITIVITIES, WEIGHTS[:3]),
        lambda: mixture_sigma(BUDGET, SENSITIVITIES, 0.9 * WEIGHTS),
    ],
}


@pytest.mark.parametrize("words", REFUSED)
def test_what_means_nothing_is_refused_by_its_name(words: str) -> None:
    for call in REFUSED[words]:
        assert_refused(call, match=f"^{words}")


@pytest.mark.parametrize(
    ("event", "method"),
    [
        *((noisy_sums(1.0, r, 10, "fixed"), Method(a, REPLACE)) for r in (0.1, 1.0) for a in ACCOUNTANTS),
        *((noisy_sums(1.0, r, 10, "fixed"), Method(a, ADD)) for r in (0.1, 1.0) for a in ACCOUNTANTS),
        (noisy_sums(1.0, 0.1, 10), Method("zcdp", ADD)),
        (noisy_sums(1.0, 0.1, 10), Method("gaussian", ADD)),
        (noisy_sums(1.0, 0.1, 10), HOCKEY_STICK),
        (noisy_sums(1.0, 0.1, 10, "without-replacement"), Method("pld", ADD)),
        (noisy_sums(1.0, 0.1, 10, "without-replacement"), Method("rdp", REPLACE)),
        (ev.Gaussian(1.0), Method("gaussian", ADD)),
        (PURE, Method("rdp", REPLACE)),
        (PURE, Method("hockey-stick", ADD)),
        (ev.Shuffled(PURE, 1000), Method("pld", REPLACE)),
        (ev.Repeated(ev.Shuffled(PURE, 1000), 2), HOCKEY_STICK),
        (ev.Mixture((1.0, 2.0), (0.5, 0.5)), Method("pld", REPLACE)),
        (ev.Repeated(ev.Mixture((1.0, 2.0), (0.5, 0.5)), 2), HOCKEY_STICK),
        (ev.Composed((PURE, ROWS)), HOCKEY_STICK),
        *((KINDS, Method(accountant)) for accountant in ("pld", "gaussian", "zcdp")),
        (ev.Composed((KINDS, PURE)), Method("rdp", ADD)),
    ],
)
def test_what_no_proof_covers_is_refused(event: ev.Event, method: Method) -> None:
    for call in (account.log_delta, account.epsilon):
        with pytest.raises(ev.CannotAccount):
            call(event, method, 1e-5)
    with pytest.raises(ev.CannotAccount):
        account.noise_for(event, method, BUDGET)
