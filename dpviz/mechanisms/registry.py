"""Finds the mechanisms: every subclass with an id in the modules of this package."""

from __future__ import annotations

import importlib
import pkgutil
from functools import cache

from dpviz.common.validate import one_of
from dpviz.mechanisms.base import Mechanism


@cache
def _found() -> dict[str, type[Mechanism]]:
    package = importlib.import_module("dpviz.mechanisms")
    found: dict[str, type[Mechanism]] = {}
    for info in pkgutil.walk_packages(package.__path__, "dpviz.mechanisms."):
        _family, _, file = info.name.removeprefix("dpviz.mechanisms.").partition(".")
        if info.ispkg or not file or file.startswith("_"):
            continue
        module = importlib.import_module(info.name)  # an import error must be seen
        for value in vars(module).values():
            if isinstance(value, type) and issubclass(value, Mechanism) and value.__module__ == module.__name__:
                identifier = vars(value).get("id")
                if identifier is None:
                    continue  # a shared base class
                if identifier in found:
                    raise TypeError(f"two mechanisms have the id {identifier!r}: {found[identifier]} and {value}")
                found[identifier] = value
    return dict(sorted(found.items(), key=lambda item: (item[1].order, item[0])))


def list_mechanisms() -> dict[str, type[Mechanism]]:
    """All mechanisms by id (kebab-case), grouped by family."""
    return dict(_found())


def get_mechanism(name: str) -> type[Mechanism]:
    """A mechanism's class by id.

    Raises:
        InvalidInput: no such mechanism.
    """
    return _found()[one_of("mechanism", name, _found())]
