"""What output perturbation has in common: train once without noise, then add one scaled draw per replica."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from dpviz.mechanisms.base import Calibration, Fit, Floats, NoiseRecord, OutputNoise, Streams, scales
from dpviz.noise import STANDARD


def release(centre: Floats, calibrations: Sequence[Calibration], streams: Streams, record: NoiseRecord) -> Fit:
    """centre + scale x standard draw, for every calibration and stream.

    Args:
        centre: (m,) or (S, m) parameters before noise.
    """
    family = calibrations[0].noise_family
    noise = STANDARD[family](streams, centre.shape[-1])
    scale = scales(calibrations)
    theta = centre + scale[:, None, None] * noise
    return Fit(np.ascontiguousarray(theta), record, law=OutputNoise(centre, scale, family))
