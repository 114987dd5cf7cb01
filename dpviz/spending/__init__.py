"""What a table's privacy budget was spent on: the ledger."""

from dpviz.spending.ledger import Entry, Ledger, Total

__all__ = ["Entry", "Ledger", "Total"]
