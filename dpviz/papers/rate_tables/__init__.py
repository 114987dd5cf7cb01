"""The rows of the papers' tables, as printed. See `dpviz.papers.rates` for what the numbers mean."""

from dpviz.papers.rate_tables.dbdp import DBDP
from dpviz.papers.rate_tables.formulas import NOT_PROVED
from dpviz.papers.rate_tables.input import INPUT
from dpviz.papers.rate_tables.pidp import PIDP
from dpviz.papers.rates import Row

ROWS: dict[str, tuple[Row, ...]] = {"dbdp": DBDP, "input": INPUT, "pidp": PIDP}
