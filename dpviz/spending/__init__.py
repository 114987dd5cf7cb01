"""The ledger of a table's privacy budget."""

from dpviz.spending.ledger import Entry, Ledger, Total

__all__ = ["Entry", "Ledger", "Total"]
