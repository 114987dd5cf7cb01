"""A pytest plugin that plants one mistake in dpviz, and the table of mistakes beyond mechanisms (`planting.toml`).

The source of one module is changed as it is imported, so that constants, decorated functions and compiled loops can be wrong too:

    DPVIZ_MISTAKE=3 PYTHONPATH=.:tests pytest -p planting tests/models/test_last_rows.py
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
from typing import Any

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


_TABLE: dict[str, list[dict[str, str]]] = tomllib.loads(Path(__file__).with_suffix(".toml").read_text("utf-8"))
MISTAKES = [Mistake(module=module, **row) for module, rows in _TABLE.items() for row in rows]


class _Wrong(importlib.machinery.SourceFileLoader):
    """Loads a module with a mistake in it."""

    def __init__(self, mistake: Mistake, *given: Any) -> None:
        super().__init__(*given)
        self.mistake = mistake

    def get_code(self, fullname: str) -> CodeType:
        text = self.mistake.path.read_text("utf-8")
        assert text.count(self.mistake.old) == 1, f"{self.mistake.name}: the source has changed"
        return compile(text.replace(self.mistake.old, self.mistake.new), str(self.mistake.path), "exec", dont_inherit=True)


class _Finder(importlib.abc.MetaPathFinder):
    def __init__(self, mistake: Mistake) -> None:
        self.mistake = mistake
        self.wanted = f"dpviz.{mistake.module.replace('/', '.')}"

    def find_spec(
        self, fullname: str, path: Sequence[str] | None, target: ModuleType | None = None
    ) -> importlib.machinery.ModuleSpec | None:
        if fullname != self.wanted:
            return None
        place = str(self.mistake.path)
        return importlib.util.spec_from_file_location(fullname, place, loader=_Wrong(self.mistake, fullname, place))


def pytest_load_initial_conftests() -> None:
    """Before anything of dpviz is imported."""
    chosen = os.environ.get("DPVIZ_MISTAKE")
    if chosen is not None:
        assert not any(name == "dpviz" or name.startswith("dpviz.") for name in sys.modules), "too late"
        sys.meta_path.insert(0, _Finder(MISTAKES[int(chosen)]))
