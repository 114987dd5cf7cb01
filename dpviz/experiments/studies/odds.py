"""Attack odds of runs: the tightest proved bound on the share of correct guesses, at one epsilon and over many."""

from collections.abc import Sequence
from dataclasses import replace

from dpviz.common.validate import InvalidInput
from dpviz.experiments.run.setup import calibration_of, setting_of
from dpviz.experiments.run.spec import RunSpec
from dpviz.mechanisms.attack import Attack, strongest_attack


def attack_of(spec: RunSpec) -> Attack | None:
    """The best possible attack on a run, without training; None where no budget is proved.

    Raises:
        InvalidInput: the budget cannot be met.
    """
    return strongest_attack(spec.build(), setting_of(spec), calibration_of(spec))


def odds_over(spec: RunSpec, epsilons: Sequence[float]) -> list[tuple[float, float]]:
    """(epsilon, largest share of correct guesses in [0.5, 1]) of a run at each epsilon at which a budget is proved."""
    found = []
    for epsilon in epsilons:
        try:
            attack = attack_of(replace(spec, epsilon=epsilon))
        except InvalidInput:  # no noise is enough there
            continue
        if attack is not None:
            found.append((epsilon, attack.accuracy))
    return found
