"""The papers: one entry each, which claims, figures and tables of rates refer to."""

from dataclasses import dataclass

from dpviz.common import toml


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


PAPERS = {one["id"]: Paper(**one) for one in toml.declarations(__file__)["paper"]}
