"""Reports that leave the app: one self-contained HTML file or a notebook about a run, and the calls that repeat it."""

from dpviz.reporting.calls import address, python_call, shell_call
from dpviz.reporting.document import Chart, Document, Table, Text, render
from dpviz.reporting.run import report_of

__all__ = ["Chart", "Document", "Table", "Text", "address", "python_call", "render", "report_of", "shell_call"]
