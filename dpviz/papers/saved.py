"""Saved verdicts: what the tests of all claims found, with the date and the version of the code that found it.

`dpviz claims --save` tests all claims and writes the file, which lies beside this module and is committed. The page Paper
claims shows it at once. A verdict is of this very version where `Saved.current` is true.
"""

from __future__ import annotations

import json
import math
from collections.abc import Iterable, Mapping
from dataclasses import asdict, dataclass, field
from datetime import date
from functools import cache
from pathlib import Path
from typing import Any

import pandas as pd

from dpviz.common import files
from dpviz.common.version import OF_VERDICTS, engine_version
from dpviz.papers.claims import Finding, Outcome, Picture, Verdict, command, list_claims
from dpviz.papers.claims.audits import CLAIMED, DELTA
from dpviz.privacy.budget import Budget

FILE = Path(__file__).with_name("verdicts.json")
_DIGITS = 6  # significant ones of the numbers behind a picture
_TEXTS = ("because", "rule", "condition", "seeds")


def version() -> str:
    """Version of all code that a verdict depends on: the engine, the audits and the papers' rules."""
    return engine_version(*OF_VERDICTS)


@dataclass(frozen=True, eq=False)
class Saved:
    """Verdicts that were computed before.

    Attributes:
        findings: by the claim's id; none where nothing was saved.
        version: of the code that found them (`version`).
        day: when they were found, None where nothing was saved.
    """

    findings: Mapping[str, Finding] = field(default_factory=dict)
    version: str = ""
    day: date | None = None

    @property
    def release(self) -> str:
        """The release's number, without the hash of a checkout."""
        return self.version.partition("+")[0]

    @property
    def current(self) -> bool:
        """Whether they were found by this very code."""
        return self.version == version()


@cache
def load(path: Path = FILE) -> Saved:
    """What was saved last; claims that are no longer there are left out."""
    if not path.is_file():
        return Saved()
    content = json.loads(path.read_text("utf-8"))
    claims = list_claims()
    entries: list[dict[str, Any]] = [entry for entry in content["claims"] if entry["id"] in claims]
    return Saved(
        {entry["id"]: _finding(entry, content["engine"]) for entry in entries},
        content["version"],
        date.fromisoformat(content["day"]),
    )


def refuted() -> dict[str, tuple[Budget, date]]:
    """Mechanisms whose claimed privacy an audit has refuted: id -> the budget claimed, and when that was found."""
    kept = load()
    refuted_methods: dict[str, tuple[Budget, date]] = {}
    for finding in kept.findings.values():
        if finding.claim.privacy and finding.verdict.outcome is Outcome.FAILS and kept.day is not None:
            refuted_methods |= dict.fromkeys(finding.claim.mechanisms, (Budget(CLAIMED, DELTA), kept.day))
    return refuted_methods


def save(findings: Iterable[Finding], path: Path = FILE, day: date | None = None) -> None:
    """Writes findings with the version and the date.

    Args:
        findings: of one engine, in the order of the file.
        day: today by default.

    Raises:
        OSError: the file cannot be written.
    """
    head = {"version": version(), "engine": engine_version(), "day": (day or date.today()).isoformat()}
    lines = ",\n".join(json.dumps(_entry(finding), ensure_ascii=False) for finding in findings)  # one a line, for readable diffs
    files.write(path, f'{json.dumps(head)[:-1]}, "claims": [\n{lines}\n]}}\n'.encode())
    load.cache_clear()


def _entry(finding: Finding) -> dict[str, Any]:
    verdict = finding.verdict
    table = {str(name): [_rounded(v) for v in column] for name, column in verdict.table.items()}
    return {
        "id": finding.claim.id,
        "outcome": verdict.outcome.name,
        **{name: getattr(verdict, name) for name in _TEXTS},
        "numbers": [list(pair) for pair in verdict.numbers],
        "picture": asdict(verdict.picture),
        "table": table,
        "full": finding.full,
        "seed": finding.seed,
        "seconds": round(finding.seconds, 1),
    }


def _finding(entry: Mapping[str, Any], engine: str) -> Finding:
    verdict = Verdict(
        outcome=Outcome[entry["outcome"]],
        numbers=tuple((name, value) for name, value in entry["numbers"]),
        picture=Picture(**entry["picture"]),
        table=pd.DataFrame(entry["table"]),
        **{name: entry[name] for name in _TEXTS},
    )
    claim, full, seed = list_claims()[entry["id"]], entry["full"], entry["seed"]
    return Finding(claim, verdict, command(claim.id, full, seed), full, seed, entry["seconds"], engine)


def _rounded(value: Any) -> Any:
    """A number with few digits, None where it is none; a text as it is."""
    if isinstance(value, str):
        return value
    number = float(value)
    return None if math.isnan(number) else float(f"{number:.{_DIGITS}g}")
