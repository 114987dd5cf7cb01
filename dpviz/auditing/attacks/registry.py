"""Finds all membership attacks: every file of this folder may declare one."""

import importlib
import pkgutil
from functools import cache

import dpviz.auditing.attacks as room
from dpviz.auditing.attacks.base import MembershipAttack
from dpviz.common.validate import check_choice


@cache
def _all() -> dict[str, MembershipAttack]:
    for info in pkgutil.iter_modules(room.__path__):
        importlib.import_module(f"{room.__name__}.{info.name}")
    declared = [cls for cls in MembershipAttack.__subclasses__() if cls.__module__.startswith(room.__name__)]
    return {cls.id: cls() for cls in sorted(declared, key=lambda cls: str(cls.id))}


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
    return _all()[check_choice("attack", name, _all())]
