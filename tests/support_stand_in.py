"""The base of mechanisms that stand in for others in tests of claims: how they do is known."""

from dataclasses import dataclass

from dpviz.mechanisms import Calibration, Mechanism, get_mechanism
from dpviz.models import Setting
from dpviz.privacy.budget import Budget


@dataclass(frozen=True)
class StandIn(Mechanism):
    """Calibrated as DP-GD, so that what is claimed of it is usual; subclasses say what `fit` gives."""

    id = "stand-in"
    label = "Stand-in"
    family = "output"
    citation = "none"
    noise_enters = "Nowhere."
    guarantee = "None."

    def calibrate(self, setting: Setting, budget: Budget) -> Calibration:
        return get_mechanism("dp-gd").from_params({}).calibrate(setting, budget)
