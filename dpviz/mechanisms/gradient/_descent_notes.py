"""What a plain descent from zero has not reached when it stops, in words."""

from __future__ import annotations

import math

from dpviz.models import Setting


def unfinished(setting: Setting, step: float, steps: int) -> tuple[str, ...]:
    """A note where gradient descent stops before it has fitted the flattest directions.

    From 0, T steps of size eta bring the error along a direction of curvature k to (1 - eta k)^T, which is still above
    1/e for k < 1/(eta T). Every curvature is at least mu = lam, so nothing is left where eta T mu >= 1.

    Args:
        step: eta, absolute.
        steps: T.
    """
    path = step * steps
    if not math.isfinite(path) or path * setting.mu >= 1:
        return ()
    return (
        f"{steps:,} steps of {step:.3g} do not yet fit directions of curvature below {1 / path:.2g}; on rows with many small "
        "features the model can stay near the majority however large ε is. More steps cost more noise.",
    )
