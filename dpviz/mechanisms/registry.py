"""Finds all mechanisms: in the family folders of this package, and in other packages by the entry point group "dpviz.mechanisms".

An entry point names a class (`mine = my_package.mine:MyMethod`) or a module or package (`mine = my_package`) whose
mechanisms are all taken. A class is a mechanism where it declares an `id` of its own; shared base classes have none.
"""

import importlib
import math
import pkgutil
from collections.abc import Collection, Iterator
from functools import cache
from importlib.metadata import EntryPoint, entry_points
from types import ModuleType

from dpviz.common.validate import InvalidInput, check_choice
from dpviz.mechanisms.base import Knob, Mechanism
from dpviz.models import Setting

#: in the place of an id: the method that a rule of public facts names
AUTOMATIC = "automatic"

GROUP = "dpviz.mechanisms"


def _in_module(module: ModuleType) -> Iterator[type[Mechanism]]:
    """The mechanisms that a module, or any module below a package, defines itself."""
    for value in list(vars(module).values()):  # another thread's first import may add a submodule meanwhile
        if (
            isinstance(value, type)
            and issubclass(value, Mechanism)
            and value.__module__ == module.__name__
            and "id" in vars(value)
        ):
            yield value
    for info in pkgutil.iter_modules(getattr(module, "__path__", ()), f"{module.__name__}."):
        yield from _in_module(importlib.import_module(info.name))  # an import error must be seen


def _of_entry_point(entry: EntryPoint) -> Iterator[type[Mechanism]]:
    loaded = entry.load()
    if isinstance(loaded, ModuleType):
        yield from _in_module(loaded)
    elif isinstance(loaded, type) and issubclass(loaded, Mechanism) and hasattr(loaded, "id"):
        yield loaded
    else:
        cause = f"the entry point {entry.name!r} = {entry.value!r} of group {GROUP!r} is neither a mechanism nor a module"
        raise InvalidInput("mechanism", cause, "Let it name a class that derives from Mechanism and has an id, or a module.")


@cache
def _all() -> dict[str, type[Mechanism]]:
    mechanisms: dict[str, type[Mechanism]] = {}
    own = _in_module(importlib.import_module("dpviz.mechanisms"))
    for cls in [*own, *(cls for entry in entry_points(group=GROUP) for cls in _of_entry_point(entry))]:
        other = mechanisms.setdefault(cls.id, cls)
        if other is not cls:
            names = " and ".join(f"{c.__module__}.{c.__qualname__}" for c in (other, cls))
            raise InvalidInput("mechanism", f"two mechanisms have the id {cls.id!r}: {names}", "Give one of them another id.")
    return dict(sorted(mechanisms.items(), key=lambda item: (item[1].order, item[0])))


def list_mechanisms() -> dict[str, type[Mechanism]]:
    """All mechanisms by id (kebab-case), grouped by family.

    Raises:
        InvalidInput: two mechanisms have the same id, or an entry point names something else.
    """
    return dict(_all())


def automatic_mechanism(setting: Setting, epsilon: float, knobs: Collection[str] = (), models: int = 1) -> tuple[str, str]:
    """(id of the method that "automatic" stands for, why), from public facts alone.

    With x = n epsilon/sqrt(d), n/k for persons with k rows each, it is the method with the largest `Mechanism.automatic_from`
    within x that takes the model. Of K models, one for each class, each has epsilon/K, and all together K d parameters.

    Args:
        epsilon: of all models together.
        knobs: names of hyperparameters that it must have.
        models: K.

    Raises:
        InvalidInput: no method that can be chosen has these hyperparameters.

    >>> from dpviz.models import get_model
    >>> automatic_mechanism(get_model("logistic").setting(40_000, 100, 1e-4), 1.0)
    ('objective-tight', 'automatic: Objective perturbation (tight), because n ε/√d = 4,000 ≥ 1,280')
    """
    x = setting.n * epsilon / models / math.sqrt(models * setting.d) / max(1, setting.person_rows)
    able = [c for c in _all().values() if c.automatic_from <= x and not c.refusal(setting) and set(knobs) <= set(c.knobs())]
    if not able:
        cause = f"no method that is chosen automatically has {', '.join(knobs)} and takes {setting.model!r}"
        raise InvalidInput("params" if knobs else "mechanism", cause, "Name a mechanism.")
    best = max(able, key=lambda cls: cls.automatic_from)
    others = [c.automatic_from for c in _all().values() if x < c.automatic_from < math.inf and not c.refusal(setting)]
    bound = f"≥ {best.automatic_from:,.0f}" if best.automatic_from > 0 else f"< {min(others):,.0f}" if others else ""
    why = f"because n ε/√d = {x:,.0f} {bound}" if bound else "the one for this model"
    return best.id, f"automatic: {best.label}, {why}"


def get_mechanism(name: str) -> type[Mechanism]:
    """A mechanism's class by id.

    Raises:
        InvalidInput: no such mechanism.

    >>> get_mechanism("dp-gd").label
    'DP-GD'
    """
    return _all()[check_choice("mechanism", name, _all())]


def get_knob(mechanism: str, knob: str, name: str) -> Knob:
    """A mechanism's knob by both ids.

    Raises:
        InvalidInput: no such mechanism, or under `name` no such knob.
    """
    knobs = get_mechanism(mechanism).knobs()
    if knob not in knobs:
        raise InvalidInput(name, f"{mechanism} has no {knob[:40]!r}", f"It has: {', '.join(knobs) or 'nothing to set'}.")
    return knobs[knob]
