"""Tables of the same form as published files that are not shipped: many rows, gaps, identifiers, no header."""

import numpy as np

BANK = ["age", "job", "marital", "education", "default", "balance", "housing", "loan", "contact", "day", "month", "duration"]
BANK += ["campaign", "pdays", "previous", "poutcome", "y"]
_JOBS = ["admin.", "blue-collar", "management", "retired", "services", "student", "technician", "unemployed", "unknown"]
_MONTHS = ["jan", "feb", "mar", "apr", "may", "jun", "jul", "aug", "sep", "oct", "nov", "dec"]


def _quoted(values: np.ndarray) -> list[str]:
    return [f'"{v}"' for v in values]


def bank_full_with_id(rows: int = 45_211, gaps: int = 9_333) -> bytes:
    """bank-full.csv as some copies have it: semicolons, quoted texts, 16 columns, and an ID column with gaps."""
    rng = np.random.default_rng(0)
    duration = rng.gamma(1.0, 258.0, rows).astype(int)
    balance = (rng.standard_t(3, rows) * 1200 + 1300).astype(int)
    poutcome = rng.choice(["unknown", "failure", "other", "success"], rows, p=[0.82, 0.11, 0.04, 0.03])
    housing = rng.choice(["yes", "no"], rows)
    score = -3.5 + 0.0041 * np.minimum(duration, 1200) + 2.4 * (poutcome == "success") - 0.6 * (housing == "yes")
    y = rng.random(rows) < 1 / (1 + np.exp(-score))
    ids = [str(k) for k in rng.permutation(np.arange(1, rows + 1))]
    for k in rng.choice(rows, gaps, replace=False):
        ids[k] = ""
    columns = [
        ids,
        [str(v) for v in rng.integers(18, 95, rows)],
        _quoted(rng.choice(_JOBS, rows)),
        _quoted(rng.choice(["married", "single", "divorced"], rows)),
        _quoted(rng.choice(["primary", "secondary", "tertiary", "unknown"], rows)),
        _quoted(rng.choice(["yes", "no"], rows, p=[0.02, 0.98])),
        [str(v) for v in balance],
        _quoted(housing),
        _quoted(rng.choice(["yes", "no"], rows, p=[0.16, 0.84])),
        _quoted(rng.choice(["cellular", "telephone", "unknown"], rows)),
        [str(v) for v in rng.integers(1, 32, rows)],
        _quoted(rng.choice(_MONTHS, rows)),
        [str(v) for v in duration],
        [str(v) for v in rng.geometric(0.36, rows)],
        [str(v) for v in np.where(poutcome == "unknown", -1, rng.integers(1, 400, rows))],
        [str(v) for v in np.where(poutcome == "unknown", 0, rng.integers(1, 10, rows))],
        _quoted(poutcome),
        _quoted(np.where(y, "yes", "no")),
    ]
    header = ";".join(f'"{n}"' for n in ["ID", *BANK])
    return "\n".join([header, *map(";".join, zip(*columns, strict=True))]).encode()


def numbers_with_labels(rows: int = 38_000, columns: int = 53, *, gap: str = " ") -> bytes:
    """BANK.dat or IPUMS-BR.dat as their authors prepared them: numbers in white space, the last one the label, -1 or 1."""
    rng = np.random.default_rng(1)
    x = np.round(rng.random((rows, columns)), 4)
    x[:, 1::2] = (x[:, 1::2] > 0.8).astype(float)
    y = np.where(x @ np.linspace(-1, 1, columns) + rng.normal(0, 0.5, rows) > 0, 1, -1)
    return "\n".join(gap.join([*(f"{v:g}" for v in row), str(label)]) for row, label in zip(x, y, strict=True)).encode()


def breast_cancer_wisconsin(rows: int = 699) -> bytes:
    """breast-cancer-wisconsin.data: no header, an ID first, nine marks from 1 to 10 with "?" for gaps, and the label 2 or 4."""
    rng = np.random.default_rng(2)
    bad = rng.random(rows) < 0.345
    marks = np.clip(rng.poisson(np.where(bad, 6.0, 1.0)[:, None], (rows, 9)) + 1, 1, 10).astype(str).astype(object)
    marks[rng.choice(rows, 16, replace=False), 5] = "?"
    ids = rng.integers(61_634, 13_454_352, rows)
    return "\n".join(f"{i},{','.join(m)},{4 if b else 2}" for i, m, b in zip(ids, marks, bad, strict=True)).encode()
