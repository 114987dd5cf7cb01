"""No file is read in a way that executes what it holds."""

import ast
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[1]
FILES = [*(ROOT / "dpviz").rglob("*.py"), *(ROOT / "pages").glob("*.py"), ROOT / "app.py"]
_MODULES = {"pickle", "cPickle", "dill", "cloudpickle", "shelve", "marshal", "yaml", "jsonpickle"}
_CALLS = {"eval", "exec", "read_pickle", "to_pickle", "joblib.load", "joblib.dump", "torch.load", "np.load", "numpy.load"}


def unsafe(source: str) -> list[str]:
    """What in a module would execute a file, or let numpy unpickle one."""
    found = []
    for node in ast.walk(ast.parse(source)):
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
    assert len(FILES) > 200
    assert {str(path): found for path in FILES if (found := unsafe(path.read_text(encoding="utf-8")))} == {}


@pytest.mark.parametrize(
    "source",
    ["import pickle", "from joblib import load", "joblib.load(f)", "np.load(f, allow_pickle=True)", "pandas.read_pickle(f)"],
)
def test_what_would_be_is_seen(source: str) -> None:
    assert unsafe(source)
