"""Saved verdicts on all claims and on whole figures, in one file beside this module, which the page Claims shows.

`dpviz list claims --save` tests all claims, `python -m benchmarks.figures` computes figures. Each writes its part of the
file, which is committed.
"""

import json
import math
from collections.abc import Iterable, Mapping, Sequence
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
from dpviz.papers.figures.base import Figure
from dpviz.papers.figures.catalogue import FIGURES
from dpviz.privacy.budget import Budget, Status

FILE = Path(__file__).with_name("verdicts.json")
_DIGITS = 6  # significant ones of the numbers behind a picture
_TEXTS = ("because", "rule", "condition", "seeds")


def version() -> str:
    """Version of all code that a verdict depends on: the engine, the audits and the papers' rules."""
    return engine_version(*OF_VERDICTS)


@dataclass(frozen=True)
class FigureVerdict:
    """A statement about a figure with its verdict on the panels that were computed, taken together.

    Attributes:
        figure: id of the figure.
        text: the statement.
        panels: names of the panels.
        datasets: the datasets that they were computed on, in the same order.
    """

    figure: str
    text: str
    verdict: Verdict
    panels: tuple[str, ...]
    datasets: tuple[str, ...]


@dataclass(frozen=True, eq=False)
class Saved:
    """Verdicts that were computed before.

    Attributes:
        findings: by the claim's id; none where nothing was saved.
        figures: verdicts on whole figures.
        version: of the code that found the verdicts on claims (`version`).
        day: when these were found, None where nothing was saved.
    """

    findings: Mapping[str, Finding] = field(default_factory=dict)
    figures: tuple[FigureVerdict, ...] = ()
    version: str = ""
    day: date | None = None

    @property
    def release(self) -> str:
        """The release's number, without the hash of a checkout."""
        return self.version.partition("+")[0]


@cache
def load(path: Path = FILE) -> Saved:
    """The verdicts that were saved last, without claims and statements that no longer exist."""
    if not path.is_file():
        return Saved()
    content = json.loads(path.read_text("utf-8"))
    claims, statements = list_claims(), {(figure.id, one.text) for figure in FIGURES for one in figure.statements}
    findings = {one["id"]: _finding(one) for one in content["claims"] if one["id"] in claims}
    figures = tuple(_of_figure(one) for one in content["figures"] if (one["figure"], one["text"]) in statements)
    return Saved(findings, figures, content["version"], date.fromisoformat(content["day"]))


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


def refutations() -> dict[str, Refutation]:
    """Mechanisms whose claim an audit has refuted, by id."""
    kept = load()
    return {
        mechanism: Refutation(Budget(CLAIMED, DELTA), kept.day)
        for finding in kept.findings.values()
        if finding.claim.privacy and finding.verdict.outcome is Outcome.FAILS and kept.day is not None
        for mechanism in finding.claim.mechanisms
    }


def refutation(mechanism: Mechanism, calibration: Calibration) -> Refutation | None:
    """The audit that refutes what is claimed for a run: the audited form of the mechanism, at the audited budget; or None."""
    found, claimed = refutations().get(mechanism.id), calibration.claimed_budget
    if found is None or claimed is None or calibration.status is not Status.CLAIM or mechanism != type(mechanism)():
        return None
    audited = math.isclose(claimed.epsilon, found.budget.epsilon) and math.isclose(claimed.delta, found.budget.delta)
    return found if audited else None


def judge_whole(figure: Figure, tables: Mapping[str, pd.DataFrame]) -> list[FigureVerdict]:
    """The verdicts on a figure, by the statements' own scope ("on most datasets"); none where no panel of it was computed.

    Args:
        tables: "figure-panel" to the sweep of the panel. Panels that stand elsewhere in the paper are left out.
    """
    names = [name for name, panel in figure.panels.items() if not panel.instead and f"{figure.id}-{name}" in tables]
    if not names:
        return []
    parts = [tables[f"{figure.id}-{name}"] for name in names]
    on = tuple(str(part["dataset"].iloc[0]) for part in parts)
    judged = figure.judge(pd.concat(parts, ignore_index=True))
    return [FigureVerdict(figure.id, one.text, verdict, tuple(names), on) for one, verdict in judged]


def merge(verdicts: Sequence[FigureVerdict], saved: Sequence[FigureVerdict]) -> list[FigureVerdict]:
    """New verdicts instead of those saved ones that are of no more panels; the others as they are, in the figures' order."""
    new, old = ({(one.figure, one.text): one for one in some} for some in (verdicts, saved))
    kept = new | {key: one for key, one in old.items() if key not in new or len(one.panels) > len(new[key].panels)}
    return [kept[key] for figure in FIGURES for one in figure.statements if (key := (figure.id, one.text)) in kept]


def save_claims(findings: Iterable[Finding], path: Path = FILE, day: date | None = None) -> None:
    """Writes findings with the version and the date, today by default.

    Raises:
        OSError: the file cannot be written.
    """
    head = {"version": version(), "day": (day or date.today()).isoformat()}
    _write(path, head | {"claims": [_entry(finding) for finding in findings]})


def save_figures(verdicts: Iterable[FigureVerdict], path: Path = FILE) -> None:
    """Writes verdicts on whole figures, and leaves those on claims as they are.

    Raises:
        OSError: the file cannot be written.
    """
    entries = [{**vars(one), "verdict": _values(one.verdict)} for one in verdicts]
    _write(path, {"figures": entries})


def _write(path: Path, part: dict[str, Any]) -> None:
    """Replaces a part of the file; entries stand one a line, for readable diffs."""
    before = json.loads(path.read_text("utf-8")) if path.is_file() else {}
    content = {"version": "", "day": "1970-01-01", "claims": [], "figures": []} | before | part
    lists = [
        f'"{name}": [\n' + ",\n".join(json.dumps(one, ensure_ascii=False) for one in content.pop(name)) + "\n]"
        for name in ("claims", "figures")
    ]
    files.write(path, f"{json.dumps(content)[:-1]}, {', '.join(lists)}}}\n".encode())
    load.cache_clear()


def _entry(finding: Finding) -> dict[str, Any]:
    rest = {"full": finding.full, "seed": finding.seed, "seconds": round(finding.seconds, 1), "engine": finding.engine}
    return {"id": finding.claim.id} | _values(finding.verdict) | rest


def _values(verdict: Verdict) -> dict[str, Any]:
    return {
        "outcome": verdict.outcome.name,
        **{name: getattr(verdict, name) for name in _TEXTS},
        "numbers": [list(pair) for pair in verdict.numbers],
        "picture": asdict(verdict.picture),
        "table": {str(name): [_rounded(v) for v in column] for name, column in verdict.table.items()},
    }


def _verdict(entry: Mapping[str, Any]) -> Verdict:
    return Verdict(
        outcome=Outcome[entry["outcome"]],
        numbers=tuple((name, value) for name, value in entry["numbers"]),
        picture=Picture(**entry["picture"]),
        table=pd.DataFrame(entry["table"]),
        **{name: entry[name] for name in _TEXTS},
    )


def _of_figure(entry: Mapping[str, Any]) -> FigureVerdict:
    lists = {name: tuple(entry[name]) for name in ("panels", "datasets")}
    return FigureVerdict(entry["figure"], entry["text"], _verdict(entry["verdict"]), **lists)


def _finding(entry: Mapping[str, Any]) -> Finding:
    claim, full, seed = list_claims()[entry["id"]], entry["full"], entry["seed"]
    return Finding(claim, _verdict(entry), command(claim.id, full, seed), full, seed, entry["seconds"], entry["engine"])


def _rounded(value: Any) -> Any:
    """A number with few digits, None where it is none; a text as it is."""
    if isinstance(value, str):
        return value
    number = float(value)
    return None if math.isnan(number) else float(f"{number:.{_DIGITS}g}")
