"""Who may import whom."""

from __future__ import annotations

import ast
import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).parent.parent
FILES = sorted((ROOT / "dpviz").rglob("*.py"))

#: room -> rooms it must not look at
FORBIDDEN = {
    "progress": {"privacy", "losses", "models", "datasets", "optim", "mechanisms", "bench", "engine", "figures", "dashboard"},
    "validate": {"privacy", "losses", "models", "datasets", "optim", "mechanisms", "bench", "engine", "figures", "dashboard"},
    "privacy": {"mechanisms", "bench", "engine", "figures", "dashboard", "datasets", "models"},
    "losses": {"models", "datasets", "mechanisms", "bench", "engine", "figures", "dashboard"},
    "models": {"mechanisms", "bench", "engine", "figures", "dashboard", "datasets"},
    "datasets": {"mechanisms", "bench", "engine", "models", "privacy", "figures", "dashboard"},
    "leave_one_out": {"influence", "mechanisms", "bench", "engine", "datasets", "figures", "dashboard"},
    "influence": {"mechanisms", "bench", "engine", "datasets", "figures", "dashboard"},
    "mechanisms": {"auditing", "bench", "engine", "spec", "figures", "dashboard", "datasets"},
    "auditing": {"bench", "engine", "sweeps", "spec", "figures", "dashboard", "datasets"},
    "bench": {"mechanisms", "engine", "claims", "sweeps", "observed", "figures", "dashboard"},
    "engine": {"claims", "sweeps", "observed", "figures", "dashboard"},
    "observed": {"claims", "sweeps", "figures", "dashboard"},
    "claims": {"figures", "dashboard"},
    "cells": {"claims", "sweeps", "curves", "figures", "dashboard"},
    "sweeps": {"claims", "curves", "figures", "dashboard"},
    "curves": {"bench", "engine", "cells", "sweeps", "datasets", "figures", "dashboard"},
    "presets": {"figures", "dashboard"},
    "figures": {"dashboard", "bench", "engine", "mechanisms", "datasets"},
}


def imports(path: Path) -> set[str]:
    names: set[str] = set()
    for node in ast.walk(ast.parse(path.read_text())):
        if isinstance(node, ast.Import):
            names |= {alias.name for alias in node.names}
        elif isinstance(node, ast.ImportFrom) and node.module:
            names |= {node.module} | {f"{node.module}.{alias.name}" for alias in node.names}
    return names


def room(path: Path) -> str:
    return path.relative_to(ROOT / "dpviz").parts[0].removesuffix(".py")


@pytest.mark.parametrize("path", FILES, ids=lambda p: str(p.relative_to(ROOT)))
def test_imports_point_one_way(path: Path) -> None:
    found = imports(path)
    roots = {name.split(".")[0] for name in found}
    assert "streamlit" not in roots or room(path) == "dashboard"
    assert "plotly" not in roots or room(path) == "figures"
    rooms = {name.split(".")[1] for name in found if name.startswith("dpviz.")}
    assert not rooms & FORBIDDEN.get(room(path), set())


def test_importing_the_engine_loads_neither_streamlit_nor_plotly() -> None:
    code = "import dpviz, sys; print([m for m in ('streamlit', 'plotly', 'sklearn', 'dp_accounting') if m in sys.modules])"
    out = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True, cwd=ROOT)
    assert out.stdout.strip() == "[]"


@pytest.mark.parametrize("path", [ROOT / "app.py", *sorted((ROOT / "pages").glob("*.py"))], ids=lambda p: p.name)
def test_pages_stay_thin_and_name_no_mechanism(path: Path) -> None:
    import dpviz

    text = path.read_text()
    assert len(text.splitlines()) <= 90
    assert not [name for name in dpviz.mechanisms() if f'"{name}"' in text or f"'{name}'" in text]
