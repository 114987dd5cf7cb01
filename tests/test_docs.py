"""The docs say what the code says."""

from __future__ import annotations

import importlib
import re
import subprocess
import sys
from operator import attrgetter
from pathlib import Path

import dpviz

ROOT = Path(__file__).parent.parent


def test_mechanism_table_is_up_to_date() -> None:
    subprocess.run([sys.executable, ROOT / "docs" / "mechanisms.py", "--check"], check=True, cwd=ROOT)


def test_readme_python_examples_run_one_after_the_other() -> None:
    blocks = re.findall(r"```python\n(.*?)```", (ROOT / "README.md").read_text(), re.S)
    assert blocks
    names: dict[str, object] = {}
    for block in blocks:
        exec(block, names)
    assert isinstance(names["result"], dpviz.Result)


def test_readme_has_one_command_each() -> None:
    text = (ROOT / "README.md").read_text()
    blocks = re.findall(r"```sh\n(.*?)```", text, re.S)
    assert len(blocks) == 2
    assert all(len(block.strip().splitlines()) == 1 for block in blocks)


def test_the_architecture_page_points_at_what_is_there() -> None:
    text = (ROOT / "docs" / "architecture.md").read_text()
    found = re.findall(r"^\| [^|]+ \| `([\w/]+)\.py` \| `([\w.]+)` \|$", text, re.M)
    assert len(found) >= 10
    for path, name in found:
        attrgetter(name)(importlib.import_module("dpviz." + path.replace("/", ".")))
