"""All sets there are, here or not yet: what they are, where they come from, and how to get them."""

from collections.abc import Callable
from dataclasses import dataclass

from dpviz.datasets.sources import folder, remote
from dpviz.datasets.sources.bundled import BUNDLED
from dpviz.datasets.sources.synthetic import CENSUS_DEFAULT


@dataclass(frozen=True)
class Card:
    """One set.

    Attributes:
        name: catalogue name; None where the person must bring the file.
        title, variant, label, licence, source: in words.
        rows: number of rows, None where it is not known before reading.
        state: "here", "download" or "file".
        megabytes: size of the download, roughly.
        steps: how to get it, where the person must bring it.
    """

    name: str | None
    title: str
    variant: str
    label: str
    licence: str
    source: str
    rows: int | None
    state: str
    megabytes: int = 0
    steps: tuple[str, ...] = ()


_UPLOAD: str = "Upload the file below, or put it into the data folder"

_FILES = (
    Card(
        None,
        "Bank Marketing (additional)",
        "bank-additional-full, 41,188 rows",
        "y: yes or no",
        "CC BY 4.0",
        "UCI Machine Learning Repository, Moro, Cortez, Rita 2014",
        41_188,
        "file",
        steps=(
            "Download bank-additional.zip from the page of Bank Marketing at archive.ics.uci.edu (dataset 222).",
            "Unpack it; the file is bank-additional-full.csv, separated by semicolons.",
            f"{_UPLOAD}; the label is y, and yes counts as +1. Leave out duration to predict before the call.",
        ),
    ),
    *(
        Card(
            None,
            f"IPUMS-{code}",
            f"extract of the {country} census",
            "total income above a value of your choice",
            "free for research after registration; the rows must not be passed on",
            f"IPUMS {where}",
            None,
            "file",
            steps=(
                f"Register at {site} and make an extract of one {country} sample with age, sex, marital status, education, "
                "employment, hours worked, size of the household and total income.",
                "Choose CSV as the format. Take a sample of at most 200,000 rows (customise sample sizes).",
                "Recode the codes that stand for unknown income (such as 9999999) to empty cells.",
                f"{_UPLOAD}; the label is the income column, and values above its published median count as +1.",
            ),
        )
        for code, country, where, site in (
            ("BR", "Brazilian", "International", "international.ipums.org"),
            ("US", "US", "USA", "usa.ipums.org"),
        )
    ),
)


def cards() -> list[Card]:
    """All sets: bundled, synthetic, to download, in the data folder, and those that a person must bring."""
    made: list[Card] = []
    for name, b in BUNDLED.items():
        title = b.source.partition(", UCI")[0]
        label, where = " or ".join(b.label_names), "UCI Machine Learning Repository"
        made.append(Card(name, title, "as shipped with scikit-learn", label, "CC BY 4.0", where, b.rows, "here"))
    none = "none needed: no real people"
    made += [
        Card("teaching", "Teaching", "400 points in the plane", "blue or orange", none, "made by dpviz", 400, "here"),
        Card(
            f"census-{CENSUS_DEFAULT}",
            "Synthetic census",
            "any size from 100 to 1,000,000 (census-N)",
            "income above the median",
            none,
            "made by dpviz",
            CENSUS_DEFAULT,
            "here",
        ),
    ]
    for name, r in remote.REMOTE.items():
        state = "here" if remote.downloaded(name) else "download"
        source = remote.source_of(name) or r.source.split("; ")[1]
        label = " or ".join(r.label_names)
        made.append(Card(name, r.title, r.variant, label, r.licence, source, r.rows, state, r.megabytes))
    for name in (name for name in folder.names() if not remote.read_from(name)):
        made.append(
            Card(name, name.removeprefix(folder.PREFIX), "your file", "see the preview", "yours", "the data folder", None, "here")
        )
    return [*made, *_FILES]


def download(name: str, progress: Callable[[int], None] = lambda size: None) -> None:
    """Downloads a set; see `dpviz.datasets.sources.remote.download`."""
    remote.download(name, progress)
