"""Plants mistakes in the functions that were just changed, and fails where tests notice too few: a bounded step of the gate.

    python -m benchmarks.mutants_of_changes                    at most 40 mutants and 150 seconds
    python -m benchmarks.mutants_of_changes --since COMMIT     functions that differ from that commit

Without --since it is the last commit that HEAD~1, main and origin/main have in common. A function counts as changed where its
code differs, not its comments or its place. What the limits leave out is said and is no failure: a slow machine tries fewer
mutants. So is what cannot be tried at all: no history in a shallow clone, or no mutmut. Mutants of changed lines come first.
All survivors are shown, unless `equivalent_mutants.txt` says why they change nothing. The step fails where less than 95 % of
the mutants of changed lines were noticed; where not all were tried, where their 95 % interval lies below.
"""

import argparse
import ast
import importlib.util
import random
import subprocess
import sys
import tempfile
import time
from collections import Counter
from collections.abc import Iterable
from pathlib import Path

from benchmarks import mutants, planted
from benchmarks.mutants import ROOT, Mutant

LOOKED_AT = 10  # times as many mutants as are tried: to see which are on changed lines takes a hundredth of a second each


def functions(source: str) -> dict[str, str]:
    """The code of every function of a module and method of its classes, by "function" or "Class.method".

    Functions inside a function belong to it. Decorators, comments, docstrings and white space are left out.
    """
    found = {}

    def look(body: list[ast.stmt], above: str) -> None:
        for node in body:
            if isinstance(node, ast.ClassDef):
                look(node.body, f"{above}{node.name}.")
            elif isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef):
                documented = ast.get_docstring(node) is not None
                code = ast.Module(node.body[documented:], [])
                found[above + node.name] = f"{ast.dump(node.args)} {ast.dump(code)}"

    look(ast.parse(source).body, "")
    return found


def changed_functions(before: str, after: str) -> list[str]:
    """Names of functions of a module that are new or whose code differs; `before` is "" for a new module."""
    old = functions(before)
    return [name for name, code in functions(after).items() if old.get(name) != code]


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
    there = [name for name in names if git("rev-parse", "--verify", "--quiet", f"{name}^{{commit}}") is not None]
    if "HEAD~1" not in there:
        return None
    found = git("merge-base", "--octopus", *there)
    return None if found is None else found.strip()


def changes(since: str) -> dict[str, list[str]]:
    """Privacy-critical modules -> names of their functions that differ from a commit."""
    found = {}
    for module in (m for m in mutants.critical(mutants.changed(since)) if not mutants.is_written(m)):
        names = changed_functions(git("show", f"{since}:{module}") or "", (ROOT / module).read_text(encoding="utf-8"))
        if names:
            found[module] = names
    return found


def added_lines(since: str, modules: Iterable[str]) -> set[str]:
    """Lines of modules that a commit does not have, without their indentation."""
    said = (git("diff", "--unified=0", since, "--", *modules) or "").splitlines()
    return {line[1:].strip() for line in said if line[:1] == "+" and line[:3] != "+++"} - {""}


def on_changed_line(mutant: Mutant, added: set[str]) -> bool:
    """True where a mutant changes a line that is new."""
    return any(line[1:].strip() in added for line in mutant.change if line[:1] == "-")


def try_changes(
    found: dict[str, list[str]], added: set[str], most: int, seconds: float, children: int
) -> tuple[list[Mutant], list[str]]:
    """(mutants that were tried, what the limits left out in words).

    Args:
        found: what `changes` found.
        added: what `added_lines` found; mutants of these lines come first.
    """
    end = time.monotonic() + seconds
    only = [f"{mutants.dotted_name(module)}.{name}" for module, names in found.items() for name in names]
    with tempfile.TemporaryDirectory(ignore_cleanup_errors=True) as folder:
        try:
            tree = planted.Tree(Path(folder), list(found), only)
            names = random.Random(0).sample(tree.names, len(tree.names))  # no module is left out because its name comes late
            made = tree.mutants(names[: LOOKED_AT * most])
        except subprocess.CalledProcessError as error:
            return [], [f"all mutants, which could not be written: {error}"]
        made.sort(key=lambda mutant: not on_changed_line(mutant, added))
        tried = tree.try_all(made[:most], children, end, lambda mutant: None)
    done = [m for m in tried if m.outcome != mutants.NOT_TRIED]
    left = Counter(Mutant(name, "", ()).function for name in names) - Counter(m.function for m in done)
    return done, [f"{name}: {left[name]} mutants" for name in only if left[name]]


def main() -> int:
    parser = argparse.ArgumentParser(description=(__doc__ or "").split("\n")[0])
    parser.add_argument("--since", metavar="COMMIT", help="functions that differ from it")
    parser.add_argument("--most", type=int, default=40, metavar="N", help="mutants that are tried (default: 40)")
    parser.add_argument("--seconds", type=float, default=150.0, help="when to stop (default: 150)")
    parser.add_argument("--children", type=int, default=2, help="mutants that are tried at once (default: 2)")
    options = parser.parse_args()
    since = options.since or base()
    if since is None:
        print("Mutants of what changed: skipped, for there is no earlier commit here (a shallow clone, or no git).")
        return 0
    if importlib.util.find_spec("mutmut") is None:
        print("Mutants of what changed: skipped, for mutmut is not installed: pip install 'dpviz[mutation]'.")
        return 0
    found = changes(since)
    if not found:
        print(f"Mutants of what changed: no function of a privacy-critical module differs from {since[:12]}.")
        return 0
    added = added_lines(since, found)
    tried, left_out = try_changes(found, added, options.most, options.seconds, options.children)
    equivalent = mutants.equivalent()
    survived = [m for m in tried if m.kind(equivalent) == "survived"]
    new = [m for m in survived if on_changed_line(m, added)]
    noticed = sum(m.kind(equivalent) == "noticed" and on_changed_line(m, added) for m in tried)
    for mutant in survived:
        print("survived, " + ("on a changed line:" if mutant in new else "on a line that did not change:"))
        print(" ## ".join(mutant.place), *mutant.change, sep="\n    ")
    for line in left_out:
        print(f"not reached: {line}")
    print(
        f"Mutants of what differs from {since[:12]}: {len(tried)} tried, {len(survived)} survived; "
        f"on changed lines {noticed} were noticed and {len(new)} survived."
    )
    if not new:
        return 0
    share = planted.interval(noticed, len(new))[1] if left_out else noticed / (noticed + len(new))
    return 1 if share < mutants.ENOUGH else 0


if __name__ == "__main__":
    sys.exit(main())
