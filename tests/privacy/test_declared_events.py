"""Events: normal form, scaled noise, refusals; what a mechanism declares costs what is proved, 5 % less noise more."""

import math
from collections.abc import Callable, Iterator
from fractions import Fraction
from typing import Any

import numpy as np
import pytest
from dp_accounting.pld import privacy_loss_distribution
from mechanisms.test_noise_law import in_twos, numbers
from scipy.special import ndtr
from support import noisy_sums, options

import dpviz
from dpviz.common.validate import InvalidInput
from dpviz.mechanisms import Calibration, DeclaresEvent, protection
from dpviz.models import get_model
from dpviz.privacy.accounting import account, curves, rdp
from dpviz.privacy.accounting import events as ev
from dpviz.privacy.accounting.account import HOCKEY_STICK, Method, tightest
from dpviz.privacy.accounting.accountants.zcdp import ZCDP
from dpviz.privacy.accounting.events import Event, Gaussian, Mixture, Repeated, Sampled, Shuffled, scale_noise, steps_of
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
    assert ev.single_step(ev.Repeated(ROWS, 4)).total == pytest.approx(2.0)
    assert ev.single_step(ev.Repeated(ROWS, 4)).mu == pytest.approx(1.0)


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

    assert sigmas(ev.scale_noise(event, 3.0)) == pytest.approx([3 * s for s in sigmas(event)])
    assert ev.scale_noise(ev.scale_noise(event, 4.0), 0.25) == event
    assert ev.scale_noise(ev.PureEpsilon(2.0), 4.0) == ev.PureEpsilon(0.5)


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
        assert math.exp(account.log_delta(ev.scale_noise(event, 1.05), HOCKEY_STICK, epsilon)) < delta * 0.99
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
    assert account.epsilon(ev.scale_noise(event, factor), Method("rdp"), 1e-6) == pytest.approx(0.5, rel=1e-4)
    assert account.epsilon(ev.scale_noise(event, 0.95 * factor), Method("rdp"), 1e-6) > 0.5 * 1.01


def test_a_mixture_has_the_delta_of_joint_convexity_and_a_floor() -> None:
    sensitivities, weights, sigma = (1.0, 2.0), (0.25, 0.75), 1.5
    event = ev.Mixture(sensitivities, weights, sigma)
    parts = [w * math.exp(log_gaussian_delta(0.7, s / sigma)) for s, w in zip(sensitivities, weights, strict=True)]
    assert account.log_delta(event, HOCKEY_STICK, 0.7) == pytest.approx(math.log(sum(parts)), rel=1e-9)
    assert account.log_delta(ev.scale_noise(event, 1.05), HOCKEY_STICK, 0.7) < math.log(sum(parts)) - 0.01
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
        Sampling().refuse(ev.single_step(ev.Gaussian(1.0)), Method("rdp", REPLACE))


@pytest.mark.parametrize("relation", list(Neighbouring))
def test_the_divergence_of_gaussians_under_both_relations(relation: Neighbouring) -> None:
    """A replaced row moves five sums by twice its bound, one that is added or removed by once: mu is the distance over sigma."""
    event, method = ev.Repeated(ev.Gaussian.of_rows(1.0, 2.0), 5), Method("hockey-stick", relation)
    mu = math.sqrt(5) * (2 if relation is Neighbouring.REPLACE_ONE else 1) / 2
    for epsilon in (0.3, 2.0):
        delta = float(ndtr(-epsilon / mu + mu / 2) - math.exp(epsilon) * ndtr(-epsilon / mu - mu / 2))
        assert account.log_delta(event, method, epsilon) == pytest.approx(math.log(delta), rel=1e-9)
        assert account.epsilon(event, method, delta) == pytest.approx(epsilon, rel=1e-9)


ALL = list(dpviz.list_mechanisms())
SETTING = get_model("logistic").setting(400, 10, 1e-2)


#: mechanisms that declare an event, at their defaults and at every other option of every knob of choice
FORMS = [
    (name, params)
    for name, cls in dpviz.list_mechanisms().items()
    if issubclass(cls, DeclaresEvent) and cls.refusal(SETTING) is None
    for params in options(name)
]
#: options whose noise is more than the proof needs
LOOSE = {"published", "classical", "rdp", "rdp-improved"}


def declared(name: str, params: dict[str, str | bool], budget: Budget) -> tuple[Calibration, Event] | None:
    mechanism = dpviz.list_mechanisms()[name].from_params(params)
    try:
        calibration = mechanism.calibrate(SETTING, budget)
    except InvalidInput:
        return None
    event = mechanism.released_event(SETTING, calibration)
    return None if event is None else (calibration, event)


def accountant(event: Event, relation: Neighbouring) -> Method:
    if relation is Neighbouring.REPLACE_ONE:
        return tightest(event)
    return Method("rdp" if len(steps_of(event)) > 1 else "pld", relation)


def test_a_majority_declares_an_event_where_it_is_private() -> None:
    assert declared("majority", {"private": True}, Budget(1.0, 1e-5)) is not None
    assert declared("majority", {}, Budget(1.0, 1e-5)) is None, "nothing is private there"


@pytest.mark.parametrize("epsilon", [0.5])
@pytest.mark.parametrize(("name", "params"), FORMS, ids=lambda v: v if isinstance(v, str) else "-".join(map(str, v.values())))
def test_the_event_costs_no_more_than_is_proved_and_less_noise_is_seen(
    name: str, params: dict[str, str | bool], epsilon: float
) -> None:
    found = declared(name, params, Budget(epsilon, 1e-5))
    if found is None:
        return
    calibration, event = found
    proved = calibration.proved_budget
    if proved is None:
        return
    method = accountant(event, calibration.neighbouring)
    pure = proved.delta == 0
    reached = account.epsilon(event, method, 1e-12 if pure else proved.delta)
    assert reached <= proved.epsilon * (1 + 1e-5)
    # an event that says too little would make whatever is composed of it look too cheap; a mixture is over all positions
    assert LOOSE & set(params.values()) or reached > (0.9 if isinstance(event, Mixture) else 0.999) * proved.epsilon
    weaker = account.epsilon(scale_noise(event, 0.95), method, 1e-12 if pure else proved.delta)
    # a mixture or a published calibration may hold more noise than is needed, but never none that could be taken away
    assert weaker > reached * 1.01 or (isinstance(event, Shuffled | Mixture) and weaker > reached)


@pytest.mark.parametrize("epsilon", [3.0])
@pytest.mark.parametrize(("name", "params"), FORMS, ids=lambda v: v if isinstance(v, str) else "-".join(map(str, v.values())))
def test_a_record_and_its_opposite_stay_within_the_budget(name: str, params: dict[str, str | bool], epsilon: float) -> None:
    """These are neighbours under replace-one, so their divergence is below every proof, whatever the way to it was."""
    found = declared(name, params, Budget(epsilon, 1e-5))
    if found is None or found[0].neighbouring is not Neighbouring.REPLACE_ONE:
        return
    for step in steps_of(found[1]):
        if step.sampling == "poisson" and isinstance(step.event, Gaussian):
            sampled = Repeated(Sampled(step.event, step.rate), step.count)
            pair = Method("pld", Neighbouring.REPLACE_ONE)
            assert account.epsilon(sampled, pair, 1e-5) <= epsilon, "of this kind of release alone"


def combined(choose: Callable[[str], Iterator[dict[str, Any]]]) -> list[tuple[str, dict[str, Any]]]:
    """Forms in which several options are not the default."""
    declaring = {name for name, _ in FORMS}
    return [(name, params) for name in ALL if name in declaring for params in choose(name)]


@pytest.mark.parametrize(("name", "params"), combined(in_twos))
def test_so_it_is_where_options_are_combined(name: str, params: dict[str, Any]) -> None:
    """Half the noise of one combination alone would be seen nowhere else."""
    test_the_event_costs_no_more_than_is_proved_and_less_noise_is_seen(name, params, 1.0)


@pytest.mark.parametrize(("name", "model"), [*((name, "logistic") for name in ALL), ("dp-gd", "mlp"), ("dp-sgd", "mlp")])
def test_every_number_at_another_value_costs_what_is_proved(name: str, model: str) -> None:
    """Defaults alone would hide a number that is left out, a clip norm of 1 above all; networks have no other bound."""
    setting = get_model(model).setting(400, 10, 1e-2)
    cls = dpviz.list_mechanisms()[name]
    if not issubclass(cls, DeclaresEvent) or cls.refusal(setting) is not None:
        return
    for params in numbers(name):
        mechanism = cls.from_params(params)
        calibration = mechanism.calibrate(setting, Budget(1.0, 1e-5))
        event, proved = mechanism.released_event(setting, calibration), calibration.proved_budget
        if event is None or proved is None:
            assert name == "majority"
            continue
        method, delta = accountant(event, calibration.neighbouring), proved.delta or 1e-12
        assert account.epsilon(event, method, delta) <= proved.epsilon * (1 + 1e-5)
        if not isinstance(event, Mixture):
            assert account.epsilon(scale_noise(event, 0.95), method, delta) > 1.01 * proved.epsilon
        steps, values = steps_of(event), cls.defaults() | params
        if "clip_norm" in values and isinstance(steps[0].event, Gaussian):
            # one row of what is trained: the clip norm, or the model's own bound, over n q
            rate = 1.0 if steps[0].count == values.get("rounds") else values.get("sampling_rate", 1.0)
            longest = min(values["clip_norm"], setting.G) / (400 * rate)
            assert steps[0].event.noise_multiplier == pytest.approx(calibration.noise_scale / longest)


@pytest.mark.parametrize(("name", "params"), FORMS, ids=lambda v: v if isinstance(v, str) else "-".join(map(str, v.values())))
def test_without_noise_nothing_is_declared(name: str, params: dict[str, str | bool]) -> None:
    mechanism = dpviz.list_mechanisms()[name].from_params(params)
    try:
        calibration = mechanism.calibrate(SETTING, Budget(1.0, 1e-5)).noiseless()
    except InvalidInput:
        return
    assert protection.released_event(mechanism, SETTING, calibration) is None
