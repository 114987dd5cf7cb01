"""Small mistakes planted one at a time in any room, and the share that the quick tests notice.

    python -m benchmarks.planted --draw 100                        drawn from the functions of all rooms
    python -m benchmarks.planted --draw 40 --seed 1 releasing      of one room or file

Each function is as likely as any other, then each of its mistakes. A mistake is noticed where a test fails; the tests of its own
file are tried first, then those that import it, then those of its room. The share stands with its 95 % interval (Clopper and
Pearson 1934). As a pytest plugin (`-p benchmarks.planted`) this file loads the module that DPVIZ_PLANTED names from other source:
`DPVIZ_PLANTED=dpviz/a.py=/tmp/changed.py`.
"""

import argparse
import ast
import importlib.machinery
import importlib.util
import os
import random
import subprocess
import sys
import tempfile
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from pathlib import Path
from types import CodeType

ROOT = Path(__file__).parents[1]
TIME = 300.0  # seconds for the tests of one mistake

_PAIRS = (
    *((ast.Lt, ast.LtE), (ast.Gt, ast.GtE), (ast.Eq, ast.NotEq), (ast.In, ast.NotIn), (ast.Is, ast.IsNot)),
    *((ast.Add, ast.Sub), (ast.Mult, ast.Div), (ast.And, ast.Or)),
)
_OTHER: dict[type, type] = {**dict(_PAIRS), **{b: a for a, b in _PAIRS}, ast.Pow: ast.Mult, ast.FloorDiv: ast.Div}
_NAMES = {"min": "max", "max": "min", "any": "all", "all": "any", "floor": "ceil", "ceil": "floor", "sum": "mean", "mean": "sum"}

Change = tuple[int, str, Callable[[], object]]


def changes(function: ast.FunctionDef) -> Iterator[Change]:
    """(line, what is wrong, how it is made) of each mistake in a function; texts for people, errors and annotations stay."""
    for kept in [*function.decorator_list, *filter(None, [function.returns])]:
        _forbid(kept)
    for node in ast.walk(function):
        if isinstance(node, ast.Raise | ast.JoinedStr | ast.FormattedValue):
            _forbid(node)
        elif isinstance(node, ast.arg | ast.AnnAssign) and node.annotation is not None:
            _forbid(node.annotation)
    for node in ast.walk(function):
        if not hasattr(node, "forbidden"):
            yield from _changes_of(node)


def _forbid(root: ast.AST) -> None:
    for node in ast.walk(root):
        node.forbidden = True  # type: ignore[attr-defined]


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
        yield line, "another number", _set(node, "value", node.value + 1 if isinstance(node.value, int) else 2 * node.value)
    elif isinstance(node, ast.If | ast.IfExp | ast.While):
        yield line, "a condition reversed", _set(node, "test", ast.UnaryOp(ast.Not(), node.test))
    elif isinstance(node, ast.Name | ast.Attribute):
        field = "id" if isinstance(node, ast.Name) else "attr"
        if (name := _NAMES.get(getattr(node, field))) and isinstance(node.ctx, ast.Load):
            yield line, f"{name} in its place", _set(node, field, name)
    elif isinstance(node, ast.Call):
        for keyword in node.keywords if node.args or len(node.keywords) > 1 else []:
            rest = [other for other in node.keywords if other is not keyword]
            yield line, f"{keyword.arg} is not passed", _set(node, "keywords", rest)
        if len(node.args) > 1 and not any(isinstance(argument, ast.Starred) for argument in node.args[:2]):
            yield line, "two arguments swapped", _set(node, "args", [node.args[1], node.args[0], *node.args[2:]])
    elif isinstance(node, ast.Expr) and isinstance(node.value, ast.Call):
        yield line, "a call left out", _set(node, "value", ast.Constant(None))


@dataclass(frozen=True)
class Mistake:
    """One mistake: file relative to the project, function, line, what is wrong, and the module's source with it."""

    path: str
    function: str
    line: int
    what: str
    source: str


def draw(paths: list[Path], count: int, seed: int) -> list[Mistake]:
    """So many mistakes, each in a function of its own where there are enough, with a fixed seed."""
    chance = random.Random(seed)
    functions = [
        (path, k)
        for path in paths
        for k, node in enumerate(ast.walk(ast.parse(path.read_text("utf-8"))))
        if isinstance(node, ast.FunctionDef) and next(changes(node), None) is not None
    ]
    drawn = []
    for path, k in chance.sample(functions, min(count, len(functions))):
        tree = ast.parse(path.read_text("utf-8"))
        function = list(ast.walk(tree))[k]
        assert isinstance(function, ast.FunctionDef)
        line, what, make = chance.choice(list(changes(function)))
        make()
        drawn.append(Mistake(path.relative_to(ROOT).as_posix(), function.name, line, what, ast.unparse(tree)))
    return drawn


def nearest_tests(path: str) -> list[list[str]]:
    """Quick tests, nearest first: those of a file's name, those that import it, those of its room and of the whole."""
    place = Path(path)
    room, dotted = place.parts[1], ".".join(place.with_suffix("").parts)
    files = sorted((ROOT / "tests").rglob("test_*.py"))
    parent, _, stem = dotted.rpartition(".")
    named = [file for file in files if file.stem == f"test_{stem}"]
    users = [file for file in files if dotted in (text := file.read_text("utf-8")) or f"from {parent} import {stem}\n" in text]
    rooms = {"dashboard": ["pages", "dashboard"], "common": ["common", "models"]}.get(room, [room])
    near = [str(file) for file in dict.fromkeys([*named, *users])]
    return [near, [f"tests/{name}" for name in rooms if (ROOT / "tests" / name).is_dir()], ["tests/test_contract.py"]]


def outcome(path: str, source: str, tests: list[str], marks: str = "not long and not before_release") -> int | None:
    """The exit code of pytest on a module with other source; None where it takes too long."""
    with tempfile.TemporaryDirectory() as folder:
        (changed := Path(folder) / "changed.py").write_text(source, "utf-8")
        environment = os.environ | {"DPVIZ_PLANTED": f"{path}={changed}", "PYTHONPATH": f"{ROOT}:{ROOT / 'tests'}"}
        command = [sys.executable, "-m", "pytest", "-x", "-q", "-n", "0", "-p", "benchmarks.planted", "-m", marks, *tests]
        try:
            return subprocess.run(command, cwd=ROOT, env=environment, capture_output=True, timeout=TIME).returncode
        except subprocess.TimeoutExpired:
            return None


def try_one(mistake: Mistake) -> bool:
    """Whether a quick test notices it (or hangs); says so."""
    noticed = any(outcome(mistake.path, mistake.source, tests) not in (0, 5) for tests in nearest_tests(mistake.path) if tests)
    print("noticed " if noticed else "SURVIVED", f"{mistake.path}:{mistake.line} {mistake.function}: {mistake.what}", flush=True)
    return noticed


def main() -> None:
    parser = argparse.ArgumentParser(description=(__doc__ or "").split("\n")[0])
    parser.add_argument("rooms", nargs="*", help="rooms or files below dpviz (default: all)")
    parser.add_argument("--draw", type=int, default=100, metavar="N", help="mistakes that are tried (default: 100)")
    parser.add_argument("--seed", type=int, default=0, help="of the draw")
    options = parser.parse_args()
    roots = [ROOT / "dpviz" / name for name in options.rooms] or [ROOT / "dpviz"]
    paths = sorted(path for root in roots for path in ([root] if root.is_file() else root.rglob("*.py")))
    drawn = draw(paths, options.draw, options.seed)
    with ThreadPoolExecutor(2) as pool:
        noticed = sum(pool.map(try_one, drawn))
    from scipy.stats import binomtest  # here, so that the plugin imports nothing

    share = binomtest(noticed, len(drawn)).proportion_ci()
    print(f"{noticed} of {len(drawn)} noticed: {noticed / len(drawn):.0%} ({share.low:.0%} to {share.high:.0%})")


class _Planted(importlib.machinery.SourceFileLoader):
    """Loads a module from other source, so that constants, decorated functions and compiled loops can be wrong too."""

    changed = ""

    def get_code(self, fullname: str) -> CodeType:
        return compile(Path(self.changed).read_text("utf-8"), self.path, "exec", dont_inherit=True)


class _Finder:
    """Finds the one module that has a mistake."""

    def __init__(self, path: str, changed: str) -> None:
        self.path, self.changed, self.name = path, changed, ".".join(Path(path).with_suffix("").parts)

    def find_spec(self, name: str, path: object = None, target: object = None) -> importlib.machinery.ModuleSpec | None:
        if name != self.name:
            return None
        loader = _Planted(name, str(ROOT / self.path))
        loader.changed = self.changed
        return importlib.util.spec_from_file_location(name, ROOT / self.path, loader=loader)


def pytest_load_initial_conftests() -> None:
    """Called by pytest before anything of dpviz is imported."""
    if planted := os.environ.get("DPVIZ_PLANTED"):
        assert not any(name.split(".")[0] == "dpviz" for name in sys.modules), "too late"
        sys.meta_path.insert(0, _Finder(*planted.split("=", 1)))  # type: ignore[arg-type]


if __name__ == "__main__":
    main()
