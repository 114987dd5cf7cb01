"""Finds all membership attacks: every file of this folder may declare one."""

import importlib
import pkgutil
from functools import cache

import dpviz.auditing.attacks as room
from dpviz.auditing.attacks.base import MembershipAttack
from dpviz.common.validate import one_of


@cache
def _all() -> dict[str, MembershipAttack]:
    modules = [importlib.import_module(f"{room.__name__}.{info.name}") for info in pkgutil.iter_modules(room.__path__)]
    classes = [value for module in modules for value in vars(module).values() if _declares(value, module.__name__)]
    return {cls.id: cls() for cls in sorted(classes, key=lambda cls: str(cls.id))}


def _declares(value: object, module: str) -> bool:
    """True where a value is an attack that a module defines itself."""
    return isinstance(value, type) and issubclass(value, MembershipAttack) and value.__module__ == module and "id" in vars(value)


def list_attacks() -> dict[str, MembershipAttack]:
    """All membership attacks by id.

    >>> list_attacks()["rmia"].label
    'RMIA'
    """
    return dict(_all())


def get_attack(name: str) -> MembershipAttack:
    """A membership attack by id.

    Raises:
        InvalidInput: no such attack.
    """
    return _all()[one_of("attack", name, _all())]
