"""Mistakes planted in models, estimator, releases, caches and claims, one at a time: a test of theirs must fail.

Those of mechanisms are in `mechanisms/test_semantic_mutants.py`: one interpreter tries each of them in every mechanism.
The plugin `planting.py` plants one of those in `planting.toml`.
"""

import pytest
from planting import MISTAKES, ROOT, Mistake

from benchmarks.mutants import planted

#: tried by the README's command; the first of each module is tried by the gate, as each needs an interpreter of its own
QUICK = ("a refutation holds for every form",)
FIRST = {mistake.module: mistake.name for mistake in reversed(MISTAKES)}


def case(mistake: Mistake) -> object:
    later = pytest.mark.long if mistake.name == FIRST[mistake.module] else pytest.mark.before_release
    return pytest.param(mistake, id=mistake.name, marks=() if mistake.name in QUICK else later)


def test_every_mistake_can_be_planted() -> None:
    assert len(MISTAKES) >= 100
    assert len({mistake.name for mistake in MISTAKES}) == len(MISTAKES)
    for mistake in MISTAKES:
        compile(mistake.source(), mistake.name, "exec")
        path, test = mistake.seen_by.split("::")
        assert f"def {test}(" in (ROOT / path).read_text("utf-8"), f"{mistake.name}: {mistake.seen_by} is gone"


@pytest.mark.parametrize("mistake", [case(mistake) for mistake in MISTAKES])
def test_the_mistake_is_seen(mistake: Mistake) -> None:
    done = planted(str(MISTAKES.index(mistake)), [mistake.seen_by], 600)
    assert done is not None, "takes too long"
    assert done.returncode == pytest.ExitCode.TESTS_FAILED, done.stdout[-4000:]
    assert "reads otherwise now" not in done.stdout
