"""Writes releases as plain values for TOML and JSON, and reads them back."""

from dataclasses import fields
from typing import Any

from dpviz.common.validate import InvalidInput, show
from dpviz.privacy.accounting.events import EVENTS, Event
from dpviz.privacy.budget import Budget

RELEASES = (*EVENTS, Budget)
_KINDS: dict[str, type] = {kind.__name__: kind for kind in RELEASES}
_DEEPEST = 8


def to_record(release: Event | Budget) -> dict[str, Any]:
    """The release as a table: its kind, and its fields that are not None.

    >>> from dpviz.privacy.accounting.events import PureEpsilon
    >>> to_record(PureEpsilon(0.5))
    {'kind': 'PureEpsilon', 'epsilon': 0.5}
    """
    return {"kind": type(release).__name__} | {
        field.name: _plain(value) for field in fields(release) if (value := getattr(release, field.name)) is not None
    }


def _plain(value: Any) -> Any:
    if isinstance(value, tuple):
        return [_plain(item) for item in value]
    return to_record(value) if isinstance(value, RELEASES) else value


def from_record(record: Any, field: str, depth: int = 0) -> Event | Budget:
    """The release that a table holds.

    Args:
        field: names the table in errors.

    Raises:
        InvalidInput: it is no release, or holds something else than a release of that kind has.
    """
    kind = record.get("kind") if isinstance(record, dict) else None
    if not isinstance(kind, str) or kind not in _KINDS or depth > _DEEPEST:
        raise InvalidInput(field, f"is no release: {show(record)}", f"Give kind = one of {', '.join(_KINDS)}, and its fields.")

    def read(value: Any) -> Any:
        if isinstance(value, list):
            return tuple(read(item) for item in value)
        return from_record(value, field, depth + 1) if isinstance(value, dict) else value

    values = {name: read(value) for name, value in record.items() if name != "kind"}
    names = [one.name for one in fields(_KINDS[kind])]
    try:
        release: Event | Budget = _KINDS[kind](**values)
    except TypeError as error:
        raise InvalidInput(field, f"is no {kind}: it holds {show(list(values))}", f"It has {', '.join(names)}.") from error
    except InvalidInput as problem:
        raise InvalidInput(f"{field}.{problem.field}", problem.cause, problem.fix) from problem
    return release
