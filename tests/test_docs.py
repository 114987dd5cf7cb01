"""The docs say what the code says."""

from __future__ import annotations

import re
import subprocess
import sys
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
