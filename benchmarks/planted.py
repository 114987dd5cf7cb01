"""Mistakes in privacy-critical modules, each tried by a pytest of its own: a sample costs minutes, not hours.

    python -m benchmarks.planted --draw 100            100 mutants, drawn from all privacy-critical modules alike
    python -m benchmarks.planted --draw 100 --seed 1   another hundred
    python -m benchmarks.planted dpviz/privacy/accounting/gaussian.py    of one module
    python -m benchmarks.planted --since --draw 40 --seconds 150         of lines that just changed: a step of the gate
    python -m benchmarks.planted --since COMMIT                          of lines that differ from that commit

--since alone is the last commit that HEAD~1, main and origin/main have in common; in a shallow clone the step says that it is
skipped. Compiled loops take minutes each and are left out there. The share that is noticed stands with its 95 % interval (Clopper
and Pearson 1934), which is that of all mutants that could have been drawn. The command fails where less than 95 % were noticed;
where not all were tried, where the interval lies below.
"""

import argparse
import fnmatch
import random
import re
import subprocess
import sys
import time
from collections.abc import Sequence
from concurrent.futures import ThreadPoolExecutor
from itertools import islice

from scipy.stats import beta

from benchmarks import mutants
from benchmarks.mutants import ROOT, Mutant

ENOUGH = 0.95


def git(*arguments: str) -> str | None:
    """The output of git; None where it fails or is not there."""
    try:
        done = subprocess.run(["git", *arguments], cwd=ROOT, capture_output=True, text=True)
    except FileNotFoundError:
        return None
    return done.stdout if done.returncode == 0 else None


def base() -> str | None:
    """The last commit that HEAD~1, main and origin/main have in common; None without history."""
    names = ("HEAD~1", "main", "origin/main")
    known = [name for name in names if git("rev-parse", "--verify", "--quiet", f"{name}^{{commit}}") is not None]
    commit = git("merge-base", "--octopus", *known) if "HEAD~1" in known else None
    return commit and commit.strip()


def new_lines(diff: str) -> set[int]:
    """Numbers of the lines that a diff without context adds or changes, and of both neighbours of lines that it removes."""
    found: set[int] = set()
    for start, count in re.findall(r"^@@ -\S+ \+(\d+)(?:,(\d+))? @@", diff, re.MULTILINE):
        found |= set(range(int(start), int(start) + (2 if count == "0" else int(count or 1))))
    return found


def changed(since: str, modules: Sequence[str]) -> list[Mutant]:
    """Mutants of lines that differ from a commit, compiled loops left out."""
    found = []
    for module in (module for module in modules if not fnmatch.fnmatch(module, mutants.COMPILED)):
        if lines := new_lines(git("diff", "--unified=0", since, "--", module) or ""):
            every = mutants.mutants_of((ROOT / module).read_text("utf-8"), module)
            found += [mutant for mutant in every if lines & set(mutant.lines)]
    return found


def interval(noticed: int, survived: int) -> tuple[float, float]:
    """95 % interval of the share that is noticed, by Clopper and Pearson (1934)."""
    low = float(beta.ppf(0.025, noticed, survived + 1)) if noticed else 0.0
    high = float(beta.ppf(0.975, noticed + 1, survived)) if survived else 1.0
    return low, high


def try_all(drawn: Sequence[Mutant], children: int, seconds: float) -> list[Mutant]:
    """Tries mutants, `children` at once; shows each survivor as soon as it is known. After some seconds none is begun."""
    end = time.monotonic() + seconds

    def one(mutant: Mutant) -> Mutant:
        limit = min(end - time.monotonic(), mutants.TOO_LONG * (5 if mutant.compiled else 1))
        tried = mutant.tried(limit) if limit > 0 else mutant
        print(f"{tried.outcome or 'not tried':9} {mutant.function}", flush=True)
        if tried.outcome == "survived":
            print("    " + " ## ".join(mutant.place), *mutant.change, sep="\n    ", flush=True)
        return tried

    with ThreadPoolExecutor(children) as pool:
        return list(pool.map(one, drawn))


def main() -> int:
    parser = argparse.ArgumentParser(description=(__doc__ or "").split("\n")[0])
    parser.add_argument("modules", nargs="*", help="files to draw from (default: all that are privacy-critical)")
    parser.add_argument("--since", metavar="COMMIT", nargs="?", const="", help="only lines that differ from it")
    parser.add_argument("--draw", type=int, default=100, metavar="N", help="mutants that are tried (default: 100)")
    parser.add_argument("--seed", type=int, default=0, help="of the draw")
    parser.add_argument("--seconds", type=float, default=float("inf"), help="when to stop (default: when all are tried)")
    parser.add_argument("--children", type=int, default=2, help="mutants that are tried at once (default: 2)")
    options = parser.parse_args()
    modules = mutants.critical(options.modules or mutants.everything())
    if options.since is None:
        every = [m for module in modules for m in mutants.mutants_of((ROOT / module).read_text("utf-8"), module)]
    elif since := options.since or base():
        every = changed(since, modules)
    else:
        print("Mutants of what changed: skipped, for there is no earlier commit here (a shallow clone, or no git).")
        return 0
    harmless = mutants.equivalent()
    every = [m for m in every if m.place not in harmless and (m.function, "*") not in harmless]
    shuffled = random.Random(options.seed).sample(every, len(every))
    drawn = list(islice(filter(Mutant.compiles, shuffled), options.draw))
    print(f"{len(drawn)} of {len(every)} mutants", flush=True)
    outcomes = [mutant.outcome for mutant in try_all(drawn, options.children, options.seconds)]
    noticed, survived = outcomes.count("noticed"), outcomes.count("survived")
    if not noticed + survived:
        print("None was tried.")
        return 0 if not drawn or options.since is not None else 1
    (low, high), share = interval(noticed, survived), noticed / (noticed + survived)
    print(f"Noticed {noticed}, survived {survived}, given up {outcomes.count('')}: {share:.1%} ({low:.1%} to {high:.1%})")
    return 0 if (share if noticed + survived == len(every) else high) >= ENOUGH else 1


if __name__ == "__main__":
    sys.exit(main())
