"""Privacy-critical modules, the tests that should notice a mistake in each, and how a planted mistake counts.

`benchmarks.planted` tries mistakes of these modules, `benchmarks.mutants_of_changes` those of functions that just changed.

A mutant counts in one of four ways. Noticed: a test fails or crashes. Words: only a text for people differs (a string with a
space in it, a formatted one, or the name of an argument that an error gives), or whether zip compares lengths. Equivalent: it
changes nothing that is promised, and `benchmarks/equivalent_mutants.txt` says why: function ## changed code ## reason, with *
for all of a function that promises nothing, such as the guess at which a search starts. Survived: all others. The score is
noticed/(noticed + survived). mutmut changes the bodies of functions; decorated functions such as properties, and constants of
modules and classes, stay as they are.
"""

import fnmatch
import io
import json
import os
import shutil
import signal
import subprocess
import sys
import tokenize
from collections.abc import Sequence
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path

import dpviz

ROOT = Path(__file__).parents[1]
EQUIVALENT = Path(__file__).with_name("equivalent_mutants.txt")
ENOUGH = 0.95

P, M = "tests/privacy/test_", "tests/mechanisms/test_"
LAW = (
    *(f"{M}noise_law.py", f"{M}noise_by_hand.py", f"{M}protected_training.py", f"{M}progress.py"),
    *(f"{P}declared_events.py", f"{M}sizes.py", f"{M}worst_pairs.py", f"{M}attack.py"),
    "tests/test_contract.py",
)

KEPT = "tests/test_kept_numbers.py"
_BOUND = "budget individual objective published_noise search sensitivity/algorithm2 sensitivity/bounds utility_bounds"
_ACCOUNTED = "account events gaussian methods mixture pair pld rdp sampled_moments shuffle"
#: what the numbers of mechanisms that are kept there are computed with
_COMPUTES = (
    *("dpviz/mechanisms/", "dpviz/models/", "dpviz/common/"),
    *(f"dpviz/privacy/{name}" for name in _BOUND.split()),
    *(f"dpviz/privacy/accounting/{name}" for name in _ACCOUNTED.split()),
)
LAST = (*LAW, KEPT)  # tests that go through all mechanisms

#: compiled loops: mistakes are written into their source (`benchmarks.written`)
WRITTEN = ("dpviz/models/kernels/*.py",)

#: modules in which a mistake can break a promise of privacy, and the tests that should notice it; the first pattern counts
TESTS: dict[str, tuple[str, ...]] = {
    "dpviz/privacy/accounting/gaussian.py": (f"{P}calibration.py", f"{P}gaussian.py", f"{M}attack.py"),
    "dpviz/privacy/accounting/rdp.py": (f"{P}rdp.py", f"{P}accounting.py"),
    "dpviz/privacy/accounting/sampled_moments.py": (f"{P}rdp.py",),
    "dpviz/privacy/accounting/shuffle.py": (f"{P}shuffle.py",),
    "dpviz/privacy/accounting/heterogeneous.py": (f"{P}heterogeneous.py",),
    "dpviz/privacy/accounting/repeated_selection.py": (f"{P}repeated_selection.py",),
    "dpviz/privacy/accounting/mixture.py": (f"{P}mixture.py",),
    "dpviz/privacy/accounting/distance.py": ("tests/test_one_number_of_odds.py", f"{M}attack.py"),
    "dpviz/privacy/accounting/pair.py": (f"{P}pld_exact.py", f"{P}accounting.py"),
    "dpviz/privacy/accounting/pld.py": (f"{P}pld_exact.py", f"{P}accounting.py", f"{P}accounting_extremes.py"),
    "dpviz/privacy/accounting/events.py": (f"{P}events.py", f"{P}declared_events.py"),
    "dpviz/privacy/accounting/division.py": (f"{P}division.py",),
    "dpviz/privacy/accounting/selection.py": (f"{P}division.py", "tests/experiments/sweeps/test_grid.py"),
    "dpviz/privacy/accounting/tables.py": (f"{P}accounting_tables.py", f"{P}new_accountant.py"),
    "dpviz/privacy/accounting/curves.py": (f"{P}curves.py", f"{P}accounting.py", f"{P}accounting_tables.py", f"{P}events.py"),
    "dpviz/privacy/accounting/side_by_side.py": (f"{P}accounting_extremes.py", f"{P}new_accountant.py", f"{P}accounting.py"),
    "dpviz/privacy/accounting/accountants/hockey_stick.py": (f"{P}mixture.py", f"{P}events.py", f"{P}accounting_extremes.py"),
    "dpviz/privacy/accounting/*.py": (
        *(f"{P}accounting.py", f"{P}accounting_extremes.py", f"{P}events.py", f"{P}pld_exact.py", f"{P}accounting_tables.py"),
        f"{P}new_accountant.py",
    ),
    "dpviz/privacy/sensitivity/iteration.py": (f"{P}iteration.py",),
    "dpviz/privacy/sensitivity/*.py": (f"{P}sensitivity.py", f"{P}published_steps.py"),
    "dpviz/privacy/audit_bounds.py": (f"{P}audit_bounds.py",),
    "dpviz/privacy/one_run_audit.py": (f"{P}one_run_audit.py",),
    "dpviz/privacy/published_noise.py": (f"{P}published_noise.py",),
    "dpviz/privacy/search.py": (f"{P}search.py",),
    "dpviz/privacy/objective.py": (f"{P}objective_privacy.py", f"{P}objective_losses.py"),
    "dpviz/privacy/individual.py": (f"{M}individual.py", f"{M}individual_paths.py"),
    "dpviz/privacy/utility_bounds.py": ("tests/papers/test_rates.py", f"{M}output_mechanisms.py"),
    "dpviz/privacy/private_ranges.py": (f"{P}private_ranges.py",),
    "dpviz/privacy/*.py": (P.removesuffix("/test_"),),
    "dpviz/mechanisms/ranges.py": ("tests/experiments/run/test_runs_in_private_ranges.py", "tests/releasing"),
    "dpviz/experiments/run/ranges.py": ("tests/experiments/run/test_runs_in_private_ranges.py",),
    "dpviz/mechanisms/persons.py": (f"{M}persons.py", f"{M}drawn_persons.py"),
    "dpviz/estimator/weights.py": ("tests/estimator/test_weights_and_persons.py", f"{M}weights.py"),
    "dpviz/common/persons.py": ("tests/datasets/test_persons.py", "tests/experiments/run/test_runs_of_persons.py"),
    "dpviz/mechanisms/output/*.py": (*LAW, f"{M}output_mechanisms.py", f"{M}individual.py", f"{M}rules.py"),
    "dpviz/mechanisms/objective/*.py": (
        *(*LAW, f"{M}objective.py", f"{M}individual.py"),
        *(f"{P}objective_privacy.py", f"{P}objective_losses.py"),
    ),
    "dpviz/mechanisms/input/dbdp_pi.py": (*LAW, f"{M}input.py", f"{M}passing_rules.py", f"{P}published_noise.py"),
    "dpviz/mechanisms/input/*.py": (*LAW, f"{M}input.py", f"{M}all_rows.py", "tests/models/test_kernels.py"),
    "dpviz/mechanisms/all_rows.py": (f"{M}all_rows.py", f"{M}sizes.py", f"{M}conditions.py", "tests/models/test_kernels.py"),
    "dpviz/mechanisms/local/*.py": (*LAW, f"{M}local.py"),
    "dpviz/mechanisms/gradient/dp_agd.py": (*LAW, f"{M}dp_agd.py", f"{M}clipped_shares.py", f"{M}all_rows.py"),
    "dpviz/mechanisms/gradient/dp_svrg.py": (*LAW, f"{M}dp_svrg.py", f"{M}clipped_shares.py", f"{M}individual_paths.py"),
    "dpviz/mechanisms/gradient/renyi_filter.py": (
        *LAW,
        *(f"{M}renyi_filter.py", f"{M}individual_paths.py", f"{M}clipped_shares.py", f"{M}all_rows.py"),
    ),
    "dpviz/mechanisms/gradient/pidp*.py": (*LAW, f"{M}passing_rules.py", f"{P}published_noise.py"),
    "dpviz/mechanisms/gradient/*.py": (
        *LAW,
        *(f"{M}{name}.py" for name in ("noisy_sgd", "batches", "song_and_bassily", "drawn_persons", "individual_paths")),
        *(f"{M}{name}.py" for name in ("clipped_shares", "rules", "streams", "all_rows")),
        "tests/models/test_products.py",
    ),
    "dpviz/mechanisms/reference/*.py": LAW,
    "dpviz/mechanisms/single_record.py": (*LAW, f"{M}passing_rules.py", f"{M}input.py"),
    "dpviz/mechanisms/attack.py": (f"{M}attack.py", "tests/test_one_number_of_odds.py"),
    "dpviz/mechanisms/conditions.py": (f"{M}conditions.py",),
    "dpviz/mechanisms/individual.py": (f"{M}individual.py", f"{M}individual_paths.py"),
    "dpviz/mechanisms/knobs.py": (f"{M}knobs.py",),
    "dpviz/mechanisms/registry.py": (f"{M}registry.py",),
    "dpviz/mechanisms/rules.py": (f"{M}rules.py",),
    "dpviz/mechanisms/*.py": (*LAW, f"{M}calibration_labels.py", f"{M}conditions.py", f"{M}rules.py"),
    "dpviz/common/random.py": (
        "tests/common/test_random.py",
        *(f"{M}{name}.py" for name in ("streams", "batches", "drawn_persons", "noise_law")),
    ),
    "dpviz/releasing/*.py": ("tests/releasing",),
    "dpviz/dashboard/one_run/publishing.py": ("tests/pages/test_publishing.py",),
    "dpviz/estimator/*.py": ("tests/estimator", f"{P}division.py"),
    "dpviz/auditing/*.py": ("tests/auditing", f"{M}planted_bugs.py"),
    "dpviz/models/solvers/*.py": ("tests/models", f"{P}sensitivity.py", f"{M}output_mechanisms.py", f"{M}objective.py"),
    "dpviz/models/feature_derivative.py": ("tests/models", f"{M}input.py"),
    "dpviz/models/rows.py": (
        *("tests/models", "tests/experiments/run/test_class_weights.py"),
        *(f"{M}{name}.py" for name in ("noisy_sgd", "drawn_persons", "noise_law", "sizes", "all_rows")),
    ),
    **dict.fromkeys(WRITTEN, ("tests/models", f"{M}noise_law.py", f"{M}sizes.py", f"{M}replaced_rows.py")),
    "dpviz/models/*.py": ("tests/models", f"{M}noise_law.py", f"{M}sizes.py", f"{M}replaced_rows.py"),
    "dpviz/reporting/calls.py": ("tests/reporting", "tests/cli/test_own_table.py"),
    "dpviz/reporting/*.py": ("tests/reporting",),
    "dpviz/common/memory.py": ("tests/common/test_memory.py",),
    "dpviz/common/kept.py": ("tests/experiments/sweeps/test_store.py", "tests/auditing/attacks/test_halves.py"),
    "dpviz/experiments/sweeps/store.py": ("tests/experiments/sweeps",),
    "dpviz/experiments/studies/releases.py": ("tests/experiments/studies/test_releases.py",),
    "dpviz/experiments/studies/odds.py": ("tests/test_one_number_of_odds.py",),
    "dpviz/experiments/run/resolve.py": ("tests/experiments/run", "tests/test_entry_points.py", "tests/datasets"),
    "dpviz/papers/saved.py": ("tests/papers/test_refutations.py", "tests/papers/test_saved_claims.py"),
    "dpviz/papers/verdict.py": ("tests/papers/test_claims.py", "tests/papers/test_statements.py"),
    "dpviz/papers/checks.py": (*(f"tests/papers/test_{name}.py" for name in ("claims", "compared_claims", "statements")),),
    "dpviz/papers/claims/*.py": (
        *(f"tests/papers/test_{name}.py" for name in ("claims", "compared_claims", "audited_claims")),
        "tests/papers",
    ),
    "dpviz/spending/*.py": ("tests/spending",),
}
#: lines on which a mutant changes words or the look of a picture only, or what numpy warns of
NOT_MUTATED = (
    r"raise (InvalidInput|CannotAccount|ValueError|RuntimeError|FloatingPointError)\(",
    r"refusal = InvalidInput\(",
    r"^\s*stop\(",
    r"np\.errstate\(",
    r"^\s*(label|citation|guarantee|noise_enters) =",
    r"^\s*Picture\(",
)
COPIED = ("app.py", "pages", "docs", "benchmarks", "data", "README.md", "CHANGELOG.md", ".streamlit")
#: functions whose first argument is the name that an error gives
VALIDATORS = ("positive", "in_range", "whole", "number", "one_of", "_positive")
NOT_TRIED = "not checked"  # of a mutant that was not reached in time, or given up

# writes the mutants without trying them, and marks those that are not to be tried
_PREPARE = """
import json, sys
from pathlib import Path
from mutmut import __main__ as mutmut
from mutmut.mutation.data import SourceFileMutationData
from mutmut.utils.file_utils import copy_src_dir, setup_source_paths, walk_mutatable_files
wanted = json.loads(sys.argv[1])

def function_of(name):
    return name.rsplit("__mutmut_", 1)[0].replace(".x_", ".").replace(".xǁ", ".").replace("ǁ", ".")

mutmut.set_mutant_under_test("mutant_generation")
Path("mutants").mkdir(exist_ok=True)
copy_src_dir()
mutmut.copy_also_copy_files()
setup_source_paths()
mutmut.create_mutants(wanted["children"])
for path in walk_mutatable_files():
    data = SourceFileMutationData(path=path)
    data.load()
    only = wanted["only"]
    for name in data.exit_code_by_key:
        data.exit_code_by_key[name] = None if only is None or function_of(name) in only else 34  # 34: skipped
    data.save()
"""


@dataclass(frozen=True)
class Mutant:
    """One planted mistake: what mutmut says of it, and the lines that it changes."""

    name: str
    outcome: str
    change: tuple[str, ...]

    @property
    def function(self) -> str:
        """The changed function with its module and class."""
        return self.name.rsplit("__mutmut_", 1)[0].replace(".x_", ".").replace(".xǁ", ".").replace("ǁ", ".")

    @property
    def place(self) -> tuple[str, str]:
        """(function, what is added to it), which stays when other mutants come and go."""
        added = [line[1:].split("  #")[0].strip() for line in self.change if line[0] == "+"]
        removed = [line[1:].split("  #")[0].strip() for line in self.change if line[0] == "-"]
        return self.function, " ".join(added or ["without", *removed])

    def kind(self, equivalent: dict[tuple[str, str], str]) -> str:
        """ "noticed", "words", "equivalent" or "survived"."""
        if self.outcome == "killed":
            return "noticed"
        if self.place in equivalent or (self.place[0], "*") in equivalent:
            return "equivalent"
        return "words" if only_words(self.change) else "survived"


def only_words(change: tuple[str, ...]) -> bool:
    """True where the removed and the added lines differ in texts for people only."""
    before, after = (without_words("\n".join(line[1:] for line in change if line[0] == sign)) for sign in "-+")
    return before is not None and before == after


def without_words(code: str) -> list[str] | None:
    """Tokens of a piece of code in which all texts for people are alike; None where it cannot be read."""
    found: list[str] = []
    try:
        for token in tokenize.generate_tokens(io.StringIO(code.strip()).readline):
            text = token.type == tokenize.STRING and (" " in token.string or token.string[:1] in "fr")
            text = text or (len(found) > 1 and found[-1] == "(" and found[-2] in VALIDATORS)
            if found[-3:] == [",", "strict", "="]:  # of zip: a check, which no caller may rely on
                del found[-3:]
                continue
            if token.string == ")" and found[-1:] == [","]:
                del found[-1]
            found.append("text" if text else token.string)
    except (tokenize.TokenError, IndentationError):
        pass  # the piece ends inside a bracket: what was read up to there is compared
    return found


def dotted_name(module: str) -> str:
    """ "dpviz/a/b.py" is "dpviz.a.b"."""
    return module.removesuffix(".py").replace("/", ".")


def everything() -> list[str]:
    """All files of the engine and the app, relative to the project."""
    return [str(path.relative_to(ROOT)) for path in sorted((ROOT / "dpviz").rglob("*.py"))]


def changed(since: str) -> list[str]:
    """Files that differ from a commit."""
    command = ["git", "diff", "--name-only", since, "--", "dpviz"]
    return subprocess.run(command, cwd=ROOT, capture_output=True, text=True, check=True).stdout.split()


def tests_of(module: str) -> tuple[str, ...]:
    """The tests that should notice a mistake in a module, those of its own name first; () where it is not privacy-critical."""
    found = next((tests for pattern, tests in TESTS.items() if fnmatch.fnmatch(module, pattern)), ())
    path = Path(module)
    mirrored = sorted((ROOT / "tests").glob(f"{path.parts[1]}/**/test_{path.stem}.py")) if found else []
    own = [str(test.relative_to(ROOT)) for test in mirrored]
    if found and module.startswith(_COMPUTES):
        found = (*found, KEPT)
    return tuple(dict.fromkeys(test for test in (*own, *found) if (ROOT / test).exists()))


def critical(modules: list[str]) -> list[str]:
    """The files among these that are privacy-critical, in the order of `TESTS`."""
    patterns = list(TESTS)

    def place(module: str) -> int:
        return next(k for k, pattern in enumerate(patterns) if fnmatch.fnmatch(module, pattern))

    return sorted((m for m in modules if tests_of(m) and (ROOT / m).is_file() and not m.endswith("__init__.py")), key=place)


def is_written(module: str) -> bool:
    """True where mistakes of a module are written into its source, because its loops are compiled."""
    return any(fnmatch.fnmatch(module, pattern) for pattern in WRITTEN)


def about(module: str) -> str:
    """The argument of pytest's -k for tests that go through all mechanisms: those that a module concerns; "" for all tests.

    A file shared by a family concerns the family, one of base classes beside the families their subclasses.
    """
    place, own = Path(module), [Path(test).stem for test in tests_of(module) if test not in LAST]
    if not set(LAW) & set(tests_of(module)):
        return ""
    classes, dotted = dpviz.list_mechanisms().items(), dotted_name(module)
    if place.parent.name == "mechanisms":  # base classes of some mechanisms, or what all of them use
        ids = [name for name, kind in classes if any(base.__module__ == dotted for base in kind.__mro__)]
        return " or ".join([*ids, *own]) if 0 < len(ids) < len(classes) else ""
    ids = [name for name, kind in classes if kind.__module__ == dotted]
    ids = ids or [name for name, kind in classes if kind.__module__.startswith(".".join(place.parent.parts) + ".")]
    return " or ".join([*ids, *own]) if ids else ""  # what models do concerns all mechanisms


def tests_say(module: str, place: Path, seconds: float, **environment: str) -> int | None:
    """What pytest returns for the tests of a module, which end at the first that notices a mistake; None where it takes too long.

    Args:
        place: the copy of the project in which they run.
    """
    tests = sorted(tests_of(module), key=lambda test: test in LAST)
    some = ["-k", about(module)] if about(module) else []
    command = [sys.executable, "-m", "pytest", "-n", "0", "-p", "no:cacheprovider", "-x", "-q", *some, *tests]
    quiet = subprocess.DEVNULL
    with subprocess.Popen(
        command, cwd=place, env=os.environ | environment, stdout=quiet, stderr=quiet, start_new_session=True
    ) as started:
        try:
            return started.wait(seconds)
        except subprocess.TimeoutExpired:
            return None
        finally:
            with suppress(ProcessLookupError):
                os.killpg(started.pid, signal.SIGKILL)


def configuration(modules: Sequence[str]) -> str:
    """The section of pyproject.toml that mutmut reads."""
    values = {
        "source_paths": ["dpviz"],
        "only_mutate": list(modules),
        "do_not_mutate_patterns": list(NOT_MUTATED),
        "also_copy": list(COPIED),
    }
    lines = [f"{key} = [" + ", ".join(f"'{v}'" for v in value) + "]" for key, value in values.items()]
    lines += ["use_git_change_detection = false", "track_dependencies = false"]
    return "\n".join(["", "[tool.mutmut]", *lines, ""])


def copy_to(copy: Path) -> None:
    """Copies the project."""
    ignore = shutil.ignore_patterns(".git", ".venv", "venv", "mutants", "__pycache__", ".*_cache", ".hypothesis")
    shutil.copytree(ROOT, copy, ignore=ignore)


def copy_with(copy: Path, modules: Sequence[str]) -> None:
    """Copies the project, with a configuration for mutants of these modules."""
    copy_to(copy)
    with (copy / "pyproject.toml").open("a") as file:
        file.write(configuration(modules))


def prepare(copy: Path, only: Sequence[str] | None = None) -> None:
    """Writes the mutants into a copy without trying them; those of some functions only, or of all."""
    _mutmut(copy, "-c", _PREPARE, json.dumps({"only": only, "children": os.cpu_count() or 1}))


def _mutmut(copy: Path, *arguments: str) -> None:
    """Runs Python in a copy; what it prints (mutmut draws a moving picture) is shown only where it failed."""
    done = subprocess.run([sys.executable, *arguments], cwd=copy, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True)
    if done.returncode:
        print(done.stdout[-3000:], file=sys.stderr)
        raise subprocess.CalledProcessError(done.returncode, [sys.executable, *arguments])


def equivalent() -> dict[tuple[str, str], str]:
    """Mutants that change nothing that is promised -> why."""
    lines = [line.split(" ## ") for line in EQUIVALENT.read_text().splitlines() if line and line[0] != "#"]
    return {(function, code): reason for function, code, reason in lines}
