"""All sets there are, here or not yet: what they are, where they come from, and how to get them."""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from dpviz.common import toml
from dpviz.datasets.sources import folder, remote
from dpviz.datasets.sources.bundled import BUNDLED


@dataclass(frozen=True, kw_only=True)
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

    title: str
    variant: str
    label: str
    licence: str
    source: str
    state: str
    name: str | None = None
    rows: int | None = None
    megabytes: int = 0
    steps: Sequence[str] = ()


def cards() -> list[Card]:
    """All sets: bundled, synthetic, to download, in the data folder, and those that a person must bring."""
    made: list[Card] = []
    shared: dict[str, Any]
    for name, b in BUNDLED.items():
        label, where = " or ".join(b.label_names), "UCI Machine Learning Repository"
        shared = {"licence": "CC BY 4.0", "source": where, "state": "here"}
        made.append(Card(name=name, title=b.title, variant="as shipped with scikit-learn", label=label, rows=b.rows, **shared))
    known = [Card(**{"state": "file"} | words) for words in toml.declarations(__file__)["card"]]
    made += [card for card in known if card.state == "here"]
    for name, r in remote.REMOTE.items():
        shared = {"licence": r.licence, "source": remote.source_of(name) or r.source.split("; ")[1]}
        shared |= {"state": "here" if remote.is_downloaded(name) else "download", "label": " or ".join(r.label_names)}
        made.append(Card(name=name, title=r.title, variant=r.variant, rows=r.rows, megabytes=r.megabytes, **shared))
    shared = {"variant": "your file", "label": "see the preview", "state": "here"}
    shared |= {"licence": "yours", "source": "the data folder"}
    own = [name for name in folder.names() if not remote.read_from(name)]
    made += [Card(name=name, title=name.removeprefix(folder.PREFIX), **shared) for name in own]
    return [*made, *(card for card in known if card.state == "file")]
