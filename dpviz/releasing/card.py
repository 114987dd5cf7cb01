"""The card of a released model: what it is, what is guaranteed, what is not."""

from __future__ import annotations

import math
from dataclasses import replace
from typing import TYPE_CHECKING

from dpviz.auditing import AuditResult
from dpviz.common.version import __version__
from dpviz.datasets import Dataset
from dpviz.datasets.catalogue import is_in_memory
from dpviz.experiments.run.resolve import resolve
from dpviz.mechanisms import protection
from dpviz.mechanisms.persons import privacy_unit
from dpviz.models import MODELS, get_model
from dpviz.privacy.accounting.division import composed_budget
from dpviz.privacy.budget import Budget
from dpviz.privacy.noise import GAMMA_SPHERE
from dpviz.releasing.grid import EXACTLY, PROTECTION

if TYPE_CHECKING:
    from dpviz.releasing.training import Release

_LEFT_OUT = "Accuracy on the rows is left out: a number that was computed from private rows without noise is not covered by ε."


def card(made: Release) -> str:
    """The card of a release in Markdown."""
    spec, cal, dataset = made.spec, made.calibration, made.dataset
    built = spec.build()
    setting = replace(get_model(spec.model).setting(made.rows, dataset.d, resolve(spec).lam), person_rows=cal.person_rows)
    setting = replace(setting, preparations=dataset.preparations)
    sections = {
        "Model": [
            f"{MODELS[spec.model].label if spec.model in MODELS else get_model(spec.model).label}, predicting "
            f"{_plain(dataset.label_names[1])} or {_plain(dataset.label_names[0])}. Made with dpviz {__version__}."
        ],
        "Data": [
            f"{_named(dataset)}: {made.rows:,} rows for training; their number is public. Source: {_plain(dataset.source)}.",
            _looked_at(dataset, made.of_ranges),
            *([f"Taken as public: {'; '.join(dataset.taken_as_public)}."] if dataset.taken_as_public else []),
        ],
        "Privacy": _privacy(built.family, made),
        "Method": [
            f"{built.label} ({built.id}). {built.noise_enters} {built.citation}.",
            "",
            *[f"- {name} = {protection.knob_value(built, name, setting, cal.budget)}" for name in built.knobs()],
            f"- lam = {setting.lam:g}{'' if spec.lam else ' (automatic)'}; intercept = {spec.intercept}",
            f"- row_scaling = {dataset.scaling}",
            f"- class_weight = {spec.class_weight:g} (a row of {_plain(dataset.label_names[1])} beside 1 for one of "
            f"{_plain(dataset.label_names[0])}; public)",
        ],
        "Choice of the settings": [_selection(made)],
        "Audit": [_audit(made.audited, cal.noise_family == GAMMA_SPHERE or built.family == "objective")],
        "Not in this card": [_LEFT_OUT],
    }
    text = "\n\n".join(f"## {title}\n\n" + "\n".join(lines) for title, lines in sections.items())
    return f"# Model card\n\n{text}\n"


def _privacy(family: str, made: Release) -> list[str]:
    cal = made.calibration
    return [
        f"- Unit of privacy: {privacy_unit(cal.person_rows)}; neighbouring relation: {cal.neighbouring.value}.",
        f"- Claimed: {cal.claimed_budget or 'nothing'}.",
        f"- Proved: {cal.proved_budget or 'nothing'} ({cal.sentence}).",
        *[f"- Only if: {condition}." for condition in cal.conditions],
        f"- Accountant: {cal.accountant}.",
        f"- Noise: {cal.noise_text}; sensitivity: {cal.sensitivity_text}.",
        f"- Floating point: all parameters are multiples of 2^{math.log2(made.grid):.0f}. {_arithmetic(family, made)}",
        *[f"- Note: {note}" for note in cal.notes],
    ]


def _plain(text: str) -> str:
    """Text from outside, so that it cannot become markup."""
    return "".join(f"\\{c}" if c in "\\`*_{}[]()#+-!|<>&" else c for c in " ".join(text.split()))


def _arithmetic(family: str, made: Release) -> str:
    """A note on the protection against attacks on floating point."""
    if made.hardened:
        return EXACTLY
    return PROTECTION[family] if made.calibration.noise_scale > 0 else "No noise is added, so nothing is protected."


def _named(dataset: Dataset) -> str:
    """The name of the rows; that of a table in memory means nothing elsewhere."""
    return "A table of the person who released it" if is_in_memory(dataset.name) else _plain(dataset.name)


def _looked_at(dataset: Dataset, of_ranges: Budget | None) -> str:
    if of_ranges is not None:
        return f"Ranges or categories of features were found privately, for {of_ranges} of the total."
    if not dataset.looked_at:
        return "Ranges and categories of the features were declared: no row was looked at for them."
    names = ", ".join(_plain(name) for name in dataset.looked_at)
    return f"**Read from the rows, not covered by ε, and shown by the model's file:** ranges or categories of {names}."


def _selection(made: Release) -> str:
    cal, tried = made.calibration, made.tried
    if made.searched:
        return f"A private search chose from a list of {made.searched:,} settings. The ε above pays for the choice, too."
    if tried is None:
        return (
            "Not stated. Where settings were chosen by looking at results on these rows, ε does not cover that choice, nor "
            "any number that was looked at."
        )
    if tried <= 1:
        return "The person who released it states that no other setting was tried on these rows."
    each = cal.proved_budget or cal.claimed_budget
    message = f"{tried:,} settings were tried on these rows, this one among them. The ε above does not cover that."
    if each is None:
        return message
    return (
        f"{message} If each was trained at the same ε and nothing else was looked at, scores on held-out rows included, they add "
        f"up to {composed_budget(each, min(tried, 10_000))}, by plain addition."
    )


def _audit(audited: AuditResult | None, blind: bool) -> str:
    """The audit in words.

    Args:
        blind: no attack is known here that sees where this method's noise is: with 2,000 models a side half the noise of
            objective perturbation and of gamma noise went unseen in 12 of 12 audits.
    """
    if audited is None:
        return "None was made. An audit can refute a guarantee and never confirms one."
    limit = f"an audit of this size shows no lower bound above {audited.ceiling:.3g}, however strong its attack"
    if blind:
        limit = "no attack is known here that sees where this method's noise is: even half of it would go unseen"
    return (
        f"{audited.runs:,} models were trained on each of two synthetic neighbouring datasets: {audited.verdict}. "
        f"Lower bound on ε at {100 * audited.confidence:g} % confidence: {audited.epsilon_lower:.3g}; {limit}. An audit can "
        "refute a guarantee and never confirms one."
    )
