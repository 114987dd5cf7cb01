"""The examples in docstrings do what they say."""

import doctest
import importlib
from pathlib import Path

from support import of_each

ROOT = Path(__file__).parents[1]
FILES = [path for path in (ROOT / "dpviz").rglob("*.py") if ">>> " in path.read_text()]
LEAST = 60  # functions, classes and modules with an example


def name(path: Path) -> str:
    return ".".join(path.relative_to(ROOT).with_suffix("").parts).removesuffix(".__init__")


@of_each(FILES)
def test_examples_are_true(path: Path) -> None:
    flags = doctest.ELLIPSIS | doctest.NORMALIZE_WHITESPACE | doctest.IGNORE_EXCEPTION_DETAIL
    failed, attempted = doctest.testmod(importlib.import_module(name(path)), optionflags=flags)
    assert attempted
    assert not failed


def test_there_are_examples_where_people_would_try_them() -> None:
    finder = doctest.DocTestFinder(exclude_empty=True)
    found = {one.name for path in FILES for one in finder.find(importlib.import_module(name(path))) if one.examples}
    assert len(found) >= LEAST, len(found)
