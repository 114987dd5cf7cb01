"""Events: their normal form, noise that is scaled, pure and shuffled releases, and what each accountant refuses."""

import math
from fractions import Fraction

import numpy as np
import pytest
from dp_accounting.pld import privacy_loss_distribution
from scipy.special import ndtr
from support import noisy_sums

from dpviz.privacy.accounting import account, curves, rdp
from dpviz.privacy.accounting import events as ev
from dpviz.privacy.accounting.account import HOCKEY_STICK, Method, tightest
from dpviz.privacy.accounting.accountants.zcdp import ZCDP
from dpviz.privacy.accounting.gaussian import gaussian_epsilon, log_gaussian_delta
from dpviz.privacy.accounting.mixture import mixture_epsilon
from dpviz.privacy.accounting.shuffle import central_epsilon, shuffled_gaussian
from dpviz.privacy.budget import Budget, Neighbouring

ADD, REPLACE = Neighbouring.ADD_REMOVE, Neighbouring.REPLACE_ONE
ROWS = ev.Gaussian.of_rows(0.5, 2.0)


def test_numbers_of_events_are_plain_and_in_their_ranges() -> None:
    """Equal releases are equal values, whatever kind of number they were made of: fractions, numpy's numbers."""
    assert (
        ev.Mixture((1, Fraction(1, 2)), (Fraction(1, 4), 0.75), 2).__dict__ == ev.Mixture((1.0, 0.5), (0.25, 0.75), 2.0).__dict__
    )
    for event in (
        ev.Mixture((1, Fraction(1, 2)), (Fraction(1, 4), Fraction(3, 4)), 2),
        ev.PureEpsilon(Fraction(1, 2)),
        ev.Sampled(ROWS, Fraction(1, 10)),
        ev.Repeated(ROWS, np.int64(3)),
        ev.Shuffled(ROWS, np.int64(3)),
        ev.Gaussian(1, 2, 1),
    ):
        for value in event.__dict__.values():
            parts = value if isinstance(value, tuple) else (value,)
            assert all(type(part) in (float, int, str, ev.Gaussian) for part in parts)
    assert ev.Repeated(ROWS, 10**9).count == 10**9
    assert (ev.Shuffled(ROWS, 1).n, ev.Shuffled(ROWS, 2**62).n) == (1, 2**62)


def test_the_normal_form_counts_what_is_equal() -> None:
    assert ev.steps_of(ROWS) == (ev.Step(ROWS),)
    assert ev.steps_of(ev.Repeated(ev.Repeated(ev.Sampled(ROWS, 0.1), 3), 4)) == (ev.Step(ROWS, 0.1, "poisson", 12),)
    assert ev.steps_of(ev.Sampled(ROWS, 1.0)) == (ev.Step(ROWS),), "a batch of all rows is no sample"
    assert ev.steps_of(ev.Sampled(ROWS, 1.0, "fixed"))[0].sampling == "fixed"
    two = ev.Composed((ROWS, ev.Repeated(ROWS, 2), ev.Sampled(ROWS, 0.1)))
    assert ev.steps_of(two) == (ev.Step(ROWS, count=3), ev.Step(ROWS, 0.1, "poisson"))
    assert ev.only_step(ev.Repeated(ROWS, 4)).total == pytest.approx(2.0)
    assert ev.only_step(ev.Repeated(ROWS, 4)).mu == pytest.approx(1.0)


@pytest.mark.parametrize(
    "event",
    [
        ROWS,
        ev.Mixture((1.0, 2.0), (0.5, 0.5), 3.0),
        ev.Repeated(ev.Sampled(ROWS, 0.2), 7),
        ev.Composed((ev.Repeated(ROWS, 2), ev.Sampled(ROWS, 0.1))),
        ev.Shuffled(ev.Gaussian(1.0, 5.0), 100),
    ],
)
def test_scaling_the_noise_scales_every_sigma(event: ev.Event) -> None:
    def sigmas(event: ev.Event) -> list[float]:
        return [getattr(step.event, "sigma", None) or step.event.event.sigma for step in ev.steps_of(event)]  # type: ignore[union-attr]

    assert sigmas(ev.scaled(event, 3.0)) == pytest.approx([3 * s for s in sigmas(event)])
    assert ev.scaled(ev.scaled(event, 4.0), 0.25) == event
    assert ev.scaled(ev.PureEpsilon(2.0), 4.0) == ev.PureEpsilon(0.5)


@pytest.mark.parametrize("count", [1, 2, 30])
@pytest.mark.parametrize("single", [0.1, 1.0])
def test_pure_releases_compose_exactly(count: int, single: float) -> None:
    """Against dp_accounting's distribution of randomised response, which is the worst case."""
    referee = privacy_loss_distribution.from_privacy_parameters(
        privacy_loss_distribution.common.DifferentialPrivacyParameters(single, 0.0), value_discretization_interval=1e-4
    ).self_compose(count)
    event = ev.Repeated(ev.PureEpsilon(single), count)
    for share in (0.2, 0.6, 0.95):
        epsilon = share * count * single
        delta = math.exp(account.log_delta(event, HOCKEY_STICK, epsilon))
        assert delta == pytest.approx(referee.get_delta_for_epsilon(epsilon), rel=5e-3, abs=1e-9)
        assert math.exp(account.log_delta(ev.scaled(event, 1.05), HOCKEY_STICK, epsilon)) < delta * 0.99
    assert account.log_delta(event, HOCKEY_STICK, count * single * (1 + 1e-9)) == -math.inf
    assert account.epsilon(event, HOCKEY_STICK, 1e-9) <= count * single * (1 + 1e-8)


def test_every_kind_of_event_has_the_epsilon_of_its_own_theorem() -> None:
    mixture = ev.Mixture((0.2, 0.5, 3.0), (0.5, 0.3, 0.2), 4.0)
    sens, weights = np.array(mixture.sensitivities), np.array(mixture.weights)
    cases: list[tuple[ev.Event, float]] = [
        (ev.Repeated(ev.Gaussian(0.3, 1.0), 5), float(gaussian_epsilon(1e-6, 0.3 * math.sqrt(5)))),
        (mixture, mixture_epsilon(1e-6, sens, weights, 4.0)),
        (ev.Shuffled(ev.PureEpsilon(1.0), 100_000), central_epsilon(1.0, 100_000, 1e-6)),
        (ev.Shuffled(ev.Gaussian(2.0, 3.0), 100_000), shuffled_gaussian(2 / 3, 100_000, 1e-6).epsilon),
    ]
    for event, expected in cases:
        assert tightest(event) == HOCKEY_STICK
        assert account.epsilon(event, HOCKEY_STICK, 1e-6) == pytest.approx(expected, rel=1e-12)
    assert tightest(noisy_sums(1.0, 0.1, 10)) == Method("pld", REPLACE)


def test_different_kinds_are_added_up_by_rdp() -> None:
    """A full gradient and sampled steps, as DP-SVRG releases them."""
    event = ev.Composed(
        (ev.Repeated(ev.Gaussian.of_rows(1.0, 5.0), 3), ev.Repeated(ev.Sampled(ev.Gaussian.of_rows(1.0, 2.0), 0.05), 40))
    )
    curve = 3 * rdp.gaussian(1 / 5.0) + 40 * rdp.sampled_gaussian(0.05, 2.0)
    assert account.log_delta(event, Method("rdp"), 1.0) == pytest.approx(rdp.log_delta(curve, 1.0), rel=1e-14)
    replaced = 3 * rdp.gaussian(2 / 5.0) + 40 * rdp.opposite_rows(0.05, 1 / 2.0)
    assert account.log_delta(event, Method("rdp", REPLACE), 2.0) == pytest.approx(rdp.log_delta(replaced, 2.0), rel=1e-12)
    factor = account.noise_for(event, Method("rdp"), Budget(0.5, 1e-6))
    assert account.epsilon(ev.scaled(event, factor), Method("rdp"), 1e-6) == pytest.approx(0.5, rel=1e-4)
    assert account.epsilon(ev.scaled(event, 0.95 * factor), Method("rdp"), 1e-6) > 0.5 * 1.01


def test_a_mixture_has_the_delta_of_joint_convexity_and_a_floor() -> None:
    sensitivities, weights, sigma = (1.0, 2.0), (0.25, 0.75), 1.5
    event = ev.Mixture(sensitivities, weights, sigma)
    parts = [w * math.exp(log_gaussian_delta(0.7, s / sigma)) for s, w in zip(sensitivities, weights, strict=True)]
    assert account.log_delta(event, HOCKEY_STICK, 0.7) == pytest.approx(math.log(sum(parts)), rel=1e-9)
    assert account.log_delta(ev.scaled(event, 1.05), HOCKEY_STICK, 0.7) < math.log(sum(parts)) - 0.01
    assert -math.inf < account.log_delta(event, HOCKEY_STICK, 500.0) < math.log(1e-100), "a delta that underflows"


def test_curves_speak_of_gaussian_noise_only() -> None:
    orders, curve = curves.renyi(ev.Mixture((1.0,), (1.0,), 2.0))
    np.testing.assert_allclose(curve, orders / 8)
    _, curve = curves.renyi(noisy_sums(1.0, 0.1, 10))
    np.testing.assert_allclose(curve, 10 * rdp.opposite_rows(0.1, 1.0))


def test_the_best_order_of_full_batches_is_the_closed_form() -> None:
    """rho + 2 sqrt(rho ln(1/delta)) at the order 1 + sqrt(ln(1/delta)/rho) (Bun, Steinke 2016; Mironov 2017, Proposition 3)."""
    rho, delta = 50 / (2 * 20.0**2), 1e-6
    order, epsilon = curves.best_order(ev.Repeated(ev.Gaussian(1.0, 20.0), 50), delta, "mironov")
    assert epsilon == pytest.approx(rho + 2 * math.sqrt(rho * math.log(1 / delta)), rel=1e-9)
    assert order == pytest.approx(1 + math.sqrt(math.log(1 / delta) / rho), rel=1e-4)


def test_an_accountant_of_sampled_batches_alone_refuses_full_ones_in_words() -> None:
    class Sampling(ZCDP):
        label, samplings = "Sampling", ("poisson",)

    with pytest.raises(ev.CannotAccount, match="Sampling has no proof for full batches"):
        Sampling().refuse(ev.only_step(ev.Gaussian(1.0)), Method("rdp", REPLACE))


@pytest.mark.parametrize("relation", list(Neighbouring))
def test_the_divergence_of_gaussians_under_both_relations(relation: Neighbouring) -> None:
    """A replaced row moves five sums by twice its bound, one that is added or removed by once: mu is the distance over sigma."""
    event, method = ev.Repeated(ev.Gaussian.of_rows(1.0, 2.0), 5), Method("hockey-stick", relation)
    mu = math.sqrt(5) * (2 if relation is Neighbouring.REPLACE_ONE else 1) / 2
    for epsilon in (0.3, 2.0):
        delta = float(ndtr(-epsilon / mu + mu / 2) - math.exp(epsilon) * ndtr(-epsilon / mu - mu / 2))
        assert account.log_delta(event, method, epsilon) == pytest.approx(math.log(delta), rel=1e-9)
        assert account.epsilon(event, method, delta) == pytest.approx(epsilon, rel=1e-9)
