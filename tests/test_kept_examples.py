"""Examples of functions with what they give, kept by module: a swapped argument, a lost keyword or a wrong sign is seen.

An example is an expression in the names of its module and of `support`, or a command's `answer`. Where another value is meant,
or an example is new (with null), `DPVIZ_KEEP=1 pytest tests/test_kept_examples.py` writes all values, and the difference is read
before it is committed. What a theorem or a second formula says of a function has a test of its own.
"""

import contextlib
import importlib
import io
import json
import os
import re
import shlex
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import support
from support_kept import numbers, numbers_in, same

from dpviz.cli.main import main
from dpviz.figures.svg import picture

KEPT = Path(__file__).with_name("kept_examples.json")
EXAMPLES: dict[str, dict[str, Any]] = json.loads(KEPT.read_text("utf-8"))


def answer(command: str) -> Any:
    """What a command prints beside `kept_table.csv`: its document without the version, or the numbers of its lines."""
    with contextlib.chdir(KEPT.parent), contextlib.redirect_stdout(io.StringIO()) as out:
        assert main(shlex.split(command)) == 0
    text = re.sub("rows-[0-9a-f]{16}", "rows", out.getvalue())  # a name that is drawn
    if "--json" in command:
        return {key: value for key, value in json.loads(text).items() if key != "version"}
    return list(map(numbers_in, text.splitlines()))


NAMES = {
    **vars(support),
    "answer": answer,
    "numbers_in": numbers_in,
    "drawn": lambda figure: np.array_split(numbers_in(figure.to_json() + picture(figure, "name")), 12),
}


def value_of(example: str, module: str) -> Any:
    """A text as it is, and of any other value its numbers and names."""
    value = eval(example, NAMES | vars(importlib.import_module(f"dpviz.{module}")))
    return value if isinstance(value, str) else json.loads(json.dumps(numbers(value)))


@pytest.mark.parametrize("module", EXAMPLES)
def test_examples_give_what_was_kept(module: str) -> None:
    found = {example: value_of(example, module) for example in EXAMPLES[module]}
    other = {one: (value, EXAMPLES[module][one]) for one, value in found.items() if not same(value, EXAMPLES[module][one])}
    if os.environ.get("DPVIZ_KEEP"):
        EXAMPLES[module] = found
        KEPT.write_text(re.sub(r"\n {3,}|\n  (?=\])", " ", json.dumps(EXAMPLES, indent=1, ensure_ascii=False)) + "\n", "utf-8")
    assert not other, f"found and kept: {other}"
