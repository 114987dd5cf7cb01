"""The package's public names: loaded when asked for, and the same for people, type checkers and `from dpviz import *`."""

from importlib import import_module

import pytest

import dpviz


@pytest.mark.parametrize("name", dpviz.__all__)
def test_every_public_name_is_there(name: str) -> None:
    assert getattr(dpviz, name) is not None
    assert name in dir(dpviz)


def test_rooms_are_attributes_and_other_names_are_refused() -> None:
    assert dpviz.datasets is import_module("dpviz.datasets")
    with pytest.raises(AttributeError, match="no attribute 'nonsense'"):
        _ = dpviz.nonsense  # type: ignore[attr-defined]
