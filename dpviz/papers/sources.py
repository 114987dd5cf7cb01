"""The papers: one entry each, which claims, figures and tables of rates refer to."""

from dataclasses import dataclass


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

    @property
    def short(self) -> str:
        """First author and title."""
        return f"{self.authors.split(',')[0]} et al.: {self.title}"


PAPERS = {
    paper.id: paper
    for paper in (
        Paper(
            "kang-pidp",
            "Kang, Li, Liu, Wang",
            "Data Heterogeneity Differential Privacy: From Theory to Algorithm",
            "Kang et al., Data Heterogeneity (PIDP)",
        ),
        Paper(
            "kang-dbdp",
            "Kang, Liu, Ding, Liu, Tong, Wang",
            "Differentially Private ERM Based on Data Perturbation",
            "Kang et al., Data Perturbation (DBDP)",
        ),
        Paper(
            "kang-ip",
            "Kang, Liu, Niu, Tong, Zhang, Wang",
            "Input Perturbation: A New Paradigm between Central and Local Differential Privacy",
            "Kang et al., Input Perturbation",
        ),
        Paper(
            "chen-rsgd",
            "Chen, Lee, Kifer",
            "Renyi Differentially Private ERM for Smooth Objectives",
            "Chen, Lee, Kifer 2019 (RSGD-AR)",
            "AISTATS 2019",
        ),
        Paper(
            "bagdasaryan",
            "Bagdasaryan, Poursaeed, Shmatikov",
            "Differential Privacy Has Disparate Impact on Model Accuracy",
            "Bagdasaryan et al. 2019 (disparate impact)",
            "NeurIPS 2019",
        ),
    )
}
