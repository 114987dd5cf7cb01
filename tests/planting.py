"""A pytest plugin that plants one mistake in dpviz, and the table of mistakes beyond mechanisms (`planting.toml`).

The source of one module is changed as it is imported, so that constants, decorated functions and compiled loops can be wrong too:

    DPVIZ_MISTAKE=3 PYTHONPATH=.:tests pytest -p planting tests/models/test_last_rows.py

DPVIZ_MISTAKE is a row of the table, or what `benchmarks.mutants` writes: a file, two places in it, and the text between them.
"""

import importlib.abc
import importlib.machinery
import importlib.util
import os
import sys
import tomllib
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from types import CodeType, ModuleType

ROOT = Path(__file__).parents[1]


@dataclass(frozen=True)
class Mistake:
    """One row of the table.

    Attributes:
        name: what is wrong.
        module: file below dpviz/, without its suffix.
        old, new: source text, once in the module, and what stands there instead.
        seen_by: the test that must fail, file::function.
    """

    name: str
    module: str
    old: str
    new: str
    seen_by: str

    @property
    def path(self) -> Path:
        return ROOT / "dpviz" / f"{self.module}.py"

    def source(self) -> str:
        """The module's source with the mistake."""
        text = self.path.read_text("utf-8")
        assert text.count(self.old) == 1, f"{self.name}: {self.module} reads otherwise now"
        return text.replace(self.old, self.new)


_TABLE: dict[str, list[dict[str, str]]] = tomllib.loads(Path(__file__).with_suffix(".toml").read_text("utf-8"))
MISTAKES = [Mistake(module=module, **row) for module, rows in _TABLE.items() for row in rows]


class _Wrong(importlib.machinery.SourceFileLoader):
    """Loads a module from changed source."""

    source: str

    def get_code(self, fullname: str) -> CodeType:
        return compile(self.source, self.path, "exec", dont_inherit=True)


class _Finder(importlib.abc.MetaPathFinder):
    def __init__(self, path: Path, source: str) -> None:
        self.path, self.source = path, source
        self.wanted = ".".join(path.relative_to(ROOT).with_suffix("").parts)

    def find_spec(
        self, fullname: str, path: Sequence[str] | None, target: ModuleType | None = None
    ) -> importlib.machinery.ModuleSpec | None:
        if fullname != self.wanted:
            return None
        loader = _Wrong(fullname, str(self.path))
        loader.source = self.source
        return importlib.util.spec_from_file_location(fullname, self.path, loader=loader)


def pytest_load_initial_conftests() -> None:
    """Before anything of dpviz is imported."""
    chosen = os.environ.get("DPVIZ_MISTAKE")
    if chosen is not None:
        assert not any(name == "dpviz" or name.startswith("dpviz.") for name in sys.modules), "too late"
        if chosen.isdigit():
            path, source = MISTAKES[int(chosen)].path, MISTAKES[int(chosen)].source()
        else:
            module, start, stop, new = chosen.split(":", 3)
            path = ROOT / module
            right = path.read_text("utf-8")
            source = right[: int(start)] + new + right[int(stop) :]
        sys.meta_path.insert(0, _Finder(path, source))
