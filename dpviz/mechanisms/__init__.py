"""One file per mechanism. `list_mechanisms()` finds them all; nothing else is edited when one is added."""

from dpviz.mechanisms.base import Calibration, Fit, Knob, Mechanism, NoiseRecord, OutputNoise, Training, knob
from dpviz.mechanisms.capabilities import (
    BoundsSensitivity,
    ChoosesStart,
    CountsSteps,
    DeclaresEvent,
    HasExcessTheory,
    HasRule,
    HasTrace,
    HasWorstPair,
    IndividualBudget,
    NoisesRows,
    NoisesShare,
    NoisySteps,
    ProtectsQuery,
    PublicSteps,
    ReleasesGaussians,
)
from dpviz.mechanisms.registry import get_knob, get_mechanism, list_mechanisms
