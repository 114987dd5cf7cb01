"""`dpviz calibrate --accountants`: the noise that every accountant needs, and the best possible attack."""

import argparse
from typing import Any

from dpviz.cli import answers, one_run
from dpviz.common.validate import InvalidInput, check_choice


def run(options: argparse.Namespace) -> None:
    """Prints the accountants."""
    from dpviz.experiments.run.resolve import resolve
    from dpviz.experiments.run.setup import setting_of
    from dpviz.experiments.studies import noise_comparison
    from dpviz.mechanisms import list_mechanisms
    from dpviz.mechanisms.attack import strongest_attack
    from dpviz.privacy.accounting import tables

    spec = one_run.run_spec(options)
    compare = one_run.option_value(options, "compare")
    if compare is not None:
        check_choice("compare", compare, list_mechanisms())
        spec = noise_comparison.change_method(spec, compare)
    comparison = noise_comparison.accounted_release(spec)
    if comparison.released is None:
        methods = ", ".join(noise_comparison.accountable_methods(spec))
        cause = f"{spec.mechanism} adds no Gaussian noise of bounded sensitivity that accountants could be compared on"
        raise InvalidInput("--mechanism", cause, f"Choose one of {methods}." if methods else "Choose another model.")
    cal, released, compared = comparison.calibration, comparison.released, comparison.compared
    accountants = tables.accountants(tables.options(released, compared.budget))
    relations = tables.relations(released, compared.budget.delta)
    attack = strongest_attack(comparison.mechanism, setting_of(spec), cal)
    values: dict[str, Any] = {
        "run": answers.run(resolve(spec)),
        "mechanism": comparison.mechanism.id,
        "guarantee": answers.guarantee(cal, comparison.mechanism),
        "accountants": accountants,
        "relations": relations,
        "attack": answers.attack(attack),
    }
    printed = [accountants.drop(columns=["source"]), relations]
    if options.published:
        values["published"] = _published(noise_comparison.published_noise(spec))
        printed.append(values["published"])
    lines = [("mechanism", f"{comparison.mechanism.id} on {spec.model}"), *answers.guarantee_lines(cal, comparison.mechanism)]
    if attack is not None:
        lines.append(("best attack", f"right in {attack.accuracy:.4f} of the guesses at most, by {attack.basis}"))
    answers.give(options, lines, values, *printed)


def _published(rows: Any) -> Any:
    import pandas as pd

    return pd.DataFrame(
        [
            {
                "mechanism": row.mechanism.id,
                "published": None if row.published is None else row.published.noise_scale,
                "needed": row.needed,
                "published_over_needed": row.ratio,
                "status": None if row.in_use is None else row.in_use.status.value,
                "refusal": row.refusal,
            }
            for row in rows
        ]
    )
