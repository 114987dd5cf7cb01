"""Limits on the size of a person's own data; an environment variable can set each."""

from __future__ import annotations

import os
from dataclasses import dataclass, fields, replace

from dpviz.common.validate import InvalidInput, check_integer, number_from_text

#: set to 1 for a public server: no uploads, no downloads, no data folder, and the limits of `DemoLimits`
DEMO = "DPVIZ_DEMO"


def demo() -> bool:
    """True where this process serves a demonstration, which takes no data of anyone and fetches none."""
    return os.environ.get(DEMO, "") not in ("", "0")


def refuse_in_demo(field: str, what: str) -> None:
    """Refuses what a demonstration does not do.

    Raises:
        InvalidInput: this process serves a demonstration.
    """
    if demo():
        raise InvalidInput(field, f"this server is a demonstration: {what}", "Install dpviz on your own machine for that.")


@dataclass(frozen=True)
class DemoLimits:
    """Limits of a demonstration.

    Attributes:
        rows: of a dataset.
        seeds: noise draws of a run.
        trainings: models that an audit trains on each dataset.
        shadows: models that an attacker of ordinary rows trains.
        megabytes: what is kept of the computations of all sessions together.
    """

    rows: int = 20_000
    seeds: int = 30
    trainings: int = 1_000
    shadows: int = 256
    megabytes: int = 500


DEMO_LIMITS = DemoLimits()


def most_in_demo(name: str) -> float:
    """A limit of `DemoLimits`; infinite where this process serves no demonstration."""
    return float(getattr(DEMO_LIMITS, name)) if demo() else float("inf")


@dataclass(frozen=True)
class Limits:
    """Limits on a table from outside.

    Attributes:
        megabytes: size of the file, unpacked.
        rows: data rows.
        columns: columns of the table.
        features: columns after one-hot encoding.
        memory_megabytes: memory (address space) of the process that reads a file.
        seconds: time that reading may take, waiting for other files not counted.
        uploads_megabytes: all uploads of all sessions together: tables in memory, and what training on them takes, estimated.
        fetch_seconds: time that a download may take.
    """

    megabytes: int = 50
    rows: int = 200_000
    columns: int = 2_000
    features: int = 500
    memory_megabytes: int = 3_000
    seconds: int = 60
    uploads_megabytes: int = 4_000
    fetch_seconds: int = 900

    @classmethod
    def from_environment(cls) -> Limits:
        """The defaults, changed by DPVIZ_MAX_MEGABYTES, DPVIZ_MAX_ROWS and so on.

        Raises:
            InvalidInput: a variable is not a whole number of at least 1.
        """
        values = {}
        for f in fields(cls):
            variable = f"DPVIZ_MAX_{f.name.upper()}"
            text = os.environ.get(variable)
            if text is not None:
                number = number_from_text(variable, text, fix="Correct or unset the variable.")
                values[f.name] = check_integer(variable, number, 1, 10**9)
        return cls(**values)

    def check_bytes(self, size: int, *, more: bool = False) -> None:
        """
        Raises:
            InvalidInput: a file of `size` bytes, or of `more`, is too large.
        """
        if size > self.megabytes * 1_000_000:
            cause = f"is {'more than ' if more else ''}{size / 1e6:,.1f} MB large"
            fix: str = f"The limit is {self.megabytes} MB (DPVIZ_MAX_MEGABYTES). Take a sample of the rows, or fewer columns."
            raise InvalidInput("file", cause, fix)

    def check_columns(self, count: int) -> None:
        """
        Raises:
            InvalidInput: a table has too many columns.
        """
        if count > self.columns:
            fix: str = f"The limit is {self.columns:,} (DPVIZ_MAX_COLUMNS). Leave some out."
            raise InvalidInput("file", f"has {count:,} columns", fix)

    def check_rows(self, count: int) -> None:
        """
        Raises:
            InvalidInput: a table has too many rows.
        """
        if count > self.rows:
            cause = f"has more than {self.rows:,} rows"
            raise InvalidInput("file", cause, "Take a sample of the rows, or raise DPVIZ_MAX_ROWS.")

    def widen(self) -> Limits:
        """Limits for a file that the operator named or put into the data folder: as large as KDD Cup 1999.

        A limit that the environment sets stays.
        """
        wider = {"megabytes": 200, "rows": 600_000, "seconds": 600}
        free = {name: value for name, value in wider.items() if f"DPVIZ_MAX_{name.upper()}" not in os.environ}
        return replace(self, **{name: max(value, getattr(self, name)) for name, value in free.items()})
