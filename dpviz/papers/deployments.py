"""Published uses of differential privacy and their epsilon, with sources.

All values are those of the OpenDP Deployments Registry (data of 15 July 2026), which names these sources.
"""

from dataclasses import dataclass

from dpviz.common import toml

REGISTRY = "OpenDP Deployments Registry, 15 July 2026"


@dataclass(frozen=True)
class Deployment:
    """A published use.

    Attributes:
        name: who, what and the year.
        epsilon, delta: as published; delta 0 for pure differential privacy.
        unit: what the guarantee is about: one person, one event, one person on one day.
        local: whether each device adds its own noise.
        source: address of the publication.
    """

    name: str
    epsilon: float
    delta: float
    unit: str
    local: bool
    source: str


DEPLOYMENTS = tuple(Deployment(**one) for one in toml.declarations(__file__)["deployment"])
