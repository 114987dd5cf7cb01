"""The package's public names: loaded when asked for, and the same for people, type checkers and `from dpviz import *`."""

import ast
from importlib import import_module
from pathlib import Path

import pytest

import dpviz


def test_what_type_checkers_see_is_what_is_loaded() -> None:
    tree = ast.parse(Path(dpviz.__file__).read_text())
    (block,) = (node for node in tree.body if isinstance(node, ast.If) and ast.unparse(node.test) == "TYPE_CHECKING")
    seen = {alias.name: node.module for node in block.body if isinstance(node, ast.ImportFrom) for alias in node.names}
    assert seen == {name: home for home, names in dpviz._HOMES.items() for name in names}
    assert set(dpviz.__all__) == {*seen, "__version__"}


@pytest.mark.parametrize("name", dpviz.__all__)
def test_every_public_name_is_there(name: str) -> None:
    assert getattr(dpviz, name) is not None
    assert name in dir(dpviz)


def test_rooms_are_attributes_and_other_names_are_refused() -> None:
    assert dpviz.datasets is import_module("dpviz.datasets")
    with pytest.raises(AttributeError, match="no attribute 'nonsense'"):
        _ = dpviz.nonsense  # type: ignore[attr-defined]
