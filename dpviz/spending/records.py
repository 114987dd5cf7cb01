"""Writes releases as plain values for TOML and JSON, and reads them back."""

from dataclasses import fields
from typing import Any

from dpviz.common.validate import InvalidInput, number, show
from dpviz.privacy.accounting import events
from dpviz.privacy.accounting.events import Event
from dpviz.privacy.budget import Budget

_KINDS: dict[str, type] = {
    kind.__name__: kind
    for kind in (
        events.Gaussian,
        events.Mixture,
        events.PureEpsilon,
        events.Sampled,
        events.Repeated,
        events.Composed,
        events.Shuffled,
        Budget,
    )
}
_DEEPEST = 8


def to_record(release: Event | Budget) -> dict[str, Any]:
    """The release as a table: its kind, and its fields that are not None.

    >>> to_record(events.PureEpsilon(0.5))
    {'kind': 'PureEpsilon', 'epsilon': 0.5}
    """
    return {"kind": type(release).__name__} | {
        field.name: _plain(value) for field in fields(release) if (value := getattr(release, field.name)) is not None
    }


def _plain(value: Any) -> Any:
    if isinstance(value, tuple):
        return [_plain(item) for item in value]
    return to_record(value) if type(value) in _KINDS.values() else value


def from_record(record: Any, field: str, depth: int = 0) -> Event | Budget:
    """The release that a table holds.

    Args:
        field: names the table in errors.

    Raises:
        InvalidInput: it is no release, or holds something else than a release of that kind has.
    """
    if not isinstance(record, dict) or record.get("kind") not in _KINDS or depth > _DEEPEST:
        raise InvalidInput(field, f"is no release: {show(record)}", f"Give kind = one of {', '.join(_KINDS)}, and its fields.")
    kind = _KINDS[record["kind"]]
    known = {f.name for f in fields(kind)}
    values: dict[str, Any] = {}
    for name, value in record.items():
        if name == "kind":
            continue
        if name not in known:
            raise InvalidInput(field, f"{kind.__name__} has no {show(name)}", f"It has {', '.join(sorted(known))}.")
        if isinstance(value, list):
            values[name] = tuple(
                from_record(v, field, depth + 1) if name == "events" else number(f"{field}.{name}", v) for v in value
            )
        elif name == "event":
            values[name] = from_record(value, field, depth + 1)
        elif name == "sampling":
            values[name] = str(value)
        else:
            values[name] = number(f"{field}.{name}", value) if name not in ("count", "n") else value
    if kind is not Budget and any(isinstance(v, Budget) for v in (values.get("event"), *values.get("events", ()))):
        raise InvalidInput(field, f"a budget inside {kind.__name__} cannot be composed", "Enter it as an entry of its own.")
    try:
        made: Event | Budget = kind(**values)
    except TypeError as error:
        raise InvalidInput(field, f"{kind.__name__} lacks a field ({error})", f"It has {', '.join(sorted(known))}.") from error
    return made
