"""Who may import whom, what views may compute, and that no file is read in a way that executes what it holds."""

import ast
import re
import subprocess
import sys
from collections.abc import Iterator
from graphlib import CycleError, TopologicalSorter
from pathlib import Path

import pytest
from support import of_each, parse, walk

ROOT = Path(__file__).parent.parent
FILES = sorted((ROOT / "dpviz").rglob("*.py"))

#: room -> the rooms that it may import; whatever is not listed is not allowed
ALLOWED: dict[str, set[str]] = {
    "common": set(),
    "figures": set(),
    "datasets": {"common"},
    "models": {"common"},
    "privacy": {"common"},
    "influence": {"common", "models"},
    "preparing": {"common", "datasets", "privacy"},
    "mechanisms": {"common", "models", "privacy", "influence", "preparing"},
    "auditing": {"common", "datasets", "models", "privacy", "influence", "mechanisms", "experiments"},
    "experiments": {"common", "datasets", "models", "privacy", "influence", "mechanisms", "preparing"},
    "spending": {"common", "models", "privacy", "mechanisms"},
    "estimator": {"common", "models", "privacy", "mechanisms", "experiments", "releasing", "spending"},
    "releasing": {"common", "datasets", "models", "privacy", "mechanisms", "auditing", "experiments", "spending", "preparing"},
    "reporting": {"common", "figures", "datasets", "models", "privacy", "mechanisms", "experiments", "papers"},
    "papers": {"common", "datasets", "models", "privacy", "influence", "mechanisms", "auditing", "experiments"},
}
_ENGINE = set(ALLOWED) - {"figures"}
ALLOWED |= {"dpviz": _ENGINE, "dashboard": {*ALLOWED, "dpviz"}, "cli": {*_ENGINE, "dpviz", "dashboard"}}

#: the same among the folders of dashboard/; every other folder is a page's own, which no other page imports
SUBROOMS: dict[str, set[str]] = {"components": set(), "jobs": {"components"}, "frame": {"components", "jobs"}}


def imports(path: Path) -> set[str]:
    names: set[str] = set()
    for node in walk(parse(path.read_text())):
        if isinstance(node, ast.Import):
            names |= {alias.name for alias in node.names}
        elif isinstance(node, ast.ImportFrom) and node.module:
            names |= {node.module} | {f"{node.module}.{alias.name}" for alias in node.names}
    return names


def room(parts: tuple[str, ...]) -> str:
    """The room of a module: the folder below dpviz; the package's own __init__ is a room of its own, __main__ is a command."""
    if parts[1:] == ("__main__",):
        return "cli"
    return parts[1] if len(parts) > 1 and parts[1] != "__init__" else "dpviz"


@of_each(FILES)
def test_imports_point_one_way(path: Path) -> None:
    found = imports(path)
    here = room(path.relative_to(ROOT).with_suffix("").parts)
    roots = {name.split(".")[0] for name in found}
    assert "streamlit" not in roots or here == "dashboard"
    assert "plotly" not in roots or here == "figures"
    ours = {tuple(name.split(".")) for name in found if name.split(".")[0] == "dpviz"}
    rooms = {room(parts) if (ROOT / "dpviz" / parts[1]).is_dir() else "dpviz" for parts in ours if len(parts) > 1}
    assert rooms - {here} <= ALLOWED[here]


@of_each(sorted((ROOT / "dpviz/dashboard").glob("*/*.py")))
def test_folders_of_the_dashboard_import_one_way_and_pages_stand_alone(path: Path) -> None:
    folders = {p.name for p in (ROOT / "dpviz" / "dashboard").iterdir() if p.is_dir()}
    found = {parts[2] for parts in (n.split(".") for n in imports(path)) if parts[:2] == ["dpviz", "dashboard"] and parts[2:]}
    assert found & folders - {path.parent.name} <= SUBROOMS.get(path.parent.name, set(SUBROOMS))


#: what a view or a page may not import, and what it may not call on a mechanism, a model or a generator
SCIENCE = ("scipy", "sklearn", "numpy.random", "dpviz.common.random", "dpviz.models.solvers")
COMPUTES = {"fit", "calibrate", "query", "minimise", "default_rng", "SeedSequence", "Training"}


def computing(path: Path) -> list[str]:
    """What a file does itself that a function of the engine should do for it."""
    found = [name for name in imports(path) if any(name == s or name.startswith(s + ".") for s in SCIENCE)]
    for node in walk(parse(path.read_text())):
        if isinstance(node, ast.Call):
            name = node.func.attr if isinstance(node.func, ast.Attribute) else getattr(node.func, "id", "")
            found += [f"{name}(…), line {node.lineno}"] * (name in COMPUTES)
        elif isinstance(node, ast.Attribute) and node.attr == "random":
            found.append(f"….random, line {node.lineno}")
    return found


#: methods of a mechanism that are for one row; `mechanisms.protection` has the same for a run
FOR_ONE_ROW = {"calibrate", "released", "releases", "sensitivity_bounds", "distance", "individual", "automatic_lam"}


def unprotected(source: str) -> list[str]:
    """Calls that take a method's guarantee for one row as that of a run."""
    calls = [node.func for node in walk(parse(source)) if isinstance(node, ast.Call)]
    named = [call for call in calls if isinstance(call, ast.Attribute) and call.attr in FOR_ONE_ROW]
    return [ast.unparse(call) for call in named if ast.unparse(call.value) not in ("protection", "dpviz")]


@of_each([path for path in FILES if path.relative_to(ROOT / "dpviz").parts[0] not in ("mechanisms", "papers")])
def test_every_run_is_calibrated_for_its_persons_and_preparations(path: Path) -> None:
    assert unprotected(path.read_text()) == []


def test_a_run_that_is_calibrated_for_a_row_is_noticed() -> None:
    assert unprotected("cal = spec.build().calibrate(setting, budget)") == ["spec.build().calibrate"]


VIEWS = [ROOT / "app.py", *sorted((ROOT / "pages").glob("*.py")), *sorted((ROOT / "dpviz/dashboard").rglob("*.py"))]


@of_each(VIEWS)
def test_views_show_and_compute_nothing_themselves(path: Path) -> None:
    assert computing(path) == []


def test_a_view_that_computes_is_noticed(tmp_path: Path) -> None:
    lines = [
        "from scipy import stats",
        "import numpy.random",
        "import numpy as np; np.random.rand()",
        "from dpviz.common.random import spawn",
        "mechanism.calibrate(setting, budget)",
        "Training(problem, calibrations, streams)",
    ]
    for line in lines:
        view = tmp_path / "view.py"
        view.write_text(line)
        assert computing(view), line


def reads_details(tree: ast.AST) -> list[int]:
    """Lines that take a number out of `….details` by its name."""
    taken = [node.value for node in walk(tree) if isinstance(node, ast.Subscript)]
    taken += [node.func.value for node in walk(tree) if isinstance(node, ast.Call) and isinstance(node.func, ast.Attribute)]
    return [node.lineno for node in taken if isinstance(node, ast.Attribute) and node.attr == "details"]


@of_each(
    [path for path in FILES if room(path.relative_to(ROOT).with_suffix("").parts) in {"mechanisms", "auditing", "experiments"}]
)
def test_nothing_computes_with_the_details_of_a_calibration(path: Path) -> None:
    """They are shown; what training reads is `Calibration.for_training`."""
    assert not reads_details(parse(path.read_text()))


def test_a_number_taken_from_details_is_noticed() -> None:
    assert reads_details(parse('step = [c.details["step_size"] for c in calibrations]\nmu = c.details.get("mu")')) == [1, 2]


def loaded(node: ast.AST) -> Iterator[tuple[str, str]]:
    """(module, name) of all that is imported while a module is loaded, not in a function or for type checks only."""
    for child in ast.iter_child_nodes(node):
        if isinstance(child, ast.ImportFrom):
            yield from ((str(child.module), alias.name) for alias in child.names)
        elif not isinstance(child, ast.FunctionDef) and not (
            isinstance(child, ast.If) and "TYPE_CHECKING" in ast.unparse(child.test)
        ):
            yield from loaded(child)


def circle(trees: dict[str, ast.Module]) -> list[str]:
    """Modules that import each other in a circle while they are loaded; an __init__ may list the modules of its folder."""
    found = {}
    for here, tree in trees.items():
        there = {full if (full := f"{module}.{name}") in trees else module for module, name in loaded(tree)}
        found[here] = {module for module in there & set(trees) - {here} if not module.startswith(f"{here}.")}
    try:
        TopologicalSorter(found).prepare()
    except CycleError as error:
        return list(error.args[1])
    return []


def private(tree: ast.AST) -> list[str]:
    """Private names of other modules of the package that a module takes."""
    ours = [node for node in walk(tree) if isinstance(node, ast.ImportFrom) and str(node.module).startswith("dpviz")]
    names = {alias.asname or alias.name for node in ours for alias in node.names if alias.name.islower()}
    taken = [part for node in ours for part in (*str(node.module).split("."), *(alias.name for alias in node.names))]
    attributes = [node for node in walk(tree) if isinstance(node, ast.Attribute) and isinstance(node.value, ast.Name)]
    taken += [node.attr for node in attributes if isinstance(node.value, ast.Name) and node.value.id in names]
    return [name for name in taken if name.startswith("_") and not name.startswith("__")]


def kinds_asked(tree: ast.AST, classes: set[str]) -> list[str]:
    """Calls of isinstance with one of some classes."""
    calls = [node for node in walk(tree) if isinstance(node, ast.Call) and getattr(node.func, "id", "") == "isinstance"]
    return [ast.unparse(c) for c in calls if classes & {getattr(n, "id", getattr(n, "attr", "")) for n in ast.walk(c.args[1])}]


def trees() -> dict[str, ast.Module]:
    """Each module, parsed, by its name."""
    names = {".".join(path.relative_to(ROOT).with_suffix("").parts).removesuffix(".__init__"): path for path in FILES}
    return {name: parse(path.read_text()) for name, path in names.items()}


def test_modules_load_without_circles_and_take_nothing_private_from_each_other() -> None:
    assert circle(trees()) == []
    assert {name: found for name, tree in trees().items() if (found := private(tree))} == {}


def test_nobody_outside_models_asks_for_the_kind_of_a_model() -> None:
    of_models = {name: tree for name, tree in trees().items() if name.startswith("dpviz.models")}
    classes = {node.name for tree in of_models.values() for node in walk(tree) if isinstance(node, ast.ClassDef)}
    assert len(classes) > 20
    assert {n: found for n, tree in trees().items() if n not in of_models and (found := kinds_asked(tree, classes))} == {}


@of_each(FILES)
def test_files_and_functions_are_short(path: Path) -> None:
    text = path.read_text()
    assert len(text.splitlines()) <= 400
    for node in walk(parse(text)):
        if isinstance(node, ast.FunctionDef):
            assert (node.end_lineno or 0) - node.lineno < 59, node.name


def questions(text: str) -> list[str]:
    """First lines of docstrings that open with a question word and not with what the thing is."""
    defined = (ast.Module, ast.ClassDef, ast.FunctionDef)
    first = [(ast.get_docstring(node) or "").split("\n")[0] for node in walk(parse(text)) if isinstance(node, defined)]
    return [line for line in first if re.match(r"(What|Whether|How|Who|Whose|Which|Where)\b", line)]


def test_docstrings_open_with_statements() -> None:
    found = [line for path in FILES for line in questions(path.read_text())]
    assert len(found) < 30, found
    assert questions('def f():\n    """Whether it is."""') == ["Whether it is."]


def test_a_circle_a_private_name_and_a_kind_are_noticed() -> None:
    lines = {"a": "from b import x", "b": "if 1:\n from c import y", "c": "def f():\n from a import z\nfrom a import w"}
    trees = {name: parse(line) for name, line in lines.items()}
    assert set(circle(trees)) == {"a", "b", "c"}
    assert circle(trees | {"c": parse(lines["c"].partition("\nfrom")[0])}) == []
    for line in ("from dpviz.common import _x", "from dpviz._x import y", "from dpviz.common import words\nwords._x()"):
        assert private(parse(line)) == ["_x"]
    assert kinds_asked(parse("isinstance(x, int | models.Linear)"), {"Linear"}) == ["isinstance(x, int | models.Linear)"]


def test_every_room_is_named_and_nothing_lies_loose() -> None:
    folders = {path.name for path in (ROOT / "dpviz").iterdir() if path.is_dir() and path.name != "__pycache__"}
    assert folders == set(ALLOWED) - {"dpviz"}
    assert {path.name for path in (ROOT / "dpviz").glob("*.py")} == {"__init__.py", "__main__.py"}


def test_importing_the_engine_loads_neither_streamlit_nor_plotly() -> None:
    code = "import dpviz, sys; print([m for m in ('streamlit', 'plotly', 'sklearn', 'dp_accounting') if m in sys.modules])"
    out = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True, cwd=ROOT)
    assert out.stdout.strip() == "[]"


@of_each([ROOT / "app.py", *sorted((ROOT / "pages").glob("*.py"))])
def test_pages_stay_thin_and_name_no_mechanism(path: Path) -> None:
    import dpviz

    text = path.read_text()
    assert len(text.splitlines()) <= 90
    assert not [name for name in dpviz.list_mechanisms() if f'"{name}"' in text or f"'{name}'" in text]


READING = [*(ROOT / "dpviz").rglob("*.py"), *(ROOT / "pages").glob("*.py"), ROOT / "app.py"]
_MODULES = {"pickle", "cPickle", "dill", "cloudpickle", "shelve", "marshal", "yaml", "jsonpickle"}
_CALLS = {"eval", "exec", "read_pickle", "to_pickle", "joblib.load", "joblib.dump", "torch.load", "np.load", "numpy.load"}


def unsafe(source: str) -> list[str]:
    """What in a module would execute a file, or let numpy unpickle one."""
    found = []
    for node in walk(parse(source)):
        if isinstance(node, ast.Import | ast.ImportFrom):
            roots = [(node.module or "")] if isinstance(node, ast.ImportFrom) else [alias.name for alias in node.names]
            found += [root for root in roots if root.partition(".")[0] in _MODULES]
            if isinstance(node, ast.ImportFrom) and node.module in ("joblib", "numpy", "torch"):
                found += [alias.name for alias in node.names if alias.name in ("load", "dump")]
        elif isinstance(node, ast.Call):
            name = ast.unparse(node.func)
            found += [name] if name in _CALLS or name.rpartition(".")[2] in ("read_pickle", "to_pickle") else []
            found += [k.arg for k in node.keywords if k.arg == "allow_pickle"]
    return found


def test_nothing_that_is_read_is_executed() -> None:
    assert len(READING) > 200
    assert {str(path): found for path in READING if (found := unsafe(path.read_text(encoding="utf-8")))} == {}


@pytest.mark.parametrize(
    "source",
    ["import pickle", "from joblib import load", "joblib.load(f)", "np.load(f, allow_pickle=True)", "pandas.read_pickle(f)"],
)
def test_what_would_be_is_seen(source: str) -> None:
    assert unsafe(source)


@of_each(READING)
def test_nothing_else_remembers_rows_by_key(path: Path) -> None:
    """Caches that know no owner are for public numbers: their functions take neither rows nor what leads to rows."""
    tree = parse(path.read_text())
    modules = {node.module for node in walk(tree) if isinstance(node, ast.ImportFrom)}
    assert "cachetools" not in modules or path.name == "memory.py"
    attributes = {node.attr for node in walk(tree) if isinstance(node, ast.Attribute)}
    assert not attributes & {"cache_data", "cache_resource"} or path.name == "session.py"  # which hears there who has left
    rows = re.compile(r"\b(Any|Bench|Dataset|Influence|Problem|Result|Rows|RunSpec|Upload)\b")
    for node in tree.body:  # those inside functions end with the call
        if isinstance(node, ast.FunctionDef) and "cache" in " ".join(map(ast.unparse, node.decorator_list)):
            # a formula and a type of numbers lead to no rows
            given = re.sub(r"Callable\[\.\.\., Any\]|precision: Any", "", ast.unparse(node.args))
            assert not rows.search(given), node.name
