"""Trials of other settings: whether longer or shorter training, or another λ, helps a run on its own data.

It looks at the test rows: a diagnostic for the data's owner, not covered by ε, and never a way to choose settings.
"""

from collections.abc import Iterator
from dataclasses import dataclass, replace

import numpy as np

from dpviz.common.progress import Monitor, ignore, track
from dpviz.common.validate import InvalidInput
from dpviz.experiments.run.metrics import get_metric
from dpviz.experiments.run.run import run
from dpviz.experiments.run.setup import mechanism_of, setting_of
from dpviz.experiments.run.spec import RunSpec
from dpviz.mechanisms.knobs import Number

TIMES, LAMBDAS = 3.0, 10.0  # factors by which hyperparameters and λ are changed


@dataclass(frozen=True)
class Trial:
    """One other setting beside the run.

    Attributes:
        spec: the run with one value changed.
        change: what was changed, in words.
        mean: of the metric over the noise draws.
        gain: how much better that is, in the metric's own units; the draws are those of the run.
        error: standard error of `gain`; NaN for one draw.
    """

    spec: RunSpec
    change: str
    mean: float
    gain: float
    error: float

    @property
    def helps(self) -> bool:
        """True where the gain exceeds twice its standard error."""
        return self.gain > 2 * self.error


def other_settings(spec: RunSpec) -> Iterator[tuple[RunSpec, str]]:
    """The run with each automatic hyperparameter, and then λ, a few times larger and smaller, with the change in words."""
    setting = setting_of(spec)
    built = mechanism_of(spec)
    for name, knob in built.knobs().items():
        if not (isinstance(knob, Number) and knob.automatic):
            continue
        for factor in (TIMES, 1 / TIMES):
            value = min(max(getattr(built, name) * factor, knob.low), knob.high)
            value = type(getattr(built, name))(round(value) if isinstance(getattr(built, name), int) else value)
            yield replace(spec, params={**spec.params, name: value}), f"{knob.label.lower()} {knob.in_words(value)}"
    for factor in (LAMBDAS, 1 / LAMBDAS):
        lam = float(f"{setting.lam * factor:.3g}")
        yield replace(spec, lam=lam), f"λ = {lam:g}"


def trials(spec: RunSpec, metric: str = "accuracy", monitor: Monitor = ignore) -> list[Trial]:
    """Every one of `other_settings` that can be trained, the best first.

    Args:
        metric: an id of `get_metric`.
    """
    measure = get_metric(metric)
    sign = 1 if measure.higher_is_better else -1
    base = run(spec).metrics_in([metric])[measure.column].to_numpy(float)
    made = []
    for (other, change), inside in track(monitor, other_settings(spec)):
        try:
            values = run(other, inside).metrics_in([metric])[measure.column].to_numpy(float)
        except InvalidInput:  # the method refuses this value here
            continue
        better = sign * (values - base)
        error = float(np.std(better, ddof=1) / len(better) ** 0.5) if len(better) > 1 else float("nan")
        made.append(Trial(other, change, float(values.mean()), float(better.mean()), error))
    return sorted(made, key=lambda trial: -trial.gain)
