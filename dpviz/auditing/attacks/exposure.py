"""Exposed rows beside what else is known of them: influence, leverage, individual epsilon and margin, and who they are.

Everything here is computed from private rows without noise; no epsilon covers it.
"""

import numpy as np
import pandas as pd
from scipy.special import ndtri

from dpviz.auditing.attacks.attacked import AttackedRun
from dpviz.auditing.attacks.base import Floats
from dpviz.auditing.attacks.judging import CONFIDENCE
from dpviz.experiments.run.run import run
from dpviz.experiments.run.setup import setup_for
from dpviz.experiments.studies.influences import influence_of
from dpviz.experiments.studies.inspected import unusual_columns

#: column -> name for people
FACTS = {
    "influence": "influence",
    "leverage": "leverage",
    "individual_epsilon": "individual ε",
    "margin": "margin without privacy",
}


def exposure(found: AttackedRun) -> pd.DataFrame:
    """`AttackedRun.rows` with the columns of `FACTS`: influence on the non-private model, and individual epsilon of one run.

    Individual epsilon is NaN where the mechanism has none.
    """
    result = run(found.spec)
    known = influence_of(found.spec).frame()
    individual = result.individual
    facts = pd.DataFrame(
        {
            "influence": known["newton_step"].to_numpy(),
            "leverage": known["leverage"].to_numpy(),
            "individual_epsilon": np.nan if individual is None else individual.epsilon.mean(axis=0),
            "margin": result.instances["margin_non_private"].to_numpy(),
        },
        index=result.instances.index,
    )
    return found.rows.join(facts)


def rank_correlation(fact: Floats, separation: Floats) -> tuple[float, float, float]:
    """Spearman's correlation of two columns with its 95 % limits.

    By Fisher's transformation with the variance 1.06/(n - 3) of Fieller, Hartley, Pearson 1957.
    """
    from scipy.stats import spearmanr  # a fifth of a second, which the first page does not need

    r = float(spearmanr(fact, separation).statistic)
    half = ndtri(0.5 + CONFIDENCE / 2) * np.sqrt(1.06 / (len(fact) - 3))
    at = np.arctanh(np.clip(r, -1 + 1e-12, 1 - 1e-12))
    return r, float(np.tanh(at - half)), float(np.tanh(at + half))


def associations(exposed: pd.DataFrame) -> pd.DataFrame:
    """Rank correlation of each fact with how far a row's signals lie apart: does it predict whom attacks find?

    Returns:
        Columns fact, correlation, low, high (`rank_correlation`), rows. A fact without values is left out.
    """
    rows = []
    for column in FACTS:
        there = exposed[[column, "separation"]].replace([np.inf, -np.inf], np.nan).dropna()
        if len(there) < 10 or there[column].nunique() < 2:
            continue
        found = rank_correlation(there[column].to_numpy(float), there["separation"].to_numpy(float))
        rows.append((column, *found, len(there)))
    return pd.DataFrame(rows, columns=["fact", "correlation", "low", "high", "rows"])


def describe_row(found: AttackedRun, row_id: int) -> str:
    """A row in words: its label, and the columns in which it differs most from a typical one."""
    label = setup_for(found.spec).dataset.frame.iloc[row_id, -1]
    columns = unusual_columns(found.spec, row_id)
    unlike = "; ".join(f"{name} {_short(value)} (typical {_short(typical)})" for name, value, typical in columns)
    return f"label {label}; {unlike}" if unlike else f"label {label}"


def _short(value: object) -> str:
    return f"{float(value):.3g}" if isinstance(value, float | np.floating) else str(value)
