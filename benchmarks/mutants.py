"""Plants mistakes in the privacy-critical modules with mutmut, and counts how many of them the tests notice.

    pip install 'dpviz[mutation]'
    python -m benchmarks.mutants                     what differs from the last commit (or --since COMMIT)
    python -m benchmarks.mutants --all               every privacy-critical module: hours
    python -m benchmarks.mutants dpviz/privacy/accounting/gaussian.py

Works on a copy, in processes of their own. Messages of errors are not mutated. `benchmarks/equivalent_mutants.txt` names
survivors that change nothing that is promised, one a line: the mutant's name, a space, the reason. All others are listed.
"""

from __future__ import annotations

import argparse
import fnmatch
import re
import shutil
import subprocess
import sys
import tempfile
from pathlib import Path

ROOT = Path(__file__).parents[1]
EQUIVALENT = Path(__file__).with_name("equivalent_mutants.txt")

#: modules in which a mistake can break a promise of privacy, and the tests that should notice it
CRITICAL = {
    "dpviz/privacy/*.py": ("tests/privacy",),
    "dpviz/mechanisms/*.py": ("tests/mechanisms", "tests/test_contract.py", "tests/privacy/test_declared_events.py"),
    "dpviz/auditing/*.py": ("tests/auditing", "tests/mechanisms/test_planted_bugs.py"),
    "dpviz/models/*.py": ("tests/models", "tests/mechanisms/test_noise_law.py"),
}
#: lines on which a mutant changes words only, or what numpy warns of
NOT_MUTATED = (
    r"raise (InvalidInput|CannotAccount|ValueError|RuntimeError)\(",
    r"np\.errstate\(",
    r"^\s*(label|citation|guarantee|noise_enters) =",
)
COPIED = ("app.py", "pages", "docs", "benchmarks", "data", "README.md", "CHANGELOG.md", ".streamlit")


def changed(since: str) -> list[str]:
    """Files that differ from a commit."""
    command = ["git", "diff", "--name-only", since, "--", "dpviz"]
    return subprocess.run(command, cwd=ROOT, capture_output=True, text=True, check=True).stdout.split()


def critical(files: list[str]) -> list[str]:
    """The files among these that are privacy-critical."""
    return sorted(f for f in files if any(fnmatch.fnmatch(f, pattern) for pattern in CRITICAL) and (ROOT / f).is_file())


def configuration(modules: list[str]) -> str:
    """The section of pyproject.toml that mutmut reads."""
    tests = sorted(
        {test for m in modules for pattern, tests in CRITICAL.items() if fnmatch.fnmatch(m, pattern) for test in tests}
    )
    values = {
        "source_paths": ["dpviz"],
        "only_mutate": modules,
        "do_not_mutate_patterns": list(NOT_MUTATED),
        "also_copy": list(COPIED),
        "pytest_add_cli_args": ["-n", "0", "-p", "no:cacheprovider", "-x", "-q"],
        "pytest_add_cli_args_test_selection": tests,
    }
    lines = [f"{key} = [" + ", ".join(f"'{v}'" for v in value) + "]" for key, value in values.items()]
    return "\n".join(["", "[tool.mutmut]", *lines, "use_git_change_detection = false", ""])


def run(modules: list[str], children: int) -> dict[str, str]:
    """Outcome by mutant: "killed", "survived", "timeout" or another word of mutmut's."""
    with tempfile.TemporaryDirectory() as folder:
        copy = Path(folder) / "dpviz"
        ignore = shutil.ignore_patterns(".git", ".venv", "venv", "mutants", "__pycache__", ".*_cache", ".hypothesis")
        shutil.copytree(ROOT, copy, ignore=ignore)
        with (copy / "pyproject.toml").open("a") as file:
            file.write(configuration(modules))
        command = [sys.executable, "-m", "mutmut"]
        subprocess.run([*command, "run", "--max-children", str(children)], cwd=copy, check=True)
        shown = subprocess.run(
            [*command, "results", "--all", "true"], cwd=copy, capture_output=True, text=True, check=True
        ).stdout
        outcomes = dict(re.findall(r"^\s*(\S+__mutmut_\d+): (.+)$", shown, re.MULTILINE))
        for name, outcome in outcomes.items():
            if outcome == "survived":
                change = subprocess.run([*command, "show", name], cwd=copy, capture_output=True, text=True, check=True).stdout
                print(name, *(line for line in change.splitlines() if re.match(r"[-+](?![-+])", line)), sep="\n    ")
        return outcomes


def main() -> int:
    parser = argparse.ArgumentParser(description=(__doc__ or "").split("\n")[0])
    parser.add_argument("modules", nargs="*", help="files to plant mistakes in")
    parser.add_argument("--all", action="store_true", help="all privacy-critical modules")
    parser.add_argument("--since", default="HEAD~1", metavar="COMMIT", help="files that differ from it (default: HEAD~1)")
    parser.add_argument("--children", type=int, default=2, help="mutants that are tried at once (default: 2)")
    options = parser.parse_args()
    everything = [str(p.relative_to(ROOT)) for p in (ROOT / "dpviz").rglob("*.py")]
    modules = critical(everything if options.all else options.modules or changed(options.since))
    if not modules:
        print("Nothing privacy-critical to plant mistakes in.")
        return 0
    outcomes = run(modules, options.children)
    known = {line.split(" ", 1)[0] for line in EQUIVALENT.read_text().splitlines() if line and line[0] != "#"}
    judged = {name: outcome for name, outcome in outcomes.items() if name not in known}
    noticed = sum(outcome in ("killed", "timeout", "segfault") for outcome in judged.values())
    share = noticed / max(1, len(judged))
    print(f"{noticed} of {len(judged)} mutants noticed ({share:.1%}); {len(outcomes) - len(judged)} known to change nothing")
    return 0 if share >= 0.95 else 1


if __name__ == "__main__":
    sys.exit(main())
