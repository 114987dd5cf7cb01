"""One file per mechanism. `list_mechanisms()` finds them all; nothing else is edited when one is added."""

from dpviz.mechanisms.base import Calibration, Fit, Knob, Mechanism, NoiseRecord, OutputNoise, Training, knob
from dpviz.mechanisms.registry import get_mechanism, list_mechanisms

__all__ = [
    "Calibration",
    "Fit",
    "Knob",
    "Mechanism",
    "NoiseRecord",
    "OutputNoise",
    "Training",
    "get_mechanism",
    "knob",
    "list_mechanisms",
]
