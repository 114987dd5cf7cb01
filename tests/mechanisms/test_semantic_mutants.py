"""Mistakes that break privacy, planted one at a time in every mechanism and option that they concern: a named test must fail.

The table is data: what the mistake is, how it is planted, whom it concerns, and the test that must see it. Whom it concerns is
read from declarations; a mistake that changes no draw of a case does not concern it. One case of each family is quick.
"""

import dataclasses
import importlib
import sys
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from functools import cached_property
from typing import Any

import numpy as np
import pytest
import test_contract as contract
from auditing import test_false_alarms as false_alarms
from experiments.run import test_training_rows_only as rows_only
from mechanisms import test_dp_agd as agd
from mechanisms import test_noise_by_hand as hand
from mechanisms import test_noise_law as law
from mechanisms import test_output_mechanisms as output
from mechanisms import test_protected_training as protected
from mechanisms import test_renyi_filter as filtered
from privacy import test_declared_events as events
from support import ONE_OF_EACH_FAMILY
from support_noise import weaker, with_values

import dpviz
from dpviz.auditing import judging
from dpviz.common import random
from dpviz.mechanisms import DeclaresEvent, Mechanism, ProtectsQuery
from dpviz.mechanisms.gradient import dp_agd, renyi_filter
from dpviz.mechanisms.gradient.dp_agd import DPAGD
from dpviz.mechanisms.gradient.dp_svrg import DPSVRG
from dpviz.mechanisms.gradient.poisson_sgd import PoissonSGD
from dpviz.mechanisms.output.bolt_on_psgd import BoltOnPSGD
from dpviz.mechanisms.output.output_gaussian import OutputGaussian
from dpviz.mechanisms.output.permuted_sgd import Permuted
from dpviz.mechanisms.single_record import SingleRecord
from dpviz.models.problem import Problem
from dpviz.models.solvers import minibatch
from dpviz.privacy.accounting import account, rdp
from dpviz.privacy.accounting.events import steps_of

ALL = dpviz.list_mechanisms()
Patch = pytest.MonkeyPatch
Params = dict[str, Any]


def everywhere(patch: Patch, name: str, original: object, new: object) -> None:
    """Replaces a function of dpviz wherever it was imported; tests keep the original."""
    for module in [m for key, m in sys.modules.items() if key.startswith("dpviz")]:
        if getattr(module, name, None) is original:
            patch.setattr(module, name, new)


# --- mistakes in draws: every generator of dpviz is replaced by one that is wrong --------------------------------------


class Wrong(np.random.Generator):
    """A generator whose noise goes through `change`; counts how often that made a difference."""

    changes = 0

    def change(self, method: str, draw: np.ndarray) -> np.ndarray:
        raise NotImplementedError

    def _changed(self, method: str, *args: Any, **more: Any) -> Any:
        draw = np.asarray(getattr(np.random.Generator, method)(self, *args, **more))
        new = np.asarray(self.change(method, draw.copy()), draw.dtype)
        type(self).changes += not np.array_equal(new, draw)
        return new if new.ndim else new[()]


def _through(method: str) -> Callable[..., Any]:
    def drawing(self: Wrong, *args: Any, **more: Any) -> Any:
        return self._changed(method, *args, **more)

    return drawing


for _method in ("standard_normal", "gamma", "laplace", "gumbel", "random"):
    setattr(Wrong, _method, _through(_method))


class HalfNoise(Wrong):
    def change(self, method: str, draw: np.ndarray) -> np.ndarray:
        return draw / 2  # a gamma-sphere draw has a direction of length 1: its radius is halved


class NoNoise(Wrong):
    def change(self, method: str, draw: np.ndarray) -> np.ndarray:
        return draw * 1e-12


class BareCoordinate(Wrong):
    def change(self, method: str, draw: np.ndarray) -> np.ndarray:
        if method == "standard_normal" and draw.ndim:
            draw[..., draw.shape[-1] // 2] = 0.0
        return draw


class Shifted(Wrong):
    def change(self, method: str, draw: np.ndarray) -> np.ndarray:
        return draw + 0.2 if method == "standard_normal" else draw


class SameEveryStep(Wrong):
    """The first draw of each kind and size again at every step; steps that are drawn together are alike."""

    def change(self, method: str, draw: np.ndarray) -> np.ndarray:
        kept: dict[Any, np.ndarray] = self.__dict__.setdefault("kept", {})
        if draw.ndim > 1:  # (steps, m), or (kinds, steps, m)
            draw[..., 1:, :] = draw[..., :1, :]
        return draw if method == "random" else kept.setdefault((method, draw.shape), draw)


class FirstStepOnly(SameEveryStep):
    """Noise in the first step, none in the inner ones after it."""

    def change(self, method: str, draw: np.ndarray) -> np.ndarray:
        kept: dict[Any, np.ndarray] = self.__dict__.setdefault("kept", {})
        if draw.ndim > 1:
            draw[..., 1:, :] = 0.0
        if method == "random" or (method, draw.shape) not in kept:
            kept[method, draw.shape] = draw
            return draw
        return 1e-12 * draw


def draws(kind: type[Wrong]) -> Callable[[Patch], None]:
    def plant(patch: Patch) -> None:
        patch.setattr(kind, "changes", 0)
        everywhere(patch, "generator", random.generator, lambda stream: kind(np.random.PCG64(stream)))

    return plant


def seeds(stream_of: Callable[[np.random.SeedSequence], np.random.SeedSequence]) -> Callable[[Patch], None]:
    """Generators that start at another stream than they are given."""
    return lambda patch: everywhere(patch, "generator", original := random.generator, lambda s: original(stream_of(s)))


def one_byte(stream: np.random.SeedSequence) -> np.random.SeedSequence:
    return np.random.SeedSequence(stream.generate_state(1)[0] % 256)


def one_for_all(stream: np.random.SeedSequence) -> np.random.SeedSequence:
    """The replica is forgotten, what the stream is for is not."""
    return np.random.SeedSequence(5, spawn_key=(0, *stream.spawn_key[1:]))


def one_child(patch: Patch) -> None:
    original = random.substreams
    everywhere(patch, "substreams", original, lambda stream, count: original(stream, 1) * count)


def no_child(patch: Patch) -> None:
    everywhere(patch, "substreams", random.substreams, lambda stream, count: [stream] * count)


# --- mistakes in calibrations ------------------------------------------------------------------------------------------


def calibrations(change: Callable[[Any], Any]) -> Callable[[Patch], None]:
    def plant(patch: Patch) -> None:
        for cls in {c for m in ALL.values() for c in m.__mro__ if "calibrate" in vars(c) and c is not Mechanism}:
            original = vars(cls)["calibrate"]
            if "noiseless" in repr(original):
                continue

            def wrong(self: Any, setting: Any, budget: Any, original: Any = original, cls: type = cls) -> Any:
                cal = original(self, setting, budget)
                # of a class and its base only the outer one is wrong, or the mistake would be made twice
                outer = next(c for c in type(self).__mro__ if "calibrate" in vars(c))
                return change(cal) if cls is outer else cal

            patch.setattr(cls, "calibrate", wrong)

    return plant


def less_noise(cal: Any) -> Any:
    # of randomised response the local epsilon is the noise
    return with_values(weaker(cal, 0.5), local_epsilon=lambda declared: 2 * declared)


def add_remove_for_replace_one(cal: Any) -> Any:
    return dataclasses.replace(less_noise(cal), sensitivity=cal.sensitivity / 2)


def two_hops_forgotten(patch: Patch) -> None:
    original = account.log_delta

    def one_hop(event: Any, method: Any, *args: Any) -> float:
        if method.route == "two-hop" and any(step.sampling == "poisson" for step in steps_of(event)):
            method = dataclasses.replace(method, relation=dpviz.Neighbouring.ADD_REMOVE)
        return original(event, method, *args)

    patch.setattr(account, "log_delta", one_hop)
    account.noise_for.cache_clear()
    account.epsilon.cache_clear()


def one_hop_of_svrg(patch: Patch) -> None:
    patch.setattr(DPSVRG, "log_delta", lambda self, z1, z2, epsilon: rdp.log_delta(self.curve(z1, z2), epsilon))


# --- mistakes in batches and sums ------------------------------------------------------------------------------------


def fixed_batches(patch: Patch) -> None:
    """Batches of a shuffled order, of one size, where Poisson batches are accounted for."""

    def batches(n: int, rate: float) -> Any:
        def start(rng: np.random.Generator) -> Any:
            size, order = max(1, round(n * rate)), rng.permutation(n)
            return lambda t: np.sort(np.take(order, range(t * size, (t + 1) * size), mode="wrap"))

        return start

    everywhere(patch, "PoissonBatches", random.PoissonBatches, batches)


def rows_too_often(patch: Patch) -> None:
    original = random.PoissonBatches
    everywhere(patch, "PoissonBatches", original, lambda n, rate: original(n, min(1.0, 1.25 * rate)))


def one_batch(patch: Patch) -> None:
    """The batch of the first step in all of them."""
    original = random.PoissonBatches

    def batches(n: int, rate: float) -> Any:
        def start(rng: np.random.Generator) -> Any:
            first = original(n, rate)(rng)(0)
            return lambda t: first

        return start

    everywhere(patch, "PoissonBatches", original, batches)


def half_the_steps(patch: Patch) -> None:
    original = PoissonSGD.noisy_sums

    def wrong(self: Any, contribution: float, sigma: float = 1.0) -> Any:
        return dataclasses.replace(original(self, contribution, sigma), count=max(1, self.steps // 2))

    patch.setattr(PoissonSGD, "noisy_sums", wrong)


def one_order(patch: Patch) -> None:
    everywhere(patch, "permutations", minibatch.permutations, lambda streams, n: np.tile(np.arange(n), (len(streams), 1)))


def all_rows_counted(patch: Patch) -> None:
    """n of the calibrations includes rows that are kept for testing."""
    original = Problem.setting.func  # type: ignore[attr-defined]
    patch.setattr(Problem, "setting", property(lambda self: dataclasses.replace(original(self), n=self.n + self.n // 4)))


def nobody_leaves(patch: Patch) -> None:
    patch.setattr(renyi_filter._Filter, "__call__", lambda self, block, norms: np.ones((1, 1), norms.dtype))


def half_price(patch: Patch) -> None:
    original = dp_agd.Runs._pay
    patch.setattr(dp_agd.Runs, "_pay", lambda self, who, price: original(self, who, price / 2))


def threshold_on_the_counted_half(patch: Patch) -> None:
    original = judging.count_errors

    def wrong(a: Any, b: Any, cut: float) -> Any:
        return original(a, b, judging.best_threshold(a, b, trials=len(a), delta=0.05, confidence=0.5)[0])

    patch.setattr(judging, "count_errors", wrong)


def sums(change: Callable[..., Any]) -> Callable[[Patch], None]:
    """Sums of gradients of linear models that are clipped by `change`."""

    def plant(patch: Patch) -> None:
        linear = importlib.import_module("dpviz.models.linear").LinearModel
        original = linear.sum_gradient

        def wrong(self: Any, theta: Any, rows: Any, *, clip_norm: float = np.inf, **more: Any) -> Any:
            return change(original(self, theta, rows, **more), clip_norm)

        patch.setattr(linear, "sum_gradient", wrong)

    return plant


def whole_sum_clipped(total: np.ndarray, clip_norm: float) -> np.ndarray:
    return total * np.minimum(1.0, clip_norm / np.maximum(np.linalg.norm(total, axis=1, keepdims=True), 1e-300))


def short_last_batch(patch: Patch) -> None:
    def bounds(n: int, batches: int) -> list[int]:
        size = -(-n // batches)
        return [min(k * size, n) if k < batches else n for k in range(batches)] + [n]

    patch.setattr(minibatch, "_bounds", bounds)


# --- tests that see them -----------------------------------------------------------------------------------------------


def law_of_noise(name: str, params: Params, patch: Patch) -> None:
    law.test_the_noise_is_what_is_declared_and_five_per_cent_less_is_noticed(name, params)


def streams_apart(name: str, params: Params, patch: Patch) -> None:
    law.test_no_stream_of_random_numbers_serves_two_purposes(name, params, "logistic", patch)


def event_or_formula(name: str, params: Params, patch: Patch) -> None:
    if (name, params) in hand.HERE:
        hand.test_the_noise_is_that_of_the_formula(name, params)
    events.test_the_event_costs_no_more_than_is_proved_and_less_noise_is_seen(name, params, 0.5)


def replay(name: str, params: Params, patch: Patch) -> None:
    contract.test_replayed_neighbours_stay_within_the_declared_sensitivity(ALL[name], "svm")


def poisson(name: str, params: Params, patch: Patch) -> None:
    contract.test_what_is_accounted_as_poisson_is_drawn_so(ALL[name])


def often(name: str, params: Params, patch: Patch) -> None:
    protected.test_rows_are_drawn_as_often_as_the_event_says(name, params)


def clipped(name: str, params: Params, patch: Patch) -> None:
    protected.test_every_row_is_clipped_before_rows_are_added(name)


def opposite(name: str, params: Params, patch: Patch) -> None:
    events.test_a_record_and_its_opposite_stay_within_the_budget(name, params, 3.0)


def own_order(name: str, params: Params, patch: Patch) -> None:
    protected.test_every_replica_has_an_order_of_its_own(name)


def training_rows(name: str, params: Params, patch: Patch) -> None:
    spec = dpviz.RunSpec(dataset=dpviz.dataset(rows_only.X, rows_only.Y, data_norm=1.0).name, delta=1e-4)
    rows_only.test_other_test_rows_change_nothing(name, np.asarray(dpviz.setup_for(spec).split.test))


def row_budgets(name: str, params: Params, patch: Patch) -> None:
    filtered.test_matches_a_row_by_row_run("logistic", 1.0, params.get("when_spent", "leave"))


def paid(name: str, params: Params, patch: Patch) -> None:
    agd.test_budget_is_never_overdrawn_and_every_draw_is_paid(patch, 1.0)


def halves(name: str, params: Params, patch: Patch) -> None:
    for score in ("gradient", "lda", "qda", "repeat"):
        false_alarms.test_the_counted_half_chooses_nothing(score)


def several_batches(name: str, params: Params, patch: Patch) -> None:
    output.test_training_follows_the_algorithm(0, "svm")


# --- whom they concern ---------------------------------------------------------------------------------------------------


def noisy(name: str, params: Params) -> bool:
    """Forms that add noise."""
    return name != "non-private" and (name != "majority" or params == {"private": True})


def noisy_steps(name: str, params: Params) -> bool:
    """Forms that add noise more than once in a run."""
    built = ALL[name].from_params(law.RECIPES[name][1] | params)
    if isinstance(built, DPAGD | SingleRecord):
        return params.get("rule") not in ("threshold", "as-intended")  # on rows of zeros these add none
    if name in ("song-sgd", "dp-svrg"):
        return True  # pure epsilon, and a published form without an event
    if not isinstance(built, DeclaresEvent) or built.family != "gradient":
        return False
    event = built.released(hand.SETTING, built.calibrate(hand.SETTING, hand.BUDGET))
    return event is not None and sum(step.count for step in steps_of(event)) > 1


def replaces(name: str, params: Params) -> bool:
    """Defaults that protect a query under replace-one."""
    return not params and issubclass(ALL[name], ProtectsQuery) and noisy(name, params)


#: mechanisms that draw from a replica's own stream and from one below it
OWN_AND_CHILD = {"amp", "bolt-on-psgd", "dbdp", "fukuchi-input", "rsgd", "rsgd-ar"}
#: mechanisms that draw from several streams below a replica's
CHILDREN = {*("bassily-sgd", "dbdp-pi", "dp-agd", "dp-lssgd", "dp-sgd", "dp-svrg", "ldp-duchi", "pidp-sgd", "song-sgd")}


def purposes(name: str, patch: Patch) -> list[int]:
    """How many keys the streams of one replica have, for each purpose that it draws for."""
    keys = {generator.key for generator in law.generators_used(name, {}, "logistic", patch)}
    return sorted(len(key) for key in keys if key[0] == 0)


@pytest.mark.parametrize("name", ALL)
def test_who_draws_for_several_purposes(name: str, monkeypatch: Patch) -> None:
    lengths = purposes(name, monkeypatch)
    assert (lengths.count(2) > 1) == (name in CHILDREN)
    assert (1 in lengths and 2 in lengths) == (name in OWN_AND_CHILD)


def among(*groups: set[str]) -> Callable[[str, Params], bool]:
    """Defaults of these mechanisms."""
    return lambda name, params: not params and any(name in group for group in groups)


@dataclass(frozen=True)
class Mistake:
    """One row of the table.

    Attributes:
        name: what is wrong.
        plant: puts it into dpviz.
        concerns: (mechanism, knobs) -> whether it applies.
        seen_by: the test that must fail.
    """

    name: str
    plant: Callable[[Patch], None]
    concerns: Callable[[str, Params], bool]
    seen_by: Callable[[str, Params, Patch], None]

    @cached_property
    def cases(self) -> list[tuple[str, Params]]:
        """Mechanisms and options that it concerns."""
        return [(name, params) for name in ALL for params in law.options(name) if self.concerns(name, params)]


def is_a(*classes: type) -> Callable[[str, Params], bool]:
    """Defaults of mechanisms of these classes."""
    return lambda name, params: not params and issubclass(ALL[name], classes)


TABLE = [
    Mistake("half the noise is drawn", draws(HalfNoise), noisy, law_of_noise),
    Mistake("no noise is drawn", draws(NoNoise), noisy, law_of_noise),
    Mistake("one coordinate has no noise", draws(BareCoordinate), lambda n, p: noisy(n, p) and n != "majority", law_of_noise),
    Mistake(
        "noise is not centred", draws(Shifted), lambda n, p: noisy(n, p) and n not in ("majority", "ldp-duchi"), law_of_noise
    ),
    Mistake("noise is reused between steps", draws(SameEveryStep), noisy_steps, law_of_noise),
    Mistake("noise is in the first step only", draws(FirstStepOnly), noisy_steps, law_of_noise),
    Mistake("all replicas share their noise", seeds(one_for_all), noisy, law_of_noise),
    Mistake("seeds of one byte", seeds(one_byte), noisy, law_of_noise),
    Mistake("one stream for batches and noise", one_child, among(CHILDREN), streams_apart),
    Mistake("one stream for permutation and noise", no_child, among(CHILDREN, OWN_AND_CHILD), streams_apart),
    Mistake("half the noise is calibrated", calibrations(less_noise), noisy, event_or_formula),
    Mistake("add/remove in place of replace-one", calibrations(add_remove_for_replace_one), replaces, replay),
    Mistake("two hops forgotten", two_hops_forgotten, is_a(PoissonSGD), opposite),
    Mistake("two hops forgotten in SVRG", one_hop_of_svrg, is_a(DPSVRG), event_or_formula),
    Mistake("fixed batches accounted as Poisson", fixed_batches, is_a(PoissonSGD), poisson),
    Mistake("rows are drawn too often", rows_too_often, lambda n, p: (n, p) in protected.DRAWN and not p, often),
    Mistake("the sum is clipped", sums(whole_sum_clipped), lambda n, p: not p and n in protected.CLIPS, clipped),
    Mistake("nothing is clipped", sums(lambda total, clip: total), lambda n, p: not p and n in protected.CLIPS, clipped),
    Mistake("one batch in all steps", one_batch, is_a(PoissonSGD, DPSVRG), often),
    Mistake("half the steps are accounted", half_the_steps, is_a(PoissonSGD), often),
    Mistake("nobody leaves the filter", nobody_leaves, lambda n, p: n == "renyi-filter", row_budgets),
    Mistake("draws are paid at half their price", half_price, lambda n, p: n == "dp-agd" and not p, paid),
    Mistake("one order for all replicas", one_order, is_a(Permuted, BoltOnPSGD), own_order),
    Mistake("n of all rows", all_rows_counted, lambda n, p: not p, training_rows),
    Mistake("threshold chosen on the counted half", threshold_on_the_counted_half, is_a(OutputGaussian), halves),
    Mistake("a short last batch", short_last_batch, is_a(Permuted), several_batches),
]


def case(mistake: Mistake, name: str, params: Params) -> Any:
    quick = not params and name in QUICK.get(mistake.name, ())
    label = " ".join([mistake.name, name, *(f"{k}={v}" for k, v in params.items())])
    return pytest.param(mistake, name, params, id=label, marks=() if quick else pytest.mark.long)


#: cases of the README's tests: one of each family for the smallest mistake in draws, and one mechanism for the others
QUICK: dict[str, tuple[str, ...]] = {mistake.name: ("dp-sgd",) for mistake in TABLE}
QUICK |= {"a short last batch": ("rsgd",), "one order for all replicas": ("rsgd",)}
QUICK |= {"threshold chosen on the counted half": ("output-gaussian",)}
QUICK["half the noise is drawn"] = (*ONE_OF_EACH_FAMILY, "majority")


@pytest.mark.parametrize(("mistake", "name", "params"), [case(m, *c) for m in TABLE for c in m.cases])
def test_the_mistake_is_seen(mistake: Mistake, name: str, params: Params, monkeypatch: Patch) -> None:
    mistake.plant(monkeypatch)
    with pytest.raises((AssertionError, ValueError)):
        mistake.seen_by(name, params, monkeypatch)


@pytest.fixture(autouse=True)
def _caches() -> Iterator[None]:
    yield
    account.noise_for.cache_clear()
    account.epsilon.cache_clear()


@pytest.mark.long
@pytest.mark.parametrize("mistake", TABLE, ids=lambda m: m.name)
def test_without_the_mistake_the_same_tests_pass(mistake: Mistake, monkeypatch: Patch) -> None:
    for name, params in mistake.cases:
        if name in QUICK[mistake.name]:
            mistake.seen_by(name, params, monkeypatch)


def test_every_mechanism_is_in_the_table() -> None:
    concerned = {name for mistake in TABLE for name, _ in mistake.cases}
    assert concerned == set(ALL)
