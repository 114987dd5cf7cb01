"""Examples of functions (`tests/kept`) with what they give: a swapped argument, a lost keyword or a wrong sign is seen.

Where another value is meant, or an example is new, `DPVIZ_KEEP=1 pytest tests/test_kept_examples.py` writes all values, and the
difference is read before it is committed. What a theorem or a second formula says of a function has a test of its own.
"""

import importlib
import json
import os
import re
from pathlib import Path
from typing import Any

import pytest
from support_kept import numbers, same

FOLDER, KEPT = Path(__file__).with_name("kept"), Path(__file__).with_name("kept_examples.json")
VALUES: dict[str, list[Any]] = json.loads(KEPT.read_text("utf-8"))
ROOMS = {path.stem: importlib.import_module(f"kept.{path.stem}") for path in sorted(FOLDER.glob("*.py"))}
EXAMPLES = {
    f"{room}.{name}": made for room, module in ROOMS.items() for name, made in vars(module).items() if name.endswith("_examples")
}


@pytest.mark.parametrize("name", EXAMPLES)
def test_examples_give_what_was_kept(name: str) -> None:
    # a text as it is, and of any other value its numbers and names
    found = [one if isinstance(one, str) else json.loads(json.dumps(numbers(one))) for one in EXAMPLES[name]()]
    kept = VALUES.get(name, [])
    if os.environ.get("DPVIZ_KEEP"):
        VALUES[name] = found
        text = json.dumps({one: VALUES[one] for one in EXAMPLES if one in VALUES}, indent=1, ensure_ascii=False)
        KEPT.write_text(re.sub(r"\n {3,}|\n  (?=\])", " ", text) + "\n", "utf-8")
    assert len(found) == len(kept)
    other = {k: pair for k, pair in enumerate(zip(found, kept, strict=True)) if not same(*pair)}
    assert not other, f"found and kept: {other}"


def test_every_kept_value_has_an_example() -> None:
    assert list(VALUES) == list(EXAMPLES)
