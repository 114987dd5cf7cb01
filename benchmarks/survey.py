"""Claimed, proved and audited ε of every method, each attacked on its worst pair at ε = 1, as a table.

python -m benchmarks.survey

Writes docs/data/survey.csv, from which the site makes its figure; it takes a minute or two.
"""

from benchmarks.defaults import FILE
from dpviz.auditing.survey import survey, table
from dpviz.models import get_model
from dpviz.privacy.budget import Budget


def main() -> None:
    """Audits all methods."""
    rows = survey(get_model("logistic"), Budget(1.0, 1e-5))
    table(rows).to_csv(FILE.with_name("survey.csv"), index=False, float_format="%.4g")


if __name__ == "__main__":
    main()
