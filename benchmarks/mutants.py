"""Mistakes in privacy-critical modules: which there are, how one is planted, and the tests that should notice it.

`benchmarks.planted` tries them. A mutant is another operator, number, name, string or argument in the source of a function, or
None in the place of a value. It is noticed where a test fails or crashes, and survives where none does. Equivalent ones change
nothing that is promised; `benchmarks/equivalent_mutants.txt` says why: function ## changed code ## reason, with * for all of a
function that promises nothing, such as the guess at which a search starts.
"""

import ast
import fnmatch
import io
import os
import re
import signal
import subprocess
import sys
import tempfile
import tokenize
from bisect import bisect
from collections.abc import Callable, Iterator, Sequence
from contextlib import suppress
from dataclasses import dataclass, replace
from itertools import accumulate, pairwise
from pathlib import Path
from typing import Any

import pytest

import dpviz

ROOT = Path(__file__).parents[1]
EQUIVALENT = Path(__file__).with_name("equivalent_mutants.txt")
TOO_LONG = 180.0  # seconds after which a mutant is given up; its tests take 15 to 60 on an idle core

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

#: compiled loops, whose tests take minutes as they are compiled anew with each mistake
COMPILED = "dpviz/models/kernels/*.py"

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
    COMPILED: ("tests/models", f"{M}noise_law.py", f"{M}sizes.py", f"{M}replaced_rows.py"),
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
#: token -> what may stand in its place, a few of them with a space between
_PAIRS = (
    "+ -|< <=|> >=|== !=|<< >>|and or|True False|min max|lower upper|removeprefix removesuffix|partition rpartition|find rfind"
)
_SWAPS = {a: b for pair in _PAIRS.split("|") for a, b in (pair.split(), pair.split()[::-1])}
_SWAPS |= {"*": "+", "/": "*", "//": "*", "%": "//", "**": "*", "&": "|", "|": "&", "^": "&", "deepcopy": "copy"}
_SWAPS |= {"+=": "-= =", "-=": "+= =", "*=": "+= =", "/=": "*= =", "&=": "|= =", "|=": "&= =", "break": "return"}
_SWAPS |= {"continue": "break", "in": "not_in", "is": "is_not", "not": "", "~": ""}
#: calls that only make words, a picture, or silence a warning of numpy
_WORDS = ("InvalidInput", "CannotAccount", "Picture", "errstate", "stop")
#: functions whose first argument is the name that an error gives
_VALIDATORS = ("positive", "in_range", "whole", "number", "one_of", "_positive")
_FUNCTION = (ast.FunctionDef, ast.AsyncFunctionDef)
Replacement = tuple[int, int, str]  # from, to, and the new text


@dataclass(frozen=True)
class Mutant:
    """One mistake: new text at a place of a module's source.

    Attributes:
        module: file, relative to the project.
        function: function with its module and class; functions inside a function belong to it.
        start, stop, new: characters of the source that are replaced, and by what.
        lines: of the source, that change.
        change: removed and added lines, with - and +.
        outcome: "noticed", "survived", or "" before it was tried or where its tests took too long.
    """

    module: str
    function: str
    start: int
    stop: int
    new: str
    lines: range
    change: tuple[str, ...]
    outcome: str = ""

    @property
    def place(self) -> tuple[str, str]:
        """(function, what is added to it), which stays when other mutants come and go."""
        added, removed = ([text(line) for line in self.change if line[0] == sign] for sign in "+-")
        return self.function, " ".join(added or ["without", *removed])

    @property
    def compiled(self) -> bool:
        """True where kernels hold the function."""
        return fnmatch.fnmatch(self.module, COMPILED) or self.module == "dpviz/models/losses.py"

    def compiles(self) -> bool:
        """True where the changed source is Python."""
        source = (ROOT / self.module).read_text("utf-8")
        try:
            compile(source[: self.start] + self.new + source[self.stop :], self.module, "exec")
        except SyntaxError:
            return False
        return True

    def tried(self, seconds: float) -> "Mutant":
        """The mutant with what its tests say, which end at the first that fails."""
        some = ["-k", about(self.module)] if about(self.module) else []
        tests = sorted(tests_of(self.module), key=lambda test: test in LAST)
        with tempfile.TemporaryDirectory(ignore_cleanup_errors=True) as folder:  # kernels are compiled anew with the mistake
            fresh = {"NUMBA_CACHE_DIR": folder} if self.compiled else {}
            done = planted(f"{self.module}:{self.start}:{self.stop}:{self.new}", [*some, *tests], seconds, **fresh)
        survived = done is not None and done.returncode in (pytest.ExitCode.OK, pytest.ExitCode.NO_TESTS_COLLECTED)
        return replace(self, outcome="" if done is None else "survived" if survived else "noticed")


def text(line: str) -> str:
    """A line of a change without its sign, indentation and comment."""
    return line[1:].split("  #")[0].strip()


def planted(mistake: str, tests: Sequence[str], seconds: float, **environment: str) -> subprocess.CompletedProcess[str] | None:
    """Runs pytest with a mistake that `tests/planting.py` plants; None where it takes too long."""
    command = [sys.executable, "-m", "pytest", "-p", "planting", "-n", "0", "-x", "-q", "-p", "no:cacheprovider", *tests]
    environment |= {"DPVIZ_MISTAKE": mistake, "PYTHONPATH": os.pathsep.join([str(ROOT), str(ROOT / "tests")])}
    pipes: dict[str, Any] = {"stdout": subprocess.PIPE, "stderr": subprocess.STDOUT, "text": True, "start_new_session": True}
    with subprocess.Popen(command, cwd=ROOT, env=os.environ | environment, **pipes) as started:
        try:
            output, _ = started.communicate(timeout=seconds)
        except subprocess.TimeoutExpired:
            return None
        finally:
            with suppress(ProcessLookupError):
                os.killpg(started.pid, signal.SIGKILL)
    return subprocess.CompletedProcess(command, started.returncode, output)


def mutants_of(source: str, module: str = "dpviz/module.py") -> list[Mutant]:
    """All mutants of a module: operators, numbers, names, strings, arguments, assignments and conditions of its functions.

    What is text for people stays as it is, and annotations, decorators, errors, and whether zip compares lengths. Not all
    mutants compile.
    """
    starts = [0, *accumulate(len(line) + 1 for line in source.split("\n"))]
    tree, lines = ast.parse(source), source.split("\n")

    def span(node: Any) -> tuple[int, int]:
        ends = ((node.lineno, node.col_offset), (node.end_lineno, node.end_col_offset))
        first, last = (starts[line - 1] + len(lines[line - 1].encode()[:column].decode()) for line, column in ends)
        return first, last

    kept = [span(node) for node in _kept(tree)]
    functions = [(name, *span(node)) for name, node in _functions(tree.body)]
    found = []
    for start, stop, new in sorted({*_tokens(source, starts), *_nodes(tree, source, span)}):
        name = next((name for name, first, last in functions if first <= start and stop <= last), None)
        if name is None or any(
            first < stop and start < last
            for first, last in kept
            if (start > first or last > stop or (start, stop) == (first, last))
        ):
            continue
        above, below = bisect(starts, start) - 1, bisect(starts, max(start, stop - 1))
        old = lines[above:below]
        changed = (source[starts[above] : start] + new + source[stop : starts[below] - 1]).split("\n")
        while old and changed and old[-1].strip() == changed[-1].strip():
            del old[-1], changed[-1]
        change = (*(f"-{line}" for line in old), *(f"+{line}" for line in changed))
        found.append(Mutant(module, f"{dotted_name(module)}.{name}", start, stop, new, range(above + 1, below + 1), change))
    return found


def _functions(body: list[ast.stmt], above: str = "") -> Iterator[tuple[str, ast.AST]]:
    for node in body:
        if isinstance(node, ast.ClassDef):
            yield from _functions(node.body, f"{above}{node.name}.")
        elif isinstance(node, _FUNCTION):
            yield above + node.name, node


def _called(node: ast.Call) -> str:
    return node.func.attr if isinstance(node.func, ast.Attribute) else getattr(node.func, "id", "")


def _kept(tree: ast.AST) -> Iterator[ast.AST]:
    """Parts of a module that stay as they are."""
    for node in ast.walk(tree):
        if isinstance(node, ast.Raise | ast.JoinedStr) or (isinstance(node, ast.Constant) and " " in str(node.value)):
            yield node
        elif isinstance(node, ast.Expr) and isinstance(node.value, ast.Constant):
            yield node  # a docstring
        elif isinstance(node, ast.Call):
            name = _called(node)
            yield from [node] if name in _WORDS else node.args[:1] if name in _VALIDATORS else []
            yield from [keyword for keyword in node.keywords if name == "zip"]
        elif isinstance(node, ast.arg | ast.AnnAssign) and node.annotation is not None:
            yield node.annotation
        elif isinstance(node, _FUNCTION):
            yield from node.decorator_list
            yield from [node.returns] if node.returns else []


def _tokens(source: str, starts: list[int]) -> Iterator[Replacement]:
    """Tokens that are others."""
    before, tokens = "", list(tokenize.generate_tokens(io.StringIO(source).readline))
    for token, after in pairwise(tokens):
        start, string, operand = starts[token.start[0] - 1] + token.start[1], token.string, before[-1:]
        stop, before = start + len(string), string
        if token.type == tokenize.NUMBER:
            yield start, stop, repr(ast.literal_eval(string) + 1)
        elif token.type == tokenize.STRING and string[0] in "\"'" and string[:3] not in ('"""', "'''"):
            yield start, stop, f"{string[0]}XX{string[1:-1]}XX{string[0]}"
        elif string in ("*", "**", "/") and not (operand.isalnum() or operand in ("_", *"\"')]}")):
            continue  # of arguments
        elif string in _SWAPS and (string, after.string) != ("is", "not"):
            for new in _SWAPS[string].split(" "):
                yield start, stop + (new == "" and source[stop : stop + 1] == " "), new.replace("_", " ")


def _nodes(tree: ast.AST, source: str, span: Callable[[Any], tuple[int, int]]) -> Iterator[Replacement]:
    """Arguments that are None or missing, None that is assigned or returned, and conditions with one outcome."""
    for node in ast.walk(tree):
        if isinstance(node, ast.Call):
            given = [*node.args, *node.keywords]
            for one in given if len(given) > 1 else []:
                start, stop = span(one)
                comma = re.match(r"\s*,\s*", source[stop:])
                yield start, stop + (comma.end() if comma else 0), ""
            values = [arg.value if isinstance(arg, ast.keyword) else arg for arg in given if getattr(arg, "arg", "") is not None]
            nones = [value for value in values if not isinstance(value, ast.Starred | ast.GeneratorExp)]
        elif isinstance(node, ast.Assign | ast.AnnAssign):
            nones = [node.value] if node.value else []
        elif isinstance(node, ast.Lambda):
            nones = [node.body]
        elif isinstance(node, ast.IfExp):
            start, stop = span(node.test)
            yield from ((start, stop, f"({source[start:stop]}) {end}") for end in ("and False", "or True"))
            continue
        else:
            continue
        for value in nones:
            yield *span(value), '""' if isinstance(value, ast.Constant) and value.value is None else "None"


def dotted_name(module: str) -> str:
    """ "dpviz/a/b.py" is "dpviz.a.b"."""
    return module.removesuffix(".py").replace("/", ".")


def everything() -> list[str]:
    """All files of the engine and the app, relative to the project."""
    return [str(path.relative_to(ROOT)) for path in sorted((ROOT / "dpviz").rglob("*.py"))]


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


def equivalent() -> dict[tuple[str, str], str]:
    """Mutants that change nothing that is promised -> why."""
    lines = [line.split(" ## ") for line in EQUIVALENT.read_text().splitlines() if line and line[0] != "#"]
    return {(function, code): reason for function, code, reason in lines}
