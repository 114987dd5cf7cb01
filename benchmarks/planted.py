"""Mistakes in many modules at once, each tried by a pytest of its own: a few of many modules cost minutes, not hours.

    python -m benchmarks.planted --draw 100            100 mutants, drawn from all privacy-critical modules alike
    python -m benchmarks.planted --draw 100 --seed 1   another hundred
    python -m benchmarks.planted dpviz/privacy/accounting/gaussian.py    of one module

The mutants of all modules are written into one copy, and a mutant's tests are those of its module (`mutants.TESTS`), its own
subject's before those that go through all mechanisms. The score of a draw estimates that of all mutants, of which it says the
95 % interval (Clopper and Pearson). Mistakes of compiled loops come last, one at a time (`benchmarks.written`).
"""

import argparse
import json
import random
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Iterable, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import replace
from pathlib import Path

from scipy.stats import beta

from benchmarks import mutants, written
from benchmarks.mutants import NOT_TRIED, Mutant

TOO_LONG = 180.0  # seconds after which a mutant is given up; its tests take 15 to 60 on an idle core
OUTCOMES = {0: "survived", 5: "no tests"}

# the changed lines of the mutants that are named on standard input
_CHANGES = """
import json, sys
from mutmut.mutation.diff_apply import get_diff_for_mutant
found = {}
for name, path in json.load(sys.stdin):
    lines = get_diff_for_mutant(name, path=path).splitlines()
    found[name] = [line for line in lines if line[:1] in "-+" and line[:3] not in ("---", "+++")]
json.dump(found, sys.stdout)
"""


class Tree:
    """A copy of the project in which mistakes are planted that one variable of the environment switches on."""

    def __init__(self, folder: Path, modules: Sequence[str], only: Iterable[str] | None = None) -> None:
        """
        Args:
            folder: where the copy is made.
            modules: files, relative to the project.
            only: functions, with their modules, whose mutants are written; None: all.

        Raises:
            subprocess.CalledProcessError: mutmut could not write the mutants.
        """
        self._copy = folder / "dpviz"
        mutants.copy_with(self._copy, modules)
        mutants.prepare(self._copy, only=None if only is None else tuple(only))
        self.modules = {mutants.dotted_name(module): module for module in modules}
        self.names: list[str] = []
        for module in modules:
            kept = json.loads((self._copy / "mutants" / f"{module}.meta").read_text())["exit_code_by_key"]
            self.names += [name for name, code in kept.items() if code is None]

    def module_of(self, name: str) -> str:
        """The file of a mutant."""
        return self.modules[name.rpartition(".")[0]]

    def mutants(self, names: Iterable[str]) -> list[Mutant]:
        """Mutants that were not tried yet, with what they change."""
        asked = [(name, self.module_of(name)) for name in names]
        command = [sys.executable, "-c", _CHANGES]
        said = subprocess.run(command, cwd=self._copy, input=json.dumps(asked), capture_output=True, text=True, check=True)
        return [Mutant(name, NOT_TRIED, tuple(change)) for name, change in json.loads(said.stdout).items()]

    def tried(self, mutant: Mutant, seconds: float) -> Mutant:
        """A mutant and what its tests say of it; one that takes longer stays as it was."""
        place = self._copy / "mutants"
        found = mutants.tests_say(
            self.module_of(mutant.name), place, seconds, MUTANT_UNDER_TEST=mutant.name, PYTHONPATH=str(place)
        )
        return mutant if found is None else replace(mutant, outcome=OUTCOMES.get(found, "killed"))

    def try_all(self, wanted: Sequence[Mutant], children: int, end: float, told: Callable[[Mutant], None]) -> list[Mutant]:
        """Tries mutants one after the other, some at once.

        Args:
            children: how many at once.
            end: of `time.monotonic`, after which none is begun and those under way are given up.
            told: hears of each as soon as it is known.
        """

        def one(mutant: Mutant) -> Mutant:
            left = min(end - time.monotonic(), TOO_LONG)
            known = self.tried(mutant, left) if left > 0 else mutant
            told(known)
            return known

        with ThreadPoolExecutor(children) as pool:
            return list(pool.map(one, wanted))


def interval(noticed: int, survived: int) -> tuple[float, float]:
    """95 % interval of the share that is noticed, by Clopper and Pearson (1934)."""
    low = float(beta.ppf(0.025, noticed, survived + 1)) if noticed else 0.0
    high = float(beta.ppf(0.975, noticed + 1, survived)) if survived else 1.0
    return low, high


def main() -> int:
    parser = argparse.ArgumentParser(description=(__doc__ or "").split("\n")[0])
    parser.add_argument("modules", nargs="*", help="files to draw from (default: all that are privacy-critical)")
    parser.add_argument("--draw", type=int, default=100, metavar="N", help="mutants that are tried (default: 100)")
    parser.add_argument("--seed", type=int, default=0, help="of the draw")
    parser.add_argument("--children", type=int, default=2, help="mutants that are tried at once (default: 2)")
    options = parser.parse_args()
    modules, harmless = mutants.critical(options.modules or mutants.everything()), mutants.equivalent()

    def told(mutant: Mutant) -> None:
        kind = mutant.outcome if mutant.outcome == NOT_TRIED else mutant.kind(harmless)
        print(f"{kind:12} {mutant.name}", flush=True)
        if kind == "survived":
            print(" ## ".join(mutant.place), *mutant.change, sep="\n    ", flush=True)

    with tempfile.TemporaryDirectory(ignore_cleanup_errors=True) as folder:
        tree = Tree(Path(folder), [module for module in modules if not mutants.is_written(module)])
        loops = written.Copy(Path(folder), [module for module in modules if mutants.is_written(module)])
        every = sorted([*tree.names, *loops.changes])
        names = random.Random(options.seed).sample(every, min(options.draw, len(every)))
        print(f"{len(names)} of {len(every)} mutants of {len(modules)} modules", flush=True)
        asked = tree.mutants(name for name in names if name not in loops.changes)
        found = tree.try_all(asked, options.children, float("inf"), told)
        for mutant in (loops.mutant(name) for name in names if name in loops.changes):
            found.append(loops.tried(mutant))
            told(found[-1])
    kinds = [m.kind(harmless) for m in found if m.outcome != NOT_TRIED]
    noticed, survived = kinds.count("noticed"), kinds.count("survived")
    if not noticed + survived:
        print("none could be tried")
        return 1
    low, high = interval(noticed, survived)
    print(
        f"noticed {noticed}, survived {survived}, equivalent {kinds.count('equivalent')}, words {kinds.count('words')}, "
        f"given up {len(found) - len(kinds)}: {noticed / (noticed + survived):.1%} ({low:.1%} to {high:.1%})"
    )
    return 0 if noticed / (noticed + survived) >= mutants.ENOUGH else 1


if __name__ == "__main__":
    sys.exit(main())
