"""Datasets by name: rows in the unit ball, labels in {-1, +1}."""

from dpviz.datasets.base import Dataset, Split
from dpviz.datasets.catalogue import canonical_name, dataset, list_datasets, load_dataset, rows_of
