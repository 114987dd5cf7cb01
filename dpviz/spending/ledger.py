"""The ledger of one table: every release of it as an entry in a TOML file, and what all of them together cost.

Key terms:
    entry: one release, as an event or as its proved budget, under the ledger's neighbouring relation.
    limit: the total epsilon at delta that the entries may reach. A release that would pass it is refused before it is trained.
    total: the smallest proved epsilon at the limit's delta of all entries (`privacy.accounting.heterogeneous`).

An entry is written before training begins, so that a crash can count a release that never came, and never miss one that did.
Totals are computed without the file's lock; an entry is appended where the file is still the one that was read, and checked anew
where another writer was faster.
The total is proved where the parameters of each release were fixed without looking at the outcomes of earlier ones. Where
budgets are chosen adaptively, a filter or odometer is needed (Rogers, Roth, Ullman, Vadhan 2016; Whitehouse, Ramdas, Rogers,
Wu 2023); a fixed limit, checked before each release, is a filter for the parts whose accountant adds up mu^2 or budgets, and
dpviz does not claim more.
"""

from __future__ import annotations

import math
import os
import stat
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
from dpviz.common.progress import Monitor, ignore, track
from dpviz.common.validate import (
    InvalidInput,
    check_choice,
    check_instance,
    check_integer,
    check_range,
    escape_controls,
    number,
    parse_path,
    show,
)
from dpviz.privacy.accounting.events import Event, PureEpsilon, steps_of
from dpviz.privacy.accounting.heterogeneous import total_epsilon
from dpviz.privacy.budget import Budget, Neighbouring, Status
from dpviz.spending.records import RELEASES, from_record, to_record

#: what an entry can be
WHAT = ("release", "search", "range", "other")
_VERSION = 1
_MOST_TEXT = 2_000
_MOST_RELEASES = 10**9  # that one entry may stand for; random batches, whose total takes longer, count a hundredfold
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
        check_instance("release", self.release, *RELEASES)
        steps = () if isinstance(self.release, Budget) else steps_of(self.release)
        if sum(step.count if step.sampling == "full" else 100 * step.count for step in steps) > _MOST_RELEASES:
            raise InvalidInput("release", f"stands for more than {_MOST_RELEASES:,} releases", "Enter its budget instead.")
        check_choice("what", self.what, WHAT)
        check_instance("status", self.status, Status)
        check_integer("person_rows", self.person_rows, 0, 2**31)
        texts = {"call": (self.call,), "when": (self.when,), "conditions": check_instance("conditions", self.conditions, tuple)}
        for name, some in texts.items():
            if any(len(check_instance(name, text, str)) > _MOST_TEXT for text in some):
                raise InvalidInput(name, f"must be a text of at most {_MOST_TEXT:,} characters", "Shorten it.")
            shown = tuple(map(escape_controls, some))
            object.__setattr__(self, name, shown if name == "conditions" else shown[0])

    @classmethod
    def read(cls, values: Any, name: str) -> Entry:
        """The entry that a file holds as these values.

        Raises:
            InvalidInput: they are not those of an entry; `name` stands before the field.
        """
        try:
            values = {"conditions": [], "what": "other", "when": ""} | check_instance("table", values, dict)
            conditions = tuple(check_instance("conditions", values["conditions"], list))
            release = from_record(values.get("release"), "release")
            status = Status(check_choice("status", values.get("status"), [s.value for s in Status]))
            return cls(**values | {"release": release, "status": status, "conditions": conditions})
        except TypeError as error:
            raise InvalidInput(name, f"holds something else than an entry has: {show(list(values))}", _FIX) from error
        except InvalidInput as problem:
            raise InvalidInput(f"{name}.{problem.field}", problem.cause, problem.fix) from problem

    @property
    def proved(self) -> bool:
        """True where its guarantee is proved, perhaps under conditions."""
        return self.status in (Status.PROVED, Status.PROVED_IF)

    def to_dict(self) -> dict[str, Any]:
        """As it stands in the file."""
        values: dict[str, Any] = {"when": self.when, "what": self.what, "status": self.status.value}
        more = {"conditions": list(self.conditions), "call": self.call, "person_rows": self.person_rows}
        values |= {name: value for name, value in more.items() if value}
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
    def read(cls, values: dict[str, Any], name: str) -> Contents:
        """The contents of a file that holds these values.

        Raises:
            InvalidInput: they are not those of a ledger.
        """
        for key, kind in (("table", str), ("unit", str), ("relation", str), ("limit", dict), ("entry", list)):
            if not isinstance(values.get(key), kind):
                raise InvalidInput("ledger", f"{name!r} has no {key}", "Make a ledger with dpviz ledger FILE --limit.")
        if values.get("version") != _VERSION:
            raise InvalidInput("ledger", f"is of version {show(values.get('version'))}", f"This dpviz reads version {_VERSION}.")
        relation = Neighbouring(check_choice("ledger.relation", values["relation"], [r.value for r in Neighbouring]))
        epsilon = check_range("ledger.limit.epsilon", values["limit"].get("epsilon"), 1e-12, 1e12)
        limit = Budget(epsilon, check_range("ledger.limit.delta", values["limit"].get("delta"), 1e-100, 1 - 1e-12))
        entries = tuple(Entry.read(one, f"ledger entry {index}") for index, one in enumerate(values["entry"], 1))
        return cls(_text("table", values["table"]), _text("unit", values["unit"]), relation, limit, entries)

    def total(self, *further: Entry, monitor: Monitor = ignore) -> Total:
        """The total cost of all entries and of `further` ones; `monitor` raises to cancel."""
        entries = (*self.entries, *(check_instance("entry", entry, Entry) for entry in further))
        unproved = tuple(entry for entry in entries if not entry.proved)
        conditions = tuple(dict.fromkeys(c for entry in entries for c in entry.conditions))
        supposed = conditions or any(entry.status is Status.PROVED_IF for entry in entries)
        status = Status.CLAIM if unproved else Status.PROVED_IF if supposed else Status.PROVED
        alone = {}
        for release, inside in track(monitor, {entry.release for entry in entries}):
            alone[release] = total_epsilon([release], self.limit.delta, self.relation, inside)
        parts = tuple((entry, alone[entry.release]) for entry in entries)
        return Total(self._budget(entries, monitor) if entries else None, status, unproved, conditions, parts)

    def _budget(self, entries: tuple[Entry, ...], monitor: Monitor = ignore) -> Budget | None:
        """The budget of all entries, with delta = 0 where that costs no more; None where no finite epsilon holds."""
        releases = [entry.release for entry in entries]
        epsilon = total_epsilon(releases, self.limit.delta, self.relation, monitor)
        if math.isinf(epsilon):
            return None
        pure = total_epsilon(releases, 0.0, self.relation) <= epsilon
        return Budget(max(epsilon, 1e-12), 0.0 if pure else self.limit.delta)

    def check(self, entry: Entry, relation: Neighbouring) -> None:
        """Refuses a release that would pass the limit, or that is about another relation or unit, or has no guarantee.

        Raises:
            InvalidInput: it is one of these.
        """
        check_instance("entry", entry, Entry)
        if check_instance("relation", relation, Neighbouring) is not self.relation:
            cause = f"this release is about {relation.value}, and the ledger counts {self.relation.value}"
            raise InvalidInput("ledger", cause, f"Choose a method with a guarantee for {self.relation.value}, or another ledger.")
        if self.unit != "row" and not entry.person_rows:
            cause = f"this release is about one row, and the ledger counts what one {self.unit} of {self.table!r} spends"
            raise InvalidInput("ledger", cause, "Name the column of the person, or a ledger whose unit is a row.")
        if entry.status is Status.NONE:
            cause = "this release has no privacy guarantee, which no limit allows"
            raise InvalidInput("ledger", cause, "Choose a method with a guarantee, or release it without the ledger and say so.")
        total, limit = self._budget((*self.entries, entry)), self.limit
        if total is None or total.epsilon > limit.epsilon * (1 + 1e-9):
            reached = "beyond every ε" if total is None else f"to ε = {total.epsilon:.4g}"
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
        self.path = Path(os.path.realpath(parse_path("path", path)))  # one lock for all links to it
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
        check_instance("limit", limit, Budget).need_delta(cause, "Give 1e-6.")
        counted = check_instance("relation", relation, Neighbouring)
        head = {"version": _VERSION, "table": _text("table", table), "unit": _text("unit", unit), "relation": counted.value}
        content = _toml(head | {"limit": {"epsilon": limit.epsilon, "delta": limit.delta}, "entry": []})
        Ledger.parse(content)  # numbers that no ledger may have
        _refuse_existing(parse_path("path", path))  # without the lock first, which leaves a file beside it
        target = Path(os.path.realpath(path))
        with _lock(target):
            _refuse_existing(target)
            _write(target, content, 0o666)
        return cls(target)

    @staticmethod
    def parse(content: bytes, name: str = "ledger.toml") -> Contents:
        """The contents of a ledger's file that is somewhere else.

        Raises:
            InvalidInput: it is no ledger.
        """
        return Contents.read(toml.parse(check_instance("content", content, bytes), "ledger", _FIX, _MOST_BYTES), name)

    def contents(self) -> Contents:
        """All of it, read once."""
        return self.parse(self._read(), str(self.path))

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
        written = False
        while not written:
            before = self._read()
            self.parse(before, str(self.path)).check(entry, relation)
            values = toml.parse(before, "ledger", _FIX, _MOST_BYTES)
            content = _toml(values | {"entry": [*values["entry"], entry.to_dict()]})
            with _lock(self.path):
                written = self._read() == before  # otherwise another writer was faster
                if written:
                    _write(self.path, content, stat.S_IMODE(self.path.stat().st_mode))

    def _read(self) -> bytes:
        make = f"Make {str(self.path)!r} first: dpviz ledger FILE --limit EPSILON."
        content = toml.read_bytes(self.path, "ledger", _MOST_BYTES, absent=make)
        if self.path.stat().st_nlink > 1:
            cause = f"{str(self.path)!r} has several names (hard links), which would become different ledgers"
            raise InvalidInput("ledger", cause, "Keep one of them and remove the others.")
        return content


def entry_of_budget(epsilon: float, delta: float = 0.0, **more: Any) -> Entry:
    """An entry for a release of which only (epsilon, delta) is known."""
    return Entry(Budget(epsilon, delta) if number("delta", delta) else PureEpsilon(epsilon), **more)


def _text(field: str, value: str) -> str:
    if not isinstance(value, str) or not value.strip() or len(value) > 200 or not value.isprintable():
        raise InvalidInput(field, f"must be a printable text of at most 200 characters, got {show(value)}", "Give a short name.")
    return value.strip()


def _refuse_existing(path: Path) -> None:
    if os.path.lexists(path):
        raise InvalidInput("ledger", f"{str(path)!r} is there already", "Name another file; a ledger is not overwritten.")


@contextmanager
def _lock(path: Path) -> Iterator[None]:
    """Holds the file's lock; one writer at a time, in any process."""
    lock = FileLock(path.with_name(path.name + ".lock"), timeout=_WAIT)
    try:
        held = lock.acquire()
    except Timeout as error:
        raise InvalidInput("ledger", f"another program holds it for {_WAIT:g} s", "Wait for it, or end it.") from error
    except OSError as error:
        raise InvalidInput("ledger", f"cannot be locked ({error.strerror})", "Name a file in a folder of yours.") from error
    with held:
        yield


def _toml(values: dict[str, Any]) -> bytes:
    content = tomli_w.dumps(values).encode()
    if len(content) > _MOST_BYTES:
        raise InvalidInput("ledger", f"would be larger than {_MOST_BYTES >> 20} MiB", "Enter its total into a new ledger.")
    return content


def _write(path: Path, content: bytes, mode: int) -> None:
    try:
        files.write(path, content, mode)
        if mode != 0o666:
            path.chmod(mode)  # whatever the process's umask takes away
    except OSError as error:
        raise InvalidInput("ledger", f"cannot be written ({error.strerror})", "Name a file that can be written.") from error
