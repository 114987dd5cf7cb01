"""The papers: one entry each, which claims, figures and tables of rates refer to."""

import tomllib
from dataclasses import dataclass
from pathlib import Path


@dataclass(frozen=True)
class Paper:
    """A publication.

    Attributes:
        id: short name, used in addresses.
        authors, title, where: of the publication; `where` is "" for a manuscript.
        name: what it is called here, with its method.
    """

    id: str
    authors: str
    title: str
    name: str
    where: str = ""

    @property
    def citation(self) -> str:
        """Authors, title and place in one line."""
        return f'{self.authors}, "{self.title}"' + (f", {self.where}" if self.where else "")


_FILE = Path(__file__).with_suffix(".toml")
PAPERS = {one["id"]: Paper(**one) for one in tomllib.loads(_FILE.read_text(encoding="utf-8"))["paper"]}
