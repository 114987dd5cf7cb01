"""The noise that every accountant asks for, for the same release: how much is privacy and how much is the proof."""

import math
from collections.abc import Iterator
from dataclasses import dataclass, replace

from dpviz.privacy.accounting.account import Method, noise_for
from dpviz.privacy.accounting.accountants.registry import list_accountants
from dpviz.privacy.accounting.events import CannotAccount, Event, Gaussian, Mixture, Repeated, Sampled, Step, only_step, scaled
from dpviz.privacy.accounting.gaussian import gaussian_mu
from dpviz.privacy.budget import Budget, Neighbouring, Status


@dataclass(frozen=True)
class Option:
    """The noise that one accountant asks for.

    Attributes:
        name: for people.
        sigma: standard deviation per coordinate; NaN where the accountant gives none.
        status: how far it is proved for this release and this budget.
        formula: LaTeX.
        source: author, year, number.
        note: why there is no number, why it is not proved, or what it equals; "" for none.
    """

    name: str
    sigma: float
    status: Status
    formula: str
    source: str
    note: str = ""


def options(event: Event, budget: Budget) -> list[Option]:
    """The noise that every accountant asks for under replace-one, largest proof first: from classical to exact.

    Args:
        event: Gaussian releases of one kind; its own noise does not count.

    Raises:
        InvalidInput: delta = 0, which no Gaussian noise can meet.
        CannotAccount: the event holds other releases.
    """
    gaussian_mu(budget)  # refuses delta = 0
    step = only_step(event)
    return _unsampled(step, budget) if step.sampling == "full" else _sampled(step, budget)


def _unsampled(step: Step, budget: Budget) -> list[Option]:
    total, small = step.total, budget.epsilon < 1
    classical = Option(
        "Classical Gaussian",
        total * math.sqrt(2 * math.log(1.25 / budget.delta)) / budget.epsilon,
        Status.PROVED if small else Status.CLAIM,
        rf"\sigma={step.formula}\sqrt{{2\ln(1.25/\delta)}}/\varepsilon",
        "Dwork, Roth 2014, Theorem A.1",
        "" if small else f"proved for ε < 1 only, and ε = {budget.epsilon:.3g}",
    )
    if isinstance(step.event, Mixture):  # first as if every draw were the worst one
        worst = replace(step, event=Gaussian(step.sensitivity))
        unit = scaled(step.event, 1 / step.event.sigma)
        return [classical, *_lines(worst, worst.event, 1.0, budget), *_lines(step, unit, 1.0, budget)]
    assert isinstance(step.event, Gaussian)
    one = Repeated(replace(step.event, sigma=1.0), step.count)
    return [classical, *_lines(step, one, 1.0, budget)]


def _sampled(step: Step, budget: Budget) -> list[Option]:
    if not isinstance(step.event, Gaussian):
        raise CannotAccount("event", "batches are accounted for with Gaussian noise only", "Use another accountant.")
    ignored = Option(
        "Sampling ignored, exact Gaussian",
        step.total / gaussian_mu(budget),
        Status.PROVED,
        r"\sigma=\sqrt T\,\Delta/\mu^*",
        "Balle, Wang 2018; every step is at worst a full one",
        "leaves out that batches are sampled",
    )
    unit = Repeated(Sampled(Gaussian.of_rows(1.0), step.rate, step.sampling), step.count)
    return [ignored, *_lines(step, unit, step.event.sigma / step.event.noise_multiplier, budget)]


def _lines(step: Step, unit: Event, scale: float, budget: Budget) -> Iterator[Option]:
    """The values of all accountants for a step; `unit` is the same releases, 1/scale the size, with standard deviation 1."""
    able = [accountant for accountant in list_accountants().values() if isinstance(step.event, accountant.kinds)]
    for accountant in able:
        for line in accountant.lines(step):
            note, status = line.note, line.status
            method = Method(accountant.name, Neighbouring.REPLACE_ONE, line.route, line.conversion)
            try:
                sigma = scale * noise_for(unit, method, budget) if line.sigma is None else line.sigma(budget)
            except CannotAccount as refused:
                sigma, note, status = math.nan, line.note or refused.cause, Status.NONE
            yield Option(line.name, sigma, status, line.formula, line.source, note)
