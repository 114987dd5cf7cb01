"""Finds the accountants in the modules beside this one."""

import importlib
import pkgutil

from dpviz.common.validate import check_choice
from dpviz.privacy.accounting import accountants
from dpviz.privacy.accounting.accountants.base import Accountant


def find_accountants() -> dict[str, Accountant]:
    """The `ACCOUNTANT` of every module of this folder that has one, by name, from the loosest proof to the tightest."""
    names = [module.name for module in pkgutil.iter_modules(accountants.__path__) if module.name != "registry"]
    modules = [importlib.import_module(f"{accountants.__name__}.{name}") for name in names]
    every: list[Accountant] = [module.ACCOUNTANT for module in modules if hasattr(module, "ACCOUNTANT")]
    return {accountant.name: accountant for accountant in sorted(every, key=lambda accountant: accountant.place)}


ACCOUNTANTS = find_accountants()


def list_accountants() -> dict[str, Accountant]:
    """All accountants by name, from the loosest proof to the tightest."""
    return dict(ACCOUNTANTS)


def get_accountant(name: str) -> Accountant:
    """An accountant by name.

    Raises:
        InvalidInput: no such accountant.
    """
    return ACCOUNTANTS[check_choice("accountant", name, tuple(ACCOUNTANTS))]
