"""The site of the docs: built without a warning, its notebooks executed, and opened without a network."""

import json
import os
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest
from support import LIMIT

import dpviz

DOCS = Path(__file__).parents[2] / "docs"
NOTEBOOKS = sorted(DOCS.glob("*.ipynb"))


def test_notebooks_are_kept_without_outputs() -> None:
    cells = [cell for path in NOTEBOOKS for cell in json.loads(path.read_text(encoding="utf-8"))["cells"]]
    assert len(NOTEBOOKS) == 2
    assert not [cell for cell in cells if cell.get("outputs") or cell.get("execution_count")]


@pytest.mark.long
def test_the_site_is_built_without_warnings_and_asks_for_nothing(chromium: Any, tmp_path: Path) -> None:
    for name in ("sphinx", "myst_nb", "furo", "latex2mathml"):
        pytest.importorskip(name, reason=f"{name} is not installed: pip install 'dpviz[docs]'")
    build = [sys.executable, "-m", "sphinx", "-q", "-W", "--keep-going", "-b", "html", str(DOCS), str(tmp_path)]
    paths = os.pathsep.join([str(DOCS.parent), os.environ.get("PYTHONPATH", "")])
    built = subprocess.run(build, capture_output=True, text=True, env=os.environ | {"PYTHONPATH": paths})
    assert built.returncode == 0, built.stderr[-3000:]
    text = "".join(path.read_text() for path in tmp_path.glob("python*.html"))
    assert [name for name in dpviz.__all__ if f'id="dpviz.{name}"' not in text] == ["__version__"]
    assert "claim exceeded" in (tmp_path / "notebook_audit.html").read_text()
    assert "<svg" in (tmp_path / "notebook_cost.html").read_text()
    asked: list[str] = []
    page = chromium.new_page()
    page.set_default_timeout(1000 * LIMIT)
    page.on("request", lambda request: asked.append(request.url))
    page.on("pageerror", lambda error: asked.append(str(error)))
    for path in [*DOCS.glob("*.md"), *NOTEBOOKS, Path("genindex")]:
        page.goto((tmp_path / f"{path.stem}.html").as_uri())
        assert page.locator("h1").first.inner_text()
    page.close()
    assert [url for url in asked if not url.startswith(("file:", "data:"))] == []
