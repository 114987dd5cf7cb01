"""The ledger of one table: every release of it as an entry in a TOML file, and what all of them together cost.

Key terms:
    entry: one release, as an event or as its proved budget, under the ledger's neighbouring relation.
    limit: the total epsilon at delta that the entries may reach. A release that would pass it is refused before it is trained.
    total: the smallest proved epsilon at the limit's delta of all entries (`privacy.accounting.heterogeneous`).

An entry is written before training begins, so that a crash can count a release that never came, and never miss one that did.
The total is proved where the parameters of each release were fixed without looking at the outcomes of earlier ones. Where
budgets are chosen adaptively, a filter or odometer is needed (Rogers, Roth, Ullman, Vadhan 2016; Whitehouse, Ramdas, Rogers,
Wu 2023); a fixed limit, checked before each release, is a filter for the parts whose accountant adds up mu^2 or budgets, and
dpviz does not claim more.
"""

from __future__ import annotations

import os
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import pandas as pd
import tomli_w
from filelock import FileLock, Timeout

from dpviz.common import files, toml
from dpviz.common.validate import InvalidInput, as_path, in_range, instance, one_of, positive, show, whole
from dpviz.privacy.accounting.events import Event, PureEpsilon
from dpviz.privacy.accounting.heterogeneous import total_epsilon
from dpviz.privacy.budget import Budget, Neighbouring, Status
from dpviz.spending.records import from_record, to_record

#: what an entry can be
WHAT = ("release", "search", "range", "other")
_VERSION = 1
_MOST_TEXT = 2_000
_FIX = "It is no ledger, or was changed by hand. Take a copy of it, or make a new one."
_MOST_BYTES = 1 << 24  # some 20,000 entries
_WAIT = 60.0  # seconds for another writer


@dataclass(frozen=True)
class Entry:
    """One release of a table.

    Attributes:
        release: what was released, as one event; or its budget, where no event is known.
        what: one of `WHAT`.
        status: how far its guarantee is proved; the total is proved only where every entry's is.
        conditions: what must hold for its proof.
        call: the call that made it, for people.
        when: ISO 8601, in UTC; now by default.
        person_rows: rows of one person at most, where its guarantee is for a person; 0 where it is for a row.

    Raises:
        InvalidInput: a value is not one of those that are allowed.
    """

    release: Event | Budget
    what: str = "release"
    status: Status = Status.PROVED
    conditions: tuple[str, ...] = ()
    call: str = ""
    when: str = field(default_factory=lambda: datetime.now(UTC).isoformat(timespec="seconds"))
    person_rows: int = 0

    def __post_init__(self) -> None:
        one_of("what", self.what, WHAT)
        for name, text in (("call", self.call), ("when", self.when), *(("conditions", c) for c in self.conditions)):
            if not isinstance(text, str) or len(text) > _MOST_TEXT:
                raise InvalidInput(name, f"must be a text of at most {_MOST_TEXT:,} characters", "Shorten it.")

    @property
    def proved(self) -> bool:
        """True where its guarantee is proved, perhaps under conditions."""
        return self.status in (Status.PROVED, Status.PROVED_IF)

    def to_dict(self) -> dict[str, Any]:
        """As it stands in the file."""
        values: dict[str, Any] = {"when": self.when, "what": self.what, "status": self.status.value}
        if self.conditions:
            values["conditions"] = list(self.conditions)
        if self.call:
            values["call"] = self.call
        if self.person_rows:
            values["person_rows"] = self.person_rows
        return values | {"release": to_record(self.release)}


@dataclass(frozen=True)
class Total:
    """The total cost of a ledger's entries.

    Attributes:
        budget: the smallest epsilon that the accountants give at the limit's delta; None where there is no entry.
        status: proved, proved under conditions, or a paper's claim only.
        unproved: the entries that are only claimed.
        conditions: of all entries, without repetition.
        parts: (entry, its epsilon alone at the same delta).
    """

    budget: Budget | None
    status: Status
    unproved: tuple[Entry, ...]
    conditions: tuple[str, ...]
    parts: tuple[tuple[Entry, float], ...]

    def table(self) -> pd.DataFrame:
        """One row an entry: columns when, what, release, epsilon (alone), status and call."""
        rows = [(e.when, e.what, type(e.release).__name__, alone, e.status.value, e.call) for e, alone in self.parts]
        return pd.DataFrame(rows, columns=["when", "what", "release", "epsilon", "status", "call"])


@dataclass(frozen=True)
class Contents:
    """The contents of a ledger, or of one that could be.

    Attributes:
        table: a name for people.
        unit: what one epsilon protects.
        relation: the neighbouring relation of all releases.
        limit: the total that may be reached.
        entries: the oldest first.
    """

    table: str
    unit: str
    relation: Neighbouring
    limit: Budget
    entries: tuple[Entry, ...]

    @classmethod
    def of(cls, values: dict[str, Any], name: str) -> Contents:
        """The contents of a file that holds these values.

        Raises:
            InvalidInput: they are not those of a ledger.
        """
        for key, kind in (("table", str), ("unit", str), ("relation", str), ("limit", dict), ("entry", list)):
            if not isinstance(values.get(key), kind):
                raise InvalidInput("ledger", f"{name!r} has no {key}", "Make a ledger with dpviz ledger FILE --limit.")
        if values.get("version") != _VERSION:
            raise InvalidInput("ledger", f"is of version {show(values.get('version'))}", f"This dpviz reads version {_VERSION}.")
        relation = one_of("ledger.relation", values["relation"], [r.value for r in Neighbouring])
        delta = in_range("ledger.limit.delta", values["limit"].get("delta"), 1e-300, 1 - 1e-12)
        limit = Budget(positive("ledger.limit.epsilon", values["limit"].get("epsilon")), delta)
        return cls(values["table"], values["unit"], Neighbouring(relation), limit, _entries(values["entry"]))

    def total(self, *further: Entry) -> Total:
        """The total cost of all entries and of `further` ones."""
        entries, delta = (*self.entries, *further), self.limit.delta
        unproved = tuple(entry for entry in entries if not entry.proved)
        conditions = tuple(dict.fromkeys(c for entry in entries for c in entry.conditions))
        status = Status.CLAIM if unproved else Status.PROVED_IF if conditions else Status.PROVED
        if not entries:
            return Total(None, status, (), (), ())
        parts = tuple((entry, total_epsilon([entry.release], delta, self.relation)) for entry in entries)
        epsilon = total_epsilon([entry.release for entry in entries], delta, self.relation)
        return Total(_budget(epsilon, delta), status, unproved, conditions, parts)

    def check(self, entry: Entry, relation: Neighbouring) -> None:
        """Refuses a release that would pass the limit, or that is about another relation or unit, or has no guarantee.

        Raises:
            InvalidInput: it is one of these.
        """
        if relation is not self.relation:
            cause = f"this release is about {relation.value}, and the ledger counts {self.relation.value}"
            raise InvalidInput("ledger", cause, f"Choose a method with a guarantee for {self.relation.value}, or another ledger.")
        if self.unit != "row" and not entry.person_rows:
            cause = f"this release is about one row, and the ledger counts what one {self.unit} of {self.table!r} spends"
            raise InvalidInput("ledger", cause, "Name the column of the person (--person), or a ledger whose unit is a row.")
        if entry.status is Status.NONE:
            cause = "this release has no privacy guarantee, which no limit allows"
            raise InvalidInput("ledger", cause, "Choose a method with a guarantee, or release it without the ledger and say so.")
        total, limit = self.total(entry).budget, self.limit
        epsilon = float("inf") if total is None else total.epsilon
        if epsilon > limit.epsilon * (1 + 1e-9):
            reached = "beyond every ε" if total is None else f"to ε = {epsilon:.4g}"
            cause = f"this release would bring the total of {self.table!r} {reached} at δ = {limit.delta:g}"
            raise InvalidInput("ledger", f"{cause}, above the limit ε = {limit.epsilon:g}", "Choose a smaller epsilon.")


class Ledger:
    """Every release of one table, in a TOML file that is appended under a lock.

    Args:
        path: the file, made by `Ledger.create`.

    Raises:
        InvalidInput: there is no such file, or it is no ledger.

    >>> import tempfile
    >>> path = Path(tempfile.mkdtemp()) / "census.toml"
    >>> ledger = Ledger.create(path, table="census", limit=Budget(1.0, 1e-6))
    >>> ledger.spend(Entry(PureEpsilon(0.75)))
    >>> round(ledger.total().budget.epsilon, 3)
    0.75
    >>> ledger.spend(Entry(PureEpsilon(0.5)))
    Traceback (most recent call last):
    ...
    dpviz.common.validate.InvalidInput: ledger: this release would bring the total of 'census' to ε = 1.25 at δ = 1e-06, ...
    """

    def __init__(self, path: str | os.PathLike[str]) -> None:
        self.path = as_path("path", path)
        self.contents()  # refuses what is no ledger

    @classmethod
    def create(
        cls,
        path: str | os.PathLike[str],
        *,
        table: str,
        limit: Budget,
        relation: Neighbouring = Neighbouring.REPLACE_ONE,
        unit: str = "row",
    ) -> Ledger:
        """A new ledger without entries.

        Args:
            table: a name for people; never a hash of private rows.
            limit: the total that may be reached, with delta > 0.
            relation: the neighbouring relation of all releases.
            unit: what one epsilon protects: "row", or the word for a person who may have several rows.

        Raises:
            InvalidInput: the file is there already or cannot be written, or delta is 0.
        """
        cause = "a ledger's limit needs delta > 0: most releases have no pure epsilon"
        instance("limit", limit, Budget).need_delta(cause, "Give 1e-6.")
        target, counted = as_path("path", path), instance("relation", relation, Neighbouring)
        head = {"version": _VERSION, "table": _text("table", table), "unit": _text("unit", unit), "relation": counted.value}
        _must_be_new(target)  # without the lock first, which leaves a file beside it
        with _locked(target):
            _must_be_new(target)
            _write(target, head | {"limit": {"epsilon": limit.epsilon, "delta": limit.delta}, "entry": []})
        return cls(target)

    @property
    def table(self) -> str:
        """The table's name."""
        return self.contents().table

    @property
    def unit(self) -> str:
        """The unit that one epsilon protects."""
        return self.contents().unit

    @property
    def limit(self) -> Budget:
        """The total that may be reached."""
        return self.contents().limit

    @property
    def relation(self) -> Neighbouring:
        """The neighbouring relation of all releases."""
        return self.contents().relation

    @staticmethod
    def parse(content: bytes) -> Contents:
        """The contents of a ledger's file that is somewhere else.

        Raises:
            InvalidInput: it is no ledger.
        """
        return Contents.of(toml.parse(content, "ledger", _FIX, _MOST_BYTES), "ledger.toml")

    def contents(self) -> Contents:
        """All of it, read once."""
        return Contents.of(self._read(), str(self.path))

    def entries(self) -> tuple[Entry, ...]:
        """All entries, the oldest first."""
        return self.contents().entries

    def total(self, *further: Entry) -> Total:
        """The total cost of all entries, with `further` ones that are not in the file."""
        return self.contents().total(*further)

    def check(self, entry: Entry, relation: Neighbouring = Neighbouring.REPLACE_ONE) -> None:
        """Refuses a release that would pass the limit, or that is about another relation; writes nothing.

        Raises:
            InvalidInput: it would pass the limit, with the number; or its guarantee is about another relation.
        """
        self.contents().check(entry, relation)

    def spend(self, entry: Entry, relation: Neighbouring = Neighbouring.REPLACE_ONE) -> None:
        """Writes an entry, or refuses it; call it before training.

        Args:
            relation: the neighbouring relation of the entry's guarantee.

        Raises:
            InvalidInput: it would pass the limit, with the number; its guarantee is about another relation; another writer
                holds the file for a minute; or the file cannot be written.
        """
        with _locked(self.path):
            content = self._read()
            Contents.of(content, str(self.path)).check(entry, relation)
            _write(self.path, content | {"entry": [*content["entry"], entry.to_dict()]})

    def _read(self) -> dict[str, Any]:
        return toml.read(self.path, "ledger", _FIX, _MOST_BYTES)


def entry_of_budget(epsilon: float, delta: float = 0.0, **more: Any) -> Entry:
    """An entry for a release of which only (epsilon, delta) is known."""
    return Entry(PureEpsilon(epsilon) if delta == 0 else Budget(epsilon, delta), **more)


def _entries(content: list[Any]) -> tuple[Entry, ...]:
    made = []
    for index, values in enumerate(content, 1):
        name = f"ledger entry {index}"
        if not isinstance(values, dict):
            raise InvalidInput(name, f"is no table: {show(values)}", "Take a copy of the ledger.")
        status = one_of(f"{name}.status", values.get("status"), [s.value for s in Status])
        conditions = values.get("conditions", [])
        if not isinstance(conditions, list):
            raise InvalidInput(name, "has conditions that are no list", "Take a copy of the ledger.")
        made.append(
            Entry(
                from_record(values.get("release"), f"{name}.release"),
                values.get("what", "other"),
                Status(status),
                tuple(conditions),
                values.get("call", ""),
                values.get("when", ""),
                whole(f"{name}.person_rows", values.get("person_rows", 0), 0, 2**31),
            )
        )
    return tuple(made)


def _budget(epsilon: float, delta: float) -> Budget | None:
    """The budget; None where no finite epsilon holds at this delta."""
    return Budget(max(epsilon, 1e-12), delta) if epsilon < float("inf") else None


def _text(field: str, value: str) -> str:
    if not isinstance(value, str) or not value.strip() or len(value) > 200 or not value.isprintable():
        raise InvalidInput(field, f"must be a printable text of at most 200 characters, got {show(value)}", "Give a short name.")
    return value.strip()


def _must_be_new(path: Path) -> None:
    if os.path.lexists(path):
        raise InvalidInput("ledger", f"{str(path)!r} is there already", "Name another file; a ledger is not overwritten.")


@contextmanager
def _locked(path: Path) -> Iterator[None]:
    """Holds the file's lock; one writer at a time, in any process."""
    lock = FileLock(path.with_name(path.name + ".lock"), timeout=_WAIT)
    try:
        lock.acquire()
    except Timeout as error:
        raise InvalidInput("ledger", f"another program holds it for {_WAIT:g} s", "Wait for it, or end it.") from error
    except OSError as error:
        raise InvalidInput("ledger", f"cannot be locked ({error.strerror})", "Name a file in a folder of yours.") from error
    try:
        yield
    finally:
        lock.release()


def _write(path: Path, content: dict[str, Any]) -> None:
    text = tomli_w.dumps(content).encode()
    if len(text) > _MOST_BYTES:
        raise InvalidInput("ledger", f"would be larger than {_MOST_BYTES >> 20} MiB", "Enter its total into a new ledger.")
    try:
        files.write(path, text)
    except OSError as error:
        raise InvalidInput("ledger", f"cannot be written ({error.strerror})", "Name a file that can be written.") from error
