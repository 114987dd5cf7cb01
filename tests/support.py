"""What many tests share: waiting, small problems and neighbouring pairs."""

import ast
import time
from collections.abc import Callable, Iterable, Iterator
from functools import cache
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import dpviz
from dpviz.mechanisms.knobs import Choice, Switch
from dpviz.models import Rows, get_model
from dpviz.models.problem import Problem
from dpviz.privacy.accounting.events import Event, Gaussian, Repeated, Sampled


def noisy_sums(noise_multiplier: float, rate: float = 1.0, count: int = 1, sampling: str = "poisson") -> Event:
    """`count` noisy sums of random batches, to which one row contributes at most 1."""
    return Repeated(Sampled(Gaussian.of_rows(1.0, noise_multiplier), rate, sampling), count)


#: seconds after which a test gives up waiting; the one limit of all tests, far beyond what a slow machine needs
LIMIT = 300.0


@cache
def parse(source: str) -> ast.Module:
    """A module's syntax tree, which many tests look at and none changes."""
    return ast.parse(source)


@cache
def walk(tree: ast.AST) -> tuple[ast.AST, ...]:
    """All nodes of such a tree; to find them takes longer than to look at them."""
    return tuple(ast.walk(tree))


class Cancelled(Exception):
    """What `cancel` raises."""


def cancel(*_: object) -> None:
    """A monitor that gives up at the first report."""
    raise Cancelled


def cancel_after(share: float) -> Callable[[float], None]:
    """A monitor that gives up when more than a share of the work is done."""

    def monitor(done: float) -> None:
        if done > share:
            raise Cancelled

    return monitor


def until(true: Callable[[], bool], what: str = "it") -> None:
    """Waits until something is true."""
    end = time.monotonic() + LIMIT
    while not true():
        assert time.monotonic() < end, f"{what} did not happen within {LIMIT:g} s"
        time.sleep(0.005)


def assert_words(text: str, *words: str, absent: Iterable[str] = ()) -> None:
    """A text has all of these words, and none of the absent ones."""
    wrong = [f"no {one!r}" for one in words if one not in text] + [repr(one) for one in absent if one in text]
    assert not wrong, f"{', '.join(wrong)} in: {text}"


def assert_refused(
    call: Callable[..., object], *given: Any, match: str | None = None, field: str = "", **how: Any
) -> dpviz.InvalidInput:
    """The one clear error in which a call ends: of this field, with these words (a pattern), and with what to do."""
    with pytest.raises(dpviz.InvalidInput, match=match) as refused:
        call(*given, **how)
    assert refused.value.fix.strip()
    assert field in ("", refused.value.field)
    return refused.value


def mostly_long(values: Iterable[Any], *short: Any) -> list[Any]:
    """Parameters of which only `short` are tried by the README's command; .ci/run tries the others after it."""
    values = list(values)
    assert all(v in values for v in short)
    parts = [v if isinstance(v, tuple) else (v,) for v in values]
    return [pytest.param(*p, marks=() if v in short else pytest.mark.long) for v, p in zip(values, parts, strict=True)]


#: the first mechanism of each family
ONE_OF_EACH_FAMILY = list({m.family: name for name, m in reversed(dpviz.list_mechanisms().items())}.values())


def of_each(paths: Iterable[Path]) -> Callable[[Callable[[Path], None]], Callable[[], None]]:
    """One test that looks at many files and names those that fail: hundreds of tests of a millisecond cost seconds."""

    def merged(check: Callable[[Path], None]) -> Callable[[], None]:
        def test() -> None:
            failed = []
            for path in paths:
                try:
                    check(path)
                except AssertionError as error:
                    failed.append(f"{path}: {error}")
            assert not failed, "\n".join(failed)

        test.__name__, test.__doc__, test.__module__ = check.__name__, check.__doc__, check.__module__
        return test

    return merged


def make_problem(n: int = 40, d: int = 4, lam: float = 0.05, model: str = "logistic", seed: int = 0) -> Problem:
    """Random rows in the unit ball, both classes present."""
    rng = np.random.default_rng(seed)
    x = rng.standard_normal((n, d))
    x *= (rng.random(n) ** (1 / d) / np.linalg.norm(x, axis=1))[:, None]
    y = np.where(x[:, 0] + 0.3 * rng.standard_normal(n) > 0, 1.0, -1.0)
    y[:2] = (1.0, -1.0)
    return Problem(Rows(x, y), get_model(model), lam)


def neighbour(problem: Problem, rng: np.random.Generator) -> Problem:
    """A replace-one neighbour; half of the time the adversarial swap of (x, y) for (x, -y) on the unit sphere."""
    index = int(rng.integers(problem.n))
    direction = rng.standard_normal(problem.rows.X.shape[1])
    direction /= np.linalg.norm(direction)
    if rng.random() < 0.5:
        return problem.replace_row(index, problem.rows.X[index], -problem.rows.y[index])
    return problem.replace_row(index, direction, float(rng.choice([-1.0, 1.0])))


def options(name: str) -> Iterator[dict[str, Any]]:
    """The defaults, and every other option of every choice and switch on its own."""
    yield {}
    for knob, declared in dpviz.list_mechanisms()[name].knobs().items():
        default = dpviz.list_mechanisms()[name].defaults()[knob]
        if isinstance(declared, Choice):
            yield from ({knob: option} for option in declared.options if option != default)
        elif isinstance(declared, Switch):
            yield {knob: not default}


def cases(choose: Callable[[str], Iterator[dict[str, Any]]]) -> list[Any]:
    """One test case per mechanism and set of options; what is not the default is tried before a release."""
    return [
        pytest.param(
            name,
            params,
            id=" ".join([name, *(f"{k}={v}" for k, v in params.items())]),
            marks=[pytest.mark.before_release] if params and choose is options else [],
        )
        for name in dpviz.list_mechanisms()
        for params in choose(name)
    ]
