"""What a mechanism says it releases, accounted for from the event alone: the proved budget holds, and 5 % less noise is seen."""

from collections.abc import Callable, Iterator
from typing import Any

import pytest
from mechanisms.test_noise_law import in_twos, numbers
from support import options

import dpviz
from dpviz.common.validate import InvalidInput
from dpviz.mechanisms import Calibration, DeclaresEvent, protection
from dpviz.models import get_model
from dpviz.privacy.accounting import account
from dpviz.privacy.accounting.account import Method, tightest
from dpviz.privacy.accounting.events import Event, Gaussian, Mixture, Repeated, Sampled, Shuffled, scaled, steps_of
from dpviz.privacy.budget import Budget, Neighbouring

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
    event = mechanism.released(SETTING, calibration)
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
    weaker = account.epsilon(scaled(event, 0.95), method, 1e-12 if pure else proved.delta)
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
        event, proved = mechanism.released(setting, calibration), calibration.proved_budget
        if event is None or proved is None:
            assert name == "majority"
            continue
        method, delta = accountant(event, calibration.neighbouring), proved.delta or 1e-12
        assert account.epsilon(event, method, delta) <= proved.epsilon * (1 + 1e-5)
        if not isinstance(event, Mixture):
            assert account.epsilon(scaled(event, 0.95), method, delta) > 1.01 * proved.epsilon
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
