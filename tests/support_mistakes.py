"""Mistakes that break privacy, each put into dpviz by a function that a test calls."""

import dataclasses
import importlib
import sys
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest
from support_noise import weaker, with_values

import dpviz
from dpviz.auditing import game
from dpviz.common import random
from dpviz.mechanisms import Mechanism
from dpviz.mechanisms.gradient.poisson_sgd import PoissonSGD
from dpviz.models.problem import Problem
from dpviz.models.solvers import minibatch
from dpviz.privacy.accounting import account
from dpviz.privacy.accounting.events import steps_of

Patch = pytest.MonkeyPatch


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


class BareCoordinate(Wrong):
    def change(self, method: str, draw: np.ndarray) -> np.ndarray:
        if method == "standard_normal" and draw.ndim and draw.size:
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
        for cls in {
            c for m in dpviz.list_mechanisms().values() for c in m.__mro__ if "calibrate" in vars(c) and c is not Mechanism
        }:
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


# --- mistakes in batches and sums ------------------------------------------------------------------------------------


def fixed_batches(patch: Patch) -> None:
    """Batches of a shuffled order, of one size, where Poisson batches are accounted for."""

    def batches(n: int, rate: float) -> Any:
        def start(rng: np.random.Generator) -> Any:
            size, order = max(1, round(n * rate)), rng.permutation(n)
            return lambda t: np.sort(np.take(order, range(t * size, (t + 1) * size), mode="wrap"))

        return start

    everywhere(patch, "poisson_batches", random.poisson_batches, batches)


def rows_too_often(patch: Patch) -> None:
    original = random.poisson_batches
    everywhere(patch, "poisson_batches", original, lambda n, rate: original(n, min(1.0, 1.25 * rate)))


def one_batch(patch: Patch) -> None:
    """The batch of the first step in all of them."""
    original = random.poisson_batches

    def batches(n: int, rate: float) -> Any:
        def start(rng: np.random.Generator) -> Any:
            first = original(n, rate)(rng)(0)
            return lambda t: first

        return start

    everywhere(patch, "poisson_batches", original, batches)


def half_the_steps(patch: Patch) -> None:
    original = PoissonSGD.noisy_sums

    def wrong(self: Any, setting: Any, contribution: float, sigma: float = 1.0) -> Any:
        right = original(self, setting, contribution, sigma)
        return dataclasses.replace(right, count=max(1, right.count // 2))

    patch.setattr(PoissonSGD, "noisy_sums", wrong)


def one_order(patch: Patch) -> None:
    everywhere(patch, "permutations", minibatch.permutations, lambda streams, n: np.tile(np.arange(n), (len(streams), 1)))


def all_rows_counted(patch: Patch) -> None:
    """n of the calibrations includes rows that are kept for testing."""
    original = Problem.setting.func  # type: ignore[attr-defined]
    patch.setattr(Problem, "setting", property(lambda self: dataclasses.replace(original(self), n=self.n + self.n // 4)))


def threshold_on_the_counted_half(patch: Patch) -> None:
    original = game.count_errors

    def wrong(a: Any, b: Any, cut: float) -> Any:
        return original(a, b, game.best_threshold(a, b, trials=len(a), delta=0.05, confidence=0.5)[0])

    patch.setattr(game, "count_errors", wrong)


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
