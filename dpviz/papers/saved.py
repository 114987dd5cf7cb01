"""Saved verdicts: what the tests of all claims found, with the date and the version of the code that found it.

`dpviz claims --save` tests all claims and writes the file, which lies beside this module and is committed. The page Paper
claims shows it at once. A verdict is of this very version where `Saved.current` is true.
"""

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
from dpviz.mechanisms import Calibration, Mechanism
from dpviz.papers.claims import Finding, Outcome, Picture, Verdict, command, list_claims
from dpviz.papers.claims.audits import CLAIMED, DELTA
from dpviz.privacy.budget import Budget, Status

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
        """True where the verdicts were computed by this version of the code."""
        return self.version == version()


@cache
def load(path: Path = FILE) -> Saved:
    """The verdicts that were saved last, without claims that no longer exist."""
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


@dataclass(frozen=True)
class Refutation:
    """An audit that found a loss above what a paper claims, at one budget.

    Attributes:
        budget: the (epsilon, delta) at which it was found; nothing is said about any other.
        day: when it was found.
    """

    budget: Budget
    day: date

    @property
    def words(self) -> str:
        """The refuted claim, in words."""
        return (
            f"an audit on {self.day} refuted the claim of {self.budget}, with the constants that the paper leaves open set to 1; "
            "at other ε nothing is said"
        )


def refuted() -> dict[str, Refutation]:
    """Mechanisms whose claim an audit has refuted, by id."""
    kept = load()
    found: dict[str, Refutation] = {}
    for finding in kept.findings.values():
        if finding.claim.privacy and finding.verdict.outcome is Outcome.FAILS and kept.day is not None:
            found |= dict.fromkeys(finding.claim.mechanisms, Refutation(Budget(CLAIMED, DELTA), kept.day))
    return found


def refutation(mechanism: Mechanism, calibration: Calibration) -> Refutation | None:
    """The audit that refutes what is claimed for a run: the audited form of the mechanism, at the audited budget; or None."""
    found, claimed = refuted().get(mechanism.id), calibration.claimed_budget
    if found is None or claimed is None or calibration.status is not Status.CLAIM or mechanism != type(mechanism)():
        return None
    audited = math.isclose(claimed.epsilon, found.budget.epsilon) and math.isclose(claimed.delta, found.budget.delta)
    return found if audited else None


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
