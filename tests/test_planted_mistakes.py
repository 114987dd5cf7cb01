"""Mistakes planted in models, estimator, releases, caches and claims, one at a time: a test of theirs must fail.

Those of mechanisms are in `mechanisms/test_semantic_mutants.py`. The plugin `planting.py` plants one of those in `planting.toml`.
"""

import os
import subprocess
import sys

import pytest
from planting import MISTAKES, ROOT, Mistake

#: tried by the README's command; the first of each module is tried by the gate, as each needs an interpreter of its own
QUICK = ("a δ above 1/n passes", "a refutation holds for every form")
FIRST = {mistake.module: mistake.name for mistake in reversed(MISTAKES)}


def case(mistake: Mistake) -> object:
    later = pytest.mark.long if mistake.name == FIRST[mistake.module] else pytest.mark.before_release
    return pytest.param(mistake, id=mistake.name, marks=() if mistake.name in QUICK else later)


def test_every_mistake_can_be_planted() -> None:
    assert len(MISTAKES) >= 40
    assert len({mistake.name for mistake in MISTAKES}) == len(MISTAKES)
    for mistake in MISTAKES:
        text = mistake.path.read_text("utf-8")
        assert text.count(mistake.old) == 1, f"{mistake.name}: {mistake.module} reads otherwise now"
        compile(text.replace(mistake.old, mistake.new), mistake.name, "exec")
        path, test = mistake.seen_by.split("::")
        assert f"def {test}(" in (ROOT / path).read_text("utf-8"), f"{mistake.name}: {mistake.seen_by} is gone"


@pytest.mark.parametrize("mistake", [case(mistake) for mistake in MISTAKES])
def test_the_mistake_is_seen(mistake: Mistake) -> None:
    command = [sys.executable, "-m", "pytest", "-p", "planting", "-n", "0", "-x", "-q", "-p", "no:cacheprovider"]
    environment = os.environ | {
        "DPVIZ_MISTAKE": str(MISTAKES.index(mistake)),
        "PYTHONPATH": os.pathsep.join([str(ROOT), str(ROOT / "tests")]),
    }
    done = subprocess.run([*command, mistake.seen_by], cwd=ROOT, env=environment, capture_output=True, text=True, check=False)
    assert done.returncode == pytest.ExitCode.TESTS_FAILED, done.stdout[-2000:] + done.stderr[-2000:]
    assert "the source has changed" not in done.stdout
