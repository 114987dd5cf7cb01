"""Small mistakes planted one at a time in any room, and the share that the quick tests notice.

    python -m benchmarks.planted [--draw 100] [--seed 0] [ROOM or FILE ...]

A mistake is noticed where a test fails that runs its line, as one run with `pytest-cov` tells. The share has a 95 % interval.
"""

import argparse
import ast
import multiprocessing
import os
import random
import signal
import subprocess
import sys
from collections import Counter
from collections.abc import Callable, Iterable, Iterator
from importlib import machinery, util
from pathlib import Path
from typing import Any, NamedTuple
from xml.etree import ElementTree

import platformdirs
from scipy.stats import binomtest

ROOT = Path(__file__).parents[1]
CODE = [path for folder in ("dpviz", "tests") for path in (ROOT / folder).rglob("*.py")]
FEW, TIME = 25, 240  # tests that are tried first; seconds for these, and for the others
_FORKS = multiprocessing.get_context("forkserver")
_FORKS.set_forkserver_preload(["numba", "pandas", "plotly.graph_objects", "sklearn.linear_model", "streamlit.testing.v1"])

_PAIRS = (
    *((ast.Lt, ast.LtE), (ast.Gt, ast.GtE), (ast.Eq, ast.NotEq), (ast.In, ast.NotIn), (ast.Is, ast.IsNot)),
    *((ast.Add, ast.Sub), (ast.Mult, ast.Div), (ast.And, ast.Or)),
)
_OTHER: dict[type, type] = {**dict(_PAIRS), **{b: a for a, b in _PAIRS}, ast.Pow: ast.Mult, ast.FloorDiv: ast.Div}
_NAMES = {"min": "max", "max": "min", "any": "all", "all": "any", "floor": "ceil", "ceil": "floor", "sum": "mean", "mean": "sum"}
Change = tuple[int, str, Callable[[], object]]


def changes(function: ast.FunctionDef) -> Iterator[Change]:
    """(line, what is wrong, how it is made) of each mistake in a function; texts, errors, annotations and `strict` stay."""
    texts = [
        node
        for node in ast.walk(function)
        if isinstance(node, ast.Raise | ast.JoinedStr | ast.FormattedValue) or getattr(node, "arg", "") == "strict"
    ]
    annotations = [getattr(node, "annotation", None) for node in ast.walk(function)]
    roots = [*function.decorator_list, function.returns, *texts, *annotations]
    kept = {node for root in roots if root is not None for node in ast.walk(root)}
    for node in ast.walk(function):
        if node not in kept:
            yield from _changes_of(node)


def _set(node: ast.AST, name: str, value: object) -> Callable[[], object]:
    return lambda: setattr(node, name, value)


def _changes_of(node: ast.AST) -> Iterator[Change]:
    line = getattr(node, "lineno", 0)
    if isinstance(node, ast.Compare):
        yield line, "another comparison", _set(node, "ops", [_OTHER[type(node.ops[0])](), *node.ops[1:]])
    elif isinstance(node, ast.BinOp | ast.BoolOp) and type(node.op) in _OTHER:
        yield line, "another operator", _set(node, "op", _OTHER[type(node.op)]())
    elif isinstance(node, ast.Constant) and isinstance(node.value, bool):
        yield line, "True for False", _set(node, "value", not node.value)
    elif isinstance(node, ast.Constant) and isinstance(node.value, int | float):
        yield (
            line,
            "another number",
            _set(node, "value", node.value + 1 if isinstance(node.value, int) else 2 * node.value or 1.0),
        )
    elif isinstance(node, ast.If | ast.IfExp | ast.While):
        yield line, "a condition reversed", _set(node, "test", ast.UnaryOp(ast.Not(), node.test))
    elif isinstance(node, ast.Name | ast.Attribute):
        field = "id" if isinstance(node, ast.Name) else "attr"
        if (name := _NAMES.get(getattr(node, field))) and isinstance(node.ctx, ast.Load):
            yield line, f"{name} in its place", _set(node, field, name)
    elif isinstance(node, ast.Call):
        for keyword in [one for one in node.keywords if one.arg != "strict" and (node.args or len(node.keywords) > 1)]:
            rest = [other for other in node.keywords if other is not keyword]
            yield line, f"{keyword.arg} is not passed", _set(node, "keywords", rest)
        # the smaller or the larger of two is the same in any order
        unordered = {"min", "max", "np.minimum", "np.maximum", "math.hypot", "np.hypot", ast.Starred}
        if len(node.args) > 1 and not unordered & {ast.unparse(node.func), *map(type, node.args[:2])}:
            yield line, "two arguments swapped", _set(node, "args", [node.args[1], node.args[0], *node.args[2:]])
    elif isinstance(node, ast.Expr) and isinstance(node.value, ast.Call):
        yield line, "a call left out", _set(node, "value", ast.Constant(None))


class Mistake(NamedTuple):
    """One mistake: file relative to the project, lines of the function's body, line, what is wrong, and source with it."""

    path: str
    body: range
    line: int
    what: str
    source: str


def draw(paths: list[Path], count: int, seed: int) -> Iterator[Mistake]:
    """So many mistakes with a fixed seed: each in a function of its own, all as likely, then any of the function's."""
    chance = random.Random(seed)
    functions = [
        (path, k)
        for path in paths
        for k, node in enumerate(ast.walk(ast.parse(path.read_text("utf-8"))))
        if isinstance(node, ast.FunctionDef) and next(changes(node), None) is not None
    ]
    for path, k in chance.sample(functions, min(count, len(functions))):
        tree = ast.parse(path.read_text("utf-8"))
        function = list(ast.walk(tree))[k]
        assert isinstance(function, ast.FunctionDef)
        body = range(function.body[0].lineno, (function.end_lineno or 0) + 1)
        line, what, make = chance.choice([*changes(function)])
        make()
        yield Mistake(path.relative_to(ROOT).as_posix(), body, line, f"{function.name}: {what}", ast.unparse(tree))


def record() -> tuple[Any, dict[str, float]]:
    """(tests that run each line, seconds of each quick test that passes), run where the cache is older than the code."""
    from coverage import CoverageData  # with pytest-cov, which other tests do without

    times = (lines := platformdirs.user_cache_path("dpviz") / "planted.lines").with_suffix(".xml")
    if not times.exists() or times.stat().st_mtime < max(path.stat().st_mtime for path in CODE):
        command = [sys.executable, "-m", "pytest", "--cov=dpviz", "--cov-context=test", "--cov-report=", f"--junitxml={times}"]
        subprocess.run(command, cwd=ROOT, env=os.environ | {"COVERAGE_FILE": str(lines)})
    data = CoverageData(str(lines))
    data.read()
    passed = [case.attrib for case in ElementTree.parse(times).iter("testcase") if not len(case)]
    return data, {f"{case['classname'].replace('.', '/')}.py::{case['name']}": float(case["time"]) for case in passed}


def quick_tests(mistake: Mistake, lines: Any, seconds: dict[str, float]) -> list[str]:
    """Quick tests that run a mistake, else those of code that names its module; its room's examples, then its files first."""

    def tests_at(path: Path, some: Iterable[int]) -> set[str]:
        ran = lines.contexts_by_lineno(str(path))
        return {test.split("|")[0] for line in some for test in ran.get(line, ())} & seconds.keys()

    path, parts = ROOT / mistake.path, Path(mistake.path).with_suffix("").parts
    found = tests_at(path, [mistake.line] if mistake.line in mistake.body else mistake.body)  # outside: a default
    if not found:  # compiled loops, constants, other processes
        for user in CODE:
            if all(name in user.read_text("utf-8") for name in parts[-2:]):
                found |= tests_at(user, range(9999)) | {test for test in seconds if ROOT / test.split("::")[0] == user}
    files = Counter(test.split("::")[0] for test in found)
    near = {user.relative_to(ROOT).as_posix() for user in CODE if ".".join(parts) in user.read_text("utf-8")}
    return sorted(
        found,
        key=lambda test: (f"[{parts[1]}" not in test, (file := test.split("::")[0]) not in near, -files[file], seconds[test]),
    )


def outcome(path: str, source: str, tests: list[str], marks: str = "not long and not before_release", most: int = TIME) -> int:
    """The exit code of pytest on a module with other source, in a fork with some imports; negative after `most` seconds."""
    process = _FORKS.Process(target=_pytest, args=(path, source, tests, marks, most))
    process.start()
    process.join()
    code = process.exitcode or 0  # below 0: a signal, which is a crash where it is not the alarm's; 5: no test was there to fail
    return code if code == -signal.SIGALRM else abs(code) * (code != 5)


def _pytest(path: str, source: str, tests: list[str], marks: str, most: int) -> None:
    import pytest

    signal.alarm(most)
    os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
    options = ["-x", "-n", "0", "-m", marks, "-W", "ignore:Module already imported", "--hypothesis-profile=planted"]
    os._exit(pytest.main([*options, *{test.split("::")[0] for test in tests}], plugins=[_Planted(path, source, tests)]))


def main() -> None:
    parser = argparse.ArgumentParser(description=(__doc__ or "").split("\n")[0])
    parser.add_argument("rooms", nargs="*", help="rooms or files below dpviz (default: all)")
    parser.add_argument("--draw", type=int, default=100, metavar="N", help="mistakes that are tried (default: 100)")
    parser.add_argument("--seed", type=int, default=0, help="of the draw")
    options = parser.parse_args()
    paths = sorted(
        path for name in options.rooms or [""] for path in [*(ROOT / "dpviz" / name).rglob("*.py")] or [ROOT / "dpviz" / name]
    )
    drawn, known, noticed = [*draw(paths, options.draw, options.seed)], record(), 0
    for mistake in drawn:
        tests = quick_tests(mistake, *known)
        code = next(filter(None, (outcome(mistake.path, mistake.source, part) for part in (tests[:FEW], tests[FEW:]) if part)), 0)
        # a suite that does not end is noticed, where its tests take a fraction of that time otherwise
        noticed += (found := code > 0 or (code < 0 and 4 * sum(known[1][test] for test in tests) < TIME))
        word = "noticed" if found else "SURVIVED" if code == 0 else "TOO SLOW"
        print(word, f"{mistake.path}:{mistake.line} {mistake.what} ({len(tests)} tests)", flush=True)
    share = binomtest(noticed, len(drawn)).proportion_ci()  # Clopper and Pearson 1934
    print(f"{noticed} of {len(drawn)} noticed: {noticed / len(drawn):.0%} ({share.low:.0%} to {share.high:.0%})")


class _Planted(machinery.SourceFileLoader):
    """A pytest plugin: one module from other source, constants and compiled loops too, and only some tests, in their order."""

    def __init__(self, path: str, source: str, tests: list[str]) -> None:
        assert not any(name.split(".")[0] == "dpviz" for name in sys.modules), "too late"
        super().__init__(".".join(Path(path).with_suffix("").parts).removesuffix(".__init__"), str(ROOT / path))
        self.source, self.places = source, {test: place for place, test in enumerate(tests)}
        sys.meta_path.insert(0, self)

    def find_spec(self, name: str, path: object = None, target: object = None) -> machinery.ModuleSpec | None:
        return util.spec_from_loader(name, self) if name == self.name else None

    def get_code(self, fullname: str) -> Any:
        # of no file that exists: numba keeps none of its loops and takes no kept ones
        return compile(self.source, f"/planted{self.path}", "exec", dont_inherit=True)

    def pytest_collection_finish(self, session: Any) -> None:
        names = {item: name for item in session.items for name in (item.nodeid, item.nodeid.split("[")[0]) if name in self.places}
        session.items[:] = sorted(names, key=lambda item: self.places[names[item]])


if __name__ == "__main__":
    main()
