"""Published uses of differential privacy and their epsilon, with sources.

All values are those of the OpenDP Deployments Registry (data of 15 July 2026), which names these sources.
"""

import math
from collections.abc import Sequence
from dataclasses import dataclass

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


_APPLE = "https://docs-assets.developer.apple.com/ml-research/papers/learning-with-privacy-at-scale.pdf"

DEPLOYMENTS: tuple[Deployment, ...] = (
    Deployment("Microsoft, US broadband coverage, 2021", 0.2, 0.0, "user", False, "https://arxiv.org/abs/2103.14035"),
    Deployment(
        "Microsoft, Windows telemetry, 2017",
        1.672,
        0.0,
        "user and six hours",
        True,
        "https://www.microsoft.com/en-us/research/publication/collecting-telemetry-data-privately/",
    ),
    Deployment("Apple, popular health types, 2017", 2.0, 0.0, "event", True, _APPLE),
    Deployment(
        "Facebook, movement range maps, 2020",
        2.0,
        0.0,
        "user and day",
        False,
        "https://research.facebook.com/blog/2020/06/protecting-privacy-in-facebook-mobility-data-during-the-covid-19-response/",
    ),
    Deployment("Apple, popular emojis, 2017", 4.0, 0.0, "event", True, _APPLE),
    Deployment("Microsoft, replies suggested to texts, 2020", 4.0, 1e-7, "user", False, "https://arxiv.org/abs/2002.09745"),
    Deployment("LinkedIn, hiring reports, 2020", 4.8, 4e-10, "event and month", False, "https://arxiv.org/abs/2010.13981"),
    Deployment("Apple, video autoplay, 2017", 8.0, 0.0, "user", True, _APPLE),
    Deployment("Israel, live births of 2014, 2024", 9.98, 0.0, "birth", False, "https://birth.dataset.pub"),
    Deployment("US Census 2020, redistricting, 2021", 17.14, 1e-10, "person", False, "https://arxiv.org/abs/2204.08986"),
    Deployment("LinkedIn, audience engagement, 2020", 34.9, 7e-9, "user and month", False, "https://arxiv.org/abs/2002.05839"),
)


def nearest(epsilon: float, count: int = 3) -> Sequence[Deployment]:
    """The uses whose epsilon is nearest by ratio, smallest epsilon first.

    >>> [deployment.epsilon for deployment in nearest(1.0)]
    [1.672, 2.0, 2.0]
    """
    chosen = sorted(DEPLOYMENTS, key=lambda one: abs(math.log(one.epsilon / epsilon)))[:count]
    return sorted(chosen, key=lambda one: one.epsilon)
