"""The package's public names: loaded when asked for, and the same for people, type checkers and `from dpviz import *`."""

from importlib import import_module

import pytest

import dpviz


@pytest.mark.parametrize("name", dpviz.__all__)
def test_every_public_name_is_there(name: str) -> None:
    assert getattr(dpviz, name) is not None
    assert name in dir(dpviz)


@pytest.mark.parametrize(
    ("name", "rest", "wrong"),
    [
        *((name, (), "spec: must be a RunSpec") for name in ("run", "resolve", "setup_for", "audit_run", "release")),
        ("attack_run", (), "spec: must be a RunSpec"),
        ("run_epsilons", ([1.0],), "spec: must be a RunSpec"),
        ("private_search", ({"lam": [0.1]},), "spec: must be a RunSpec"),
        ("run_sweep", (), "spec: must be a SweepSpec"),
        ("cross_validate", (2,), "spec: must be a SweepSpec"),
        ("influence_of", (), "of: must be a Problem"),
        ("audit", (3, 3, 3), "mechanism: must be a Mechanism"),
        ("audit_one_run", (3, 3), "mechanism: must be a Mechanism"),
    ],
)
def test_an_argument_of_another_class_is_one_error(name: str, rest: tuple[object, ...], wrong: str) -> None:
    with pytest.raises(dpviz.InvalidInput, match=f"{wrong}, got an object of the class int. Give one of the class dpviz."):
        getattr(dpviz, name)(3, *rest)


def test_rooms_are_attributes_and_other_names_are_refused() -> None:
    assert dpviz.datasets is import_module("dpviz.datasets")
    with pytest.raises(AttributeError, match="no attribute 'nonsense'"):
        _ = dpviz.nonsense  # type: ignore[attr-defined]
