"""A place that datasets come from. Every module of this folder that has a `SOURCE` is one; nothing else lists them."""

from collections.abc import Callable, Hashable, Sequence
from dataclasses import dataclass

from dpviz.datasets.base import Dataset


@dataclass(frozen=True)
class Source:
    """A source of datasets, as the catalogue uses it.

    Attributes:
        place: where its names stand in the list of datasets, from low to high.
        owns: whether a name belongs here, whether there is such a dataset or not.
        load: the dataset of a name, with or without the constant feature.
        names: names that are listed now.
        canonical: the one spelling of a name that belongs here, for a number of rows where `has_size`; raises `InvalidInput`
            where there is no such dataset. None: names that are listed are their own spelling.
        stamp: a value that changes when the rows behind a name change.
        rows: number of rows where it is known without loading.
        sized: whether its datasets come in any number of rows.
        quick: whether they are made without reading a file.
        only_here: whether their rows are in the memory of this process only.
        cached: whether the catalogue keeps what was loaded; False for sources that keep it themselves.
    """

    place: int
    owns: Callable[[str], bool]
    load: Callable[[str, bool], Dataset]
    names: Callable[[], Sequence[str]] = tuple
    canonical: Callable[[str, int | None], str] | None = None
    stamp: Callable[[str], Hashable] = lambda name: None
    rows: Callable[[str], int | None] = lambda name: None
    sized: bool = False
    quick: bool = False
    only_here: bool = False
    cached: bool = True
