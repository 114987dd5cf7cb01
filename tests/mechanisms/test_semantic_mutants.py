"""Mistakes that break privacy, planted one at a time in every mechanism that they concern: a named test must fail.

Those of one mechanism are in `planting.toml`.

The table is data: what the mistake is, how it is planted, whom it concerns, and the test that must see it. Whom it concerns is
read from declarations. One case of each family is quick. Mechanisms are at their defaults: the law of noise has a control of
its own for every option.
"""

from collections.abc import Callable, Collection, Iterator
from dataclasses import dataclass
from functools import cached_property
from typing import Any

import numpy as np
import pytest
import support_mistakes as wrong
import test_contract as contract
from auditing import test_false_alarms as false_alarms
from experiments.run import test_training_rows_only as rows_only
from mechanisms import test_noise_by_hand as hand
from mechanisms import test_noise_law as law
from mechanisms import test_output_mechanisms as output
from mechanisms import test_protected_training as protected
from privacy import test_declared_events as events
from support import ONE_OF_EACH_FAMILY

import dpviz
from dpviz.mechanisms import DeclaresEvent, ProtectsQuery
from dpviz.mechanisms.gradient.dp_agd import DPAGD
from dpviz.mechanisms.gradient.dp_svrg import DPSVRG
from dpviz.mechanisms.gradient.poisson_sgd import PoissonSGD
from dpviz.mechanisms.output.bolt_on_psgd import BoltOnPSGD
from dpviz.mechanisms.output.output_gaussian import OutputGaussian
from dpviz.mechanisms.output.permuted_sgd import Permuted
from dpviz.mechanisms.single_record import SingleRecord
from dpviz.privacy.accounting import account
from dpviz.privacy.accounting.events import steps_of

ALL = dpviz.list_mechanisms()
Patch = pytest.MonkeyPatch


def form(name: str) -> dict[str, Any]:
    """The defaults, but for the mechanism that adds no noise there."""
    return {"private": True} if name == "majority" else {}


# --- tests that see them -----------------------------------------------------------------------------------------------


def law_of_noise(name: str, patch: Patch) -> None:
    law.test_the_noise_is_what_is_declared_and_five_per_cent_less_is_noticed(name, form(name))


def streams_apart(name: str, patch: Patch) -> None:
    law.test_no_stream_of_random_numbers_serves_two_purposes(name, form(name), "logistic", patch)


def event_or_formula(name: str, patch: Patch) -> None:
    if (name, form(name)) in hand.HERE:
        hand.test_the_noise_is_that_of_the_formula(name, form(name))
    events.test_the_event_costs_no_more_than_is_proved_and_less_noise_is_seen(name, form(name), 0.5)


def replay(name: str, patch: Patch) -> None:
    contract.test_replayed_neighbours_stay_within_the_declared_sensitivity(ALL[name], "svm")


def poisson(name: str, patch: Patch) -> None:
    contract.test_what_is_accounted_as_poisson_is_drawn_so(ALL[name])


def often(name: str, patch: Patch) -> None:
    protected.test_rows_are_drawn_as_often_as_the_event_says(name, {})


def clipped(name: str, patch: Patch) -> None:
    protected.test_every_row_is_clipped_before_rows_are_added(name)


def opposite(name: str, patch: Patch) -> None:
    events.test_a_record_and_its_opposite_stay_within_the_budget(name, {}, 3.0)


def own_order(name: str, patch: Patch) -> None:
    protected.test_every_replica_has_an_order_of_its_own(name)


def training_rows(name: str, patch: Patch) -> None:
    spec = dpviz.RunSpec(dataset=dpviz.dataset(rows_only.X, rows_only.Y, data_norm=1.0).name, delta=1e-4)
    rows_only.test_other_test_rows_change_nothing(name, np.asarray(dpviz.setup_for(spec).split.test))


def halves(name: str, patch: Patch) -> None:
    for score in ("gradient", "lda", "qda", "repeat"):
        false_alarms.test_the_counted_half_chooses_nothing(score)


def several_batches(name: str, patch: Patch) -> None:
    output.test_training_follows_the_algorithm(0, "svm")


# --- whom they concern ---------------------------------------------------------------------------------------------------


def noisy(name: str) -> bool:
    """Mechanisms that add noise."""
    return name != "non-private"


def noisy_steps(name: str) -> bool:
    """Mechanisms that add noise more than once in a run."""
    built = ALL[name].from_params(law.RECIPES[name][1])
    if isinstance(built, DPAGD | SingleRecord) or name in ("song-sgd", "dp-svrg"):
        return True  # the last two: pure epsilon, and a published form without an event
    if not isinstance(built, DeclaresEvent) or built.family != "gradient":
        return False
    event = built.released(hand.SETTING, built.calibrate(hand.SETTING, hand.BUDGET))
    return event is not None and sum(step.count for step in steps_of(event)) > 1


def replaces(name: str) -> bool:
    """Mechanisms that protect a query under replace-one."""
    return issubclass(ALL[name], ProtectsQuery) and noisy(name)


#: mechanisms that draw from a replica's own stream and from one below it
OWN_AND_CHILD = {"amp", "bolt-on-psgd", "dbdp", "rsgd", "rsgd-ar"}
#: mechanisms that draw from several streams below a replica's
CHILDREN = {"bassily-sgd", "dbdp-pi", "dp-agd", "dp-lssgd", "dp-sgd", "dp-svrg"}
CHILDREN |= {"fukuchi-input", "ldp-duchi", "pidp-sgd", "song-sgd"}


def purposes(name: str, patch: Patch) -> list[int]:
    """How many keys the streams of one replica have, for each purpose that it draws for."""
    keys = {generator.key for generator in law.generators_used(name, {}, "logistic", patch)}
    return sorted(len(key) for key in keys if key[0] == 0)


@pytest.mark.parametrize("name", ALL)
def test_who_draws_for_several_purposes(name: str, monkeypatch: Patch) -> None:
    lengths = purposes(name, monkeypatch)
    assert (lengths.count(2) > 1) == (name in CHILDREN)
    assert (1 in lengths and 2 in lengths) == (name in OWN_AND_CHILD)


def among(*groups: Collection[str]) -> Callable[[str], bool]:
    """These mechanisms."""
    return lambda name: any(name in group for group in groups)


def is_a(*classes: type) -> Callable[[str], bool]:
    """Mechanisms of these classes."""
    return lambda name: issubclass(ALL[name], classes)


@dataclass(frozen=True)
class Mistake:
    """One row of the table.

    Attributes:
        name: what is wrong.
        plant: puts it into dpviz.
        concerns: mechanism -> whether it applies.
        seen_by: the test that must fail.
    """

    name: str
    plant: Callable[[Patch], None]
    concerns: Callable[[str], bool]
    seen_by: Callable[[str, Patch], None]

    @cached_property
    def cases(self) -> list[str]:
        """Mechanisms that it concerns."""
        return [name for name in ALL if self.concerns(name)]


TABLE = [
    Mistake("half the noise is drawn", wrong.draws(wrong.HalfNoise), noisy, law_of_noise),
    Mistake(
        "one coordinate has no noise",
        wrong.draws(wrong.BareCoordinate),
        lambda name: noisy(name) and name != "majority",
        law_of_noise,
    ),
    Mistake(
        "noise is not centred",
        wrong.draws(wrong.Shifted),
        lambda name: noisy(name) and name not in ("majority", "ldp-duchi"),
        law_of_noise,
    ),
    Mistake("noise is reused between steps", wrong.draws(wrong.SameEveryStep), noisy_steps, law_of_noise),
    Mistake("noise is in the first step only", wrong.draws(wrong.FirstStepOnly), noisy_steps, law_of_noise),
    Mistake("all replicas share their noise", wrong.seeds(wrong.one_for_all), among(ONE_OF_EACH_FAMILY), law_of_noise),
    Mistake("seeds of one byte", wrong.seeds(wrong.one_byte), among(ONE_OF_EACH_FAMILY), law_of_noise),
    Mistake("one stream for batches and noise", wrong.one_child, among(CHILDREN), streams_apart),
    Mistake("one stream for permutation and noise", wrong.no_child, among(CHILDREN, OWN_AND_CHILD), streams_apart),
    Mistake("half the noise is calibrated", wrong.calibrations(wrong.less_noise), noisy, event_or_formula),
    Mistake("add/remove in place of replace-one", wrong.calibrations(wrong.add_remove_for_replace_one), replaces, replay),
    Mistake("two hops forgotten", wrong.two_hops_forgotten, is_a(PoissonSGD), opposite),
    Mistake("fixed batches accounted as Poisson", wrong.fixed_batches, is_a(PoissonSGD), poisson),
    Mistake("rows are drawn too often", wrong.rows_too_often, lambda name: (name, {}) in protected.DRAWN, often),
    Mistake("the sum is clipped", wrong.sums(wrong.whole_sum_clipped), among(protected.CLIPS), clipped),
    Mistake("nothing is clipped", wrong.sums(lambda total, clip: total), among(protected.CLIPS), clipped),
    Mistake("one batch in all steps", wrong.one_batch, is_a(PoissonSGD, DPSVRG), often),
    Mistake("half the steps are accounted", wrong.half_the_steps, is_a(PoissonSGD), often),
    Mistake("one order for all replicas", wrong.one_order, is_a(Permuted, BoltOnPSGD), own_order),
    Mistake("n of all rows", wrong.all_rows_counted, among(ALL), training_rows),
    Mistake("threshold chosen on the counted half", wrong.threshold_on_the_counted_half, is_a(OutputGaussian), halves),
    Mistake("a short last batch", wrong.short_last_batch, is_a(Permuted), several_batches),
]


def case(mistake: Mistake, name: str) -> Any:
    quick = name in QUICK.get(mistake.name, ())
    return pytest.param(mistake, name, id=f"{mistake.name} {name}", marks=() if quick else pytest.mark.long)


#: cases of the README's tests: one of each family for the smallest mistake in draws, and one mechanism for the others
QUICK: dict[str, tuple[str, ...]] = {mistake.name: ("dp-sgd",) for mistake in TABLE}
QUICK |= {"a short last batch": ("rsgd",), "one order for all replicas": ("rsgd",)}
QUICK |= {"threshold chosen on the counted half": ("output-gaussian",)}
QUICK["half the noise is drawn"] = (*ONE_OF_EACH_FAMILY, "majority")


@pytest.mark.parametrize(("mistake", "name"), [case(m, name) for m in TABLE for name in m.cases])
def test_the_mistake_is_seen(mistake: Mistake, name: str, monkeypatch: Patch) -> None:
    mistake.plant(monkeypatch)
    with pytest.raises((AssertionError, ValueError)):
        mistake.seen_by(name, monkeypatch)


@pytest.fixture(autouse=True)
def _caches() -> Iterator[None]:
    yield
    account.noise_for.cache_clear()
    account.epsilon.cache_clear()


@pytest.mark.long
@pytest.mark.parametrize("mistake", TABLE, ids=lambda m: m.name)
def test_without_the_mistake_the_same_tests_pass(mistake: Mistake, monkeypatch: Patch) -> None:
    for name in mistake.cases:
        if name in QUICK[mistake.name]:
            mistake.seen_by(name, monkeypatch)


def test_every_mechanism_is_in_the_table() -> None:
    concerned = {name for mistake in TABLE for name in mistake.cases}
    assert concerned == set(ALL)
