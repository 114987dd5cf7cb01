"""Accountants compared on a run: whose releases can be accounted for, metrics with each noise, published noise beside needed.

`dpviz.privacy.accounting.tables.options` gives the noise that every accountant needs; this module trains with it.
"""

import math
from collections.abc import Sequence
from dataclasses import dataclass, replace
from functools import lru_cache

from dpviz.common.arrays import Floats
from dpviz.common.progress import Monitor, ignore
from dpviz.common.random import spawn
from dpviz.common.validate import InvalidInput
from dpviz.experiments.run.measure import train
from dpviz.experiments.run.metrics import all_metrics
from dpviz.experiments.run.resolve import resolve
from dpviz.experiments.run.setup import setting_of, setup_for
from dpviz.experiments.run.spec import RunSpec
from dpviz.mechanisms import Calibration, Mechanism, ReleasesGaussians, Training, list_mechanisms, protection
from dpviz.models import Setting
from dpviz.privacy.accounting.events import Event
from dpviz.privacy.budget import Budget


@dataclass(frozen=True)
class Accounted:
    """A run, and what it releases with its calibrated noise.

    Attributes:
        calibration: of the run.
        compared: the same without private ranges, which `released` is for.
        released: by the method itself, without private ranges; None where no Gaussian release has a bound, so that
            accountants cannot be compared.
    """

    run: RunSpec
    mechanism: Mechanism
    calibration: Calibration
    compared: Calibration
    released: Event | None


def change_method(spec: RunSpec, name: str) -> RunSpec:
    """The run itself, or another method's with its default hyperparameters and, where λ is automatic, its own λ."""
    return spec if name == spec.mechanism else replace(spec, mechanism=name, params={})


def accounted_release(spec: RunSpec) -> Accounted:
    """A run's calibration and its Gaussian release.

    Raises:
        InvalidInput: the budget or a knob means nothing for this mechanism.
    """
    mechanism, setting = spec.build(), setting_of(spec)
    calibration = protection.calibrate(mechanism, setting, resolve(spec).budget)
    facts, compared = protection.method_part(setting, calibration)
    gaussian = mechanism if isinstance(mechanism, ReleasesGaussians) else None
    released = None if gaussian is None else protection.released_event(gaussian, facts, compared)
    return Accounted(spec, mechanism, calibration, compared, released)


def accountable_methods(spec: RunSpec) -> tuple[str, ...]:
    """Ids of the mechanisms whose releases on this run's data can be accounted for."""
    setting, names = replace(setting_of(spec), preparations=()), []
    for name, cls in list_mechanisms().items():
        if cls.refusal(setting) is not None:
            continue
        try:
            mechanism = change_method(spec, name).build()
            if isinstance(mechanism, ReleasesGaussians) and protection.releases(mechanism, setting) is not None:
                names.append(name)
        except InvalidInput:  # its knobs, at their defaults, do not fit these rows
            continue
    return tuple(names)


def metrics_by_noise(
    spec: RunSpec,
    mechanism: Mechanism,
    calibration: Calibration,
    scales: Sequence[float],
    monitor: Monitor = ignore,
    metrics: Sequence[str] = (),
) -> dict[str, Floats]:
    """A mechanism trained with each of E noise scales, with the noise draws of `dpviz.run`, measured on the test rows.

    Args:
        metrics: ids of further metrics than all standard ones, with levels of their own.

    Returns:
        Column of each metric (`Metric.column`) -> (E, S) values, NaN where it has none.
    """
    shared = setup_for(spec)
    calibrations = [replace(calibration, noise_scale=s) for s in scales]
    training = Training(shared.problem, calibrations, spawn(spec.seed, spec.seeds), record=False, monitor=monitor)
    return train(mechanism, training).metrics(shared.test, all_metrics(metrics))


@dataclass(frozen=True)
class PublishedNoise:
    """The noise that a mechanism's publication adds, beside the noise that is proved to be needed.

    Attributes:
        mechanism: class.
        in_use: calibration with default knobs; None where the mechanism refuses the budget.
        published: calibration in the `Mechanism.published_form`; `in_use` where there is none.
        own_constants: whether the publication fixes its constants, so that `published` differs by declaration.
        refusal: why there is no calibration, "" where there is one.
    """

    mechanism: type[Mechanism]
    in_use: Calibration | None
    published: Calibration | None
    own_constants: bool
    refusal: str = ""

    @property
    def needed(self) -> float:
        """Noise scale with which the budget is proved; NaN where none is."""
        proved = self.in_use is not None and self.in_use.proved_budget is not None
        return self.in_use.noise_scale if proved and self.in_use is not None else math.nan

    @property
    def ratio(self) -> float:
        """Published over needed noise; NaN where the publication leaves its constants open or nothing is proved."""
        if not self.own_constants or self.published is None or not self.needed > 0:
            return math.nan
        return self.published.noise_scale / self.needed


def published_noise(spec: RunSpec) -> list[PublishedNoise]:
    """Every mechanism that runs on this model, at default knobs and its own regularisation: published beside needed noise.

    Args:
        spec: its data, model and budget.
    """
    shared, rows = setting_of(spec), []
    for name, cls in list_mechanisms().items():
        if cls.family != "reference" and cls.refusal(shared) is None:
            own = resolve(replace(spec, mechanism=name, params={}))
            rows.append(_published(cls, replace(shared, lam=own.lam), own.budget))
    return rows


@lru_cache(maxsize=256)
def _published(cls: type[Mechanism], setting: Setting, budget: Budget) -> PublishedNoise:
    try:
        in_use = protection.calibrate(cls(), setting, budget)
        published = protection.calibrate(cls(**cls.published_form), setting, budget) if cls.published_form else in_use
    except InvalidInput as problem:
        return PublishedNoise(cls, None, None, bool(cls.published_form), problem.cause)
    return PublishedNoise(cls, in_use, published, bool(cls.published_form))
