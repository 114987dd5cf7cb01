"""Audits of all mechanisms: every one on its worst pair at one budget, as rows of a table."""

import math
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import asdict, dataclass

import pandas as pd

from dpviz.auditing.game import audit
from dpviz.auditing.pairs import worst_case
from dpviz.auditing.result import EXCEEDED
from dpviz.common.progress import Monitor, ignore, track
from dpviz.common.validate import InvalidInput
from dpviz.mechanisms import Mechanism, list_mechanisms, protection
from dpviz.models import Model
from dpviz.privacy.budget import Budget

RUNS, CONFIDENCE = 400, 0.99
#: rows of the synthetic pairs; noise that is too small by an order in n shows where n is large
ROWS, UNPROVED_ROWS = 60, 1000
LEAST_LAM = 0.01  # with less regularisation sixty rows leave the optimum far out


@dataclass(frozen=True)
class Surveyed:
    """One mechanism's audit.

    Attributes:
        mechanism: id.
        label: for people.
        claimed, proved: epsilon; NaN where none is.
        audited: lower bound on epsilon, free of assumptions; NaN where the mechanism refuses.
        gaussian: lower bound under the assumption of a Gaussian trade-off; NaN where it may not be used.
        verdict: as `AuditResult.verdict`, or why there is no audit.
        by: what contradicts the claim, "" if nothing does.
    """

    mechanism: str
    label: str
    claimed: float = math.nan
    proved: float = math.nan
    audited: float = math.nan
    gaussian: float = math.nan
    verdict: str = ""
    by: str = ""

    @property
    def exceeded(self) -> bool:
        """True where the audit contradicts the claim."""
        return self.verdict == EXCEEDED


def survey(
    model: Model,
    budget: Budget,
    *,
    mechanisms: Mapping[str, type[Mechanism]] | None = None,
    runs: int = RUNS,
    seed: int = 0,
    lam: float = LEAST_LAM,
    monitor: Monitor = ignore,
) -> Iterator[Surveyed]:
    """Audits mechanisms with default knobs on their worst pairs, one after the other.

    Args:
        mechanisms: classes by id, all by default.
        runs: models trained on each dataset.
        lam: regularisation, at least `LEAST_LAM`.
    """
    for cls, inside in track(monitor, (list_mechanisms() if mechanisms is None else mechanisms).values()):
        try:
            yield _audited(cls(), model, budget, runs, seed, max(lam, LEAST_LAM), inside)
        except (InvalidInput, FloatingPointError) as error:
            yield Surveyed(cls.id, cls.label, verdict=str(error).split("\n")[0])


def _audited(mechanism: Mechanism, model: Model, budget: Budget, runs: int, seed: int, lam: float, monitor: Monitor) -> Surveyed:
    pair = worst_case(mechanism, model, budget, n=ROWS, d=2, lam=lam)  # refuses what the mechanism does
    public = protection.calibrate(mechanism, pair.first.setting, budget)
    if public.claimed_budget is not None and public.proved_budget is None:
        pair = worst_case(mechanism, model, budget, n=UNPROVED_ROWS, d=2, lam=lam)
    result = audit(mechanism, pair.first, pair.second, budget, runs, seed, confidence=CONFIDENCE, monitor=monitor)
    cal = result.calibration
    gaussian = result.gaussian_epsilon_lower if result.noise is None else result.measured_epsilon_lower
    return Surveyed(
        mechanism.id,
        mechanism.label,
        cal.claimed_budget.epsilon if cal.claimed_budget else math.nan,
        cal.proved_budget.epsilon if cal.proved_budget else math.nan,
        result.epsilon_lower,
        math.nan if gaussian is None else gaussian,
        result.verdict,
        result.evidence_against(cal.claimed_budget) or result.evidence_against(cal.proved_budget),
    )


def table(rows: Iterable[Surveyed]) -> pd.DataFrame:
    """One row per mechanism, with the columns of `Surveyed`."""
    return pd.DataFrame([asdict(row) for row in rows], columns=list(Surveyed.__dataclass_fields__))
