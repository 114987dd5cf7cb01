"""The noise that every mechanism adds is the noise that it declares, for every option of every choice and switch.

Options are read from the declarations: a new one is tested without an edit here, and a new mechanism fails until
`support_noise_recipes.RECIPES` says how its noise can be seen. Each test has a control: 5 % less noise must be noticed.
"""

import importlib
import itertools
import sys
from collections.abc import Callable, Iterator
from typing import Any

import numpy as np
import pytest
import support_noise_formulas as formulas
from support import cases, make_problem, options
from support_noise import Trial, filled, normal
from support_noise_formulas import SETTING, by_hand
from support_noise_recipes import RECIPES

import dpviz
from dpviz.common import random
from dpviz.mechanisms import DeclaresEvent, Training
from dpviz.mechanisms.knobs import Choice, Number, Switch, Whole
from dpviz.privacy.budget import Budget

ALL = dpviz.list_mechanisms()
#: seeds where the default number does not tell 5 %: lengths of draws that are not Gaussian, rows that pass
MORE = dict.fromkeys(("cms-output", "bolt-on-psgd", "cms-objective", "song-sgd", "pidp-sgd"), 1200)


def numbers(name: str) -> Iterator[dict[str, Any]]:
    """Every number at another value: once the next one above the default, once the next one below."""
    for direction in (1, -1):
        chosen = {}
        for knob, declared in ALL[name].knobs().items():
            if not isinstance(declared, Number):
                continue
            # where a rule is the default: the longest gradient of a row, else 7 times the least
            default = ALL[name].defaults()[knob] or (1.0 if knob == "clip_norm" else 7 * declared.low)
            tried = [v for v in declared.candidates(declared.check(knob, default), 7) if v != ALL[name].defaults()[knob]]
            beyond = sorted((v for v in tried if direction * (v - default) > 0), key=lambda v: abs(v - default))
            chosen[knob] = (beyond or tried)[0]
        if chosen:
            yield chosen


def ends(name: str) -> Iterator[dict[str, Any]]:
    """Every number whose range lies within one order, a share for example, on its own at either end of it."""
    for knob, declared in ALL[name].knobs().items():
        if isinstance(declared, Number) and not isinstance(declared, Whole) and not declared.log:
            yield from ({knob: end} for end in (declared.low, declared.high))


def combinations(name: str) -> Iterator[dict[str, Any]]:
    """Every combination that differs from the defaults in two choices or more."""
    knobs = {k: v for k, v in ALL[name].knobs().items() if isinstance(v, Choice | Switch)}
    values = [v.options if isinstance(v, Choice) else (False, True) for v in knobs.values()]
    for chosen in itertools.product(*values):
        changed = {k: v for k, v in zip(knobs, chosen, strict=True) if v != ALL[name].defaults()[k]}
        if len(changed) > 1:
            yield changed


def in_twos(name: str) -> Iterator[dict[str, Any]]:
    """Every two options that are not the default, together; the other choices keep theirs."""
    yield from (chosen for chosen in combinations(name) if len(chosen) == 2)


def trial(name: str, params: dict[str, Any], share: float = 1.0) -> Trial:
    return Trial(ALL[name].from_params(RECIPES[name][1] | params), share, MORE.get(name, 500))


def written(name: str) -> Iterator[dict[str, Any]]:
    """Every option, alone and with another one, and with every number at another value."""
    yield from options(name)
    yield from in_twos(name)
    yield from (params | other for params in options(name) for other in numbers(name))


def formula_cases() -> Iterator[Any]:
    """Formulas are quick; what has an event is tried before a release beyond the defaults."""
    for name in ALL:
        for params in written(name):
            quick = not params or by_hand(name, params)
            yield pytest.param(name, params, marks=() if quick else pytest.mark.before_release)


@pytest.mark.parametrize(("name", "params"), list(formula_cases()))
def test_every_form_with_noise_has_that_of_a_formula_or_declares_an_event(name: str, params: dict[str, Any]) -> None:
    built = ALL[name].from_params(params)
    try:
        cal = built.calibrate(SETTING, formulas.BUDGET)
    except dpviz.InvalidInput:
        return  # these options do not go together
    if by_hand(name, params):
        assert cal.noise_scale == pytest.approx(formulas.BY_HAND[name][1](cal, ALL[name].defaults() | params), rel=1e-6)
    elif cal.noise_scale > 0:
        assert isinstance(built, DeclaresEvent)
        assert built.released_event(SETTING, cal) is not None
    assert not params.get("steps") or cal.details["steps"] == params["steps"]


def test_every_mechanism_has_a_recipe() -> None:
    missing = [name for name in ALL if name not in RECIPES]
    assert not missing, f"add how the noise of {missing} is seen to RECIPES in tests/support_noise_recipes.py"


@pytest.mark.parametrize(
    "mistake",
    [
        lambda z: 0.96 * z,
        lambda z: z * np.r_[0.0, np.ones(z.shape[1] - 1)],  # one coordinate without noise
        lambda z: np.hstack([z[:, :36]] * 3),  # one draw for all steps
        lambda z: z * np.repeat([1.0, 0.0, 1.0], 36),  # one step without noise
        lambda z: z[np.arange(len(z)) % 256],  # seeds of one byte
        lambda z: np.tile(z[:1], (len(z), 1)),  # one seed for all replicas
        lambda z: np.sqrt(36) * z / np.linalg.norm(z[:, :36], axis=1, keepdims=True),  # noise of one length
        lambda z: z + 0.1,
    ],
)
def test_mistakes_in_noise_are_noticed(mistake: Callable[[np.ndarray], np.ndarray]) -> None:
    draws = np.random.default_rng(0).standard_normal((600, 108))
    assert normal(draws)
    assert not normal(mistake(draws))


@pytest.mark.parametrize(("name", "params"), cases(options))
def test_the_noise_is_what_is_declared_and_five_per_cent_less_is_noticed(name: str, params: dict[str, Any]) -> None:
    recipe, made = RECIPES[name][0], trial(name, params)
    assert all(recipe(made))
    if made.declared(filled()).noise_scale > 0:
        assert not all(recipe(trial(name, params, share=0.95)))


def other_numbers(name: str) -> Iterator[dict[str, Any]]:
    """Without those that make the recipe short."""
    yield from ({k: v for k, v in params.items() if k not in RECIPES[name][1]} for params in numbers(name))


@pytest.mark.long
@pytest.mark.parametrize(("name", "params"), [*cases(combinations), *cases(other_numbers), *cases(ends)])
def test_so_it_is_where_options_are_combined_and_at_other_numbers(name: str, params: dict[str, Any]) -> None:
    try:
        trial(name, params).declared(filled())
    except dpviz.InvalidInput:
        assert params in combinations(name), "options may exclude each other, numbers may not"
        return
    test_the_noise_is_what_is_declared_and_five_per_cent_less_is_noticed(name, params)


class Watched(np.random.Generator):
    """A generator that remembers whether it drew noise, and whether it chose rows."""

    def __init__(self, stream: np.random.SeedSequence) -> None:
        super().__init__(np.random.PCG64(stream))
        self.key, self.purposes = tuple(stream.spawn_key), set[str]()

    @property
    def bit_generator(self) -> np.random.BitGenerator:
        self.purposes.add("rows")  # Poisson batches are made of raw bits
        return super().bit_generator


def _watching(method: str, purpose: str) -> Callable[..., Any]:
    def watched(self: Watched, *args: Any, **more: Any) -> Any:
        self.purposes.add(purpose)
        return getattr(np.random.Generator, method)(self, *args, **more)

    return watched


for _method in ("standard_normal", "normal", "gamma", "laplace", "gumbel", "random"):
    setattr(Watched, _method, _watching(_method, "noise"))
for _method in ("choice", "permutation", "shuffle", "integers", "binomial"):
    setattr(Watched, _method, _watching(_method, "rows"))


def generators_used(name: str, params: dict[str, Any], model: str, monkeypatch: pytest.MonkeyPatch) -> list[Watched]:
    """Generators that were made while three replicas with the streams (0,), (1,), (2,) were trained."""
    original, made = random.generator, []

    def recording(stream: np.random.SeedSequence) -> np.random.Generator:
        made.append(Watched(stream))
        return made[-1]

    built = ALL[name].from_params(RECIPES[name][1] | params)
    problem = make_problem(n=40, d=4, model=model)
    training = Training(problem, [built.calibrate(problem.setting, Budget(1.0, 1e-5))], random.spawn(5, 3), record=False)
    _ = problem.optimum  # the non-private model of a network is searched from starts of its own
    with monkeypatch.context() as patch:
        for module in list(sys.modules.values()):
            if getattr(module, "generator", None) is original:
                patch.setattr(module, "generator", recording)
        built.fit(training)
    return made


@pytest.mark.parametrize("model", dpviz.list_models())
@pytest.mark.parametrize(("name", "params"), cases(options))
def test_no_stream_of_random_numbers_serves_two_purposes(
    name: str, params: dict[str, Any], model: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Batches, permutations, starts and noise of a replica come from streams of their own, and no replica shares one."""
    if ALL[name].refusal(make_problem(model=model).setting):
        return
    try:
        made = generators_used(name, params, model, monkeypatch)
    except dpviz.InvalidInput:
        return  # this option is refused for this model
    keys = [generator.key for generator in made]
    assert len(set(keys)) == len(keys)
    purposes = [{key[1:] for key in keys if key[0] == replica} for replica in range(3)]
    assert purposes[0] == purposes[1] == purposes[2]
    assert sum(map(len, purposes)) == len(keys)
    assert all(len(generator.purposes) <= 1 for generator in made), "one generator chose rows and drew noise"


def test_a_stream_that_serves_two_purposes_is_noticed(monkeypatch: pytest.MonkeyPatch) -> None:
    """The control: permutations drawn from the noise's own stream."""
    permuted_sgd = importlib.import_module("dpviz.mechanisms.output.permuted_sgd")

    def careless(streams: list[np.random.SeedSequence], n: int) -> np.ndarray:
        return np.stack([shared_generator(stream).permutation(n) for stream in streams])

    def shared_generator(stream: np.random.SeedSequence) -> np.random.Generator:
        return random.generator(stream)

    monkeypatch.setattr(permuted_sgd, "permutations", careless)
    made = generators_used("rsgd", {}, "logistic", monkeypatch)
    assert len({generator.key for generator in made}) < len(made)


def test_a_generator_that_chooses_rows_and_draws_noise_is_noticed(monkeypatch: pytest.MonkeyPatch) -> None:
    single = importlib.import_module("dpviz.mechanisms.single_record")

    def careless(streams: list[np.random.SeedSequence], n: int, steps: int, dim: int, kinds: int = 1) -> Any:
        sources = [single.generator(stream) for stream in streams]
        index = np.array([rng.integers(n, size=steps) for rng in sources])
        return single.Draws(index, np.array([rng.standard_normal((kinds, steps, dim)) for rng in sources]))

    monkeypatch.setattr(single, "draw", careless)
    made = generators_used("pidp-sgd", {}, "logistic", monkeypatch)
    assert any(len(generator.purposes) > 1 for generator in made)
