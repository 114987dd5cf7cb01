"""Numbers that an earlier version gave, kept: an unintended change of one is seen here, in every form of every mechanism.

It is looked at before a release: tests of the distribution of noise say the same and know why. Closed forms, accountants,
audits and searches have no numbers here: their own tests compare each with another formula. Where a change is meant,
`python tests/test_kept_numbers.py` writes the numbers anew, and the difference in kept_numbers.json is read before it is
committed.
"""

# ruff: noqa: B023 (what is defined in a loop is called before the loop goes on)
import json
import math
import sys
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from support import make_problem, options
from support_kept import Numbers, kept_or_refused, same

import dpviz
from dpviz.auditing.pairs import worst_case
from dpviz.common.random import spawn
from dpviz.mechanisms import Mechanism, Training, get_mechanism
from dpviz.mechanisms import capabilities as can
from dpviz.models import get_model
from dpviz.privacy.budget import Budget

KEPT = Path(__file__).with_name("kept_numbers.json")

# ---- mechanisms -------------------------------------------------------------------------------------------------------

SHAPES = {"small": (60, 3, 0.05), "large": (20_000, 30, 1e-3)}
BUDGETS = (Budget(0.3, 1e-6), Budget(4.0, 1e-5), Budget(1.0))
EIGENVALUES = np.array([0.06, 0.1, 0.3])


def forms(name: str) -> Iterator[dict[str, Any]]:
    """Every option on its own, and every number of the mechanism set to another value than its default."""
    yield from options(name)
    for knob, declared in dpviz.list_mechanisms()[name].knobs().items():
        default = dpviz.list_mechanisms()[name].defaults()[knob]
        if isinstance(default, int | float) and not isinstance(default, bool):
            yield {knob: _other(declared, default)}


def _other(declared: Any, default: float) -> float:
    """A value near the default, or in the middle of what is allowed where the default stands for a rule."""
    value = 0.7 * default if default and 0.7 * default >= declared.low else math.sqrt(max(declared.low, 1e-3) * declared.high)
    return max(round(value), math.ceil(declared.low)) if isinstance(default, int) else value


def of_calibration(built: Mechanism, model: str, shape: tuple[int, int, float], budget: Budget) -> Any:
    """What a mechanism declares for a problem of this shape."""
    setting = get_model(model).setting(*shape)
    if built.refusal(setting) is not None:
        return None
    declared = built.calibrate(setting, budget)
    found: dict[str, Any] = {"calibration": declared, "settled": built.settle(setting, budget)}
    if isinstance(built, can.BoundsSensitivity):
        found["bounds"] = built.sensitivity_bounds(setting)
    if isinstance(built, can.DeclaresEvent):
        found["event"] = built.released_event(setting, declared)
    if isinstance(built, can.HasExcessTheory):
        found["excess"] = built.excess_theory(setting, declared.noise_scale, 0.3, EIGENVALUES)
    if isinstance(built, can.CountsSteps):
        found["steps"] = built.step_count(setting)
    return found


def of_training(built: Mechanism, model: str, budgets: Sequence[Budget], *, pair: bool) -> Any:
    """What a mechanism trains on 60 rows, and what it says of them and of its worst pair."""
    problem = make_problem(n=60, d=3, lam=0.05, model=model)
    # which of the optima that differ by signs of hidden units is found, rounding decides
    at_optimum = built.id == "non-private" or (isinstance(built, can.ChoosesStart) and not built.public_start)
    if built.refusal(problem.setting) is not None or (at_optimum and not problem.setting.linear):
        return None
    declared = [built.calibrate(problem.setting, budget) for budget in budgets]
    fit = built.fit(Training(problem, declared, spawn(5, 2)))
    found: dict[str, Any] = {"fit": fit}
    if pair:
        found["unrecorded"] = built.fit(Training(problem, declared, spawn(5, 2), record=False)).record
    for e, calibration in enumerate(declared):
        if isinstance(built, can.IndividualBudget):
            found[f"individual {e}"] = built.individual(problem, calibration, fit.theta[e], fit.record.select(e))
        if isinstance(built, can.HasRule):
            found[f"rules {e}"] = built.rule_views(problem, calibration)
    if isinstance(built, can.ProtectsQuery):
        found["query"] = built.query(problem, fit.theta[0], spawn(6, 2))
    if isinstance(built, can.NoisesRows):
        found["rows"] = built.noisy_rows(problem, declared[0], spawn(7, 1)[0])
    if isinstance(built, can.HasTrace):
        found["trace"] = built.sensitivity_trace(problem.setting)
    if pair:
        worst = worst_case(built, problem.model, budgets[-1], n=20)
        found["pair"] = [(p.rows.X, p.rows.y) for p in (worst.first, worst.second)]
    return found


def of_mechanism(name: str) -> dict[str, Numbers]:
    """All that is kept of one mechanism, by what it is."""
    found: dict[str, Numbers] = {}
    for params in forms(name):
        form = " ".join([name, *(f"{k}={v:.4g}" if isinstance(v, float) else f"{k}={v}" for k, v in params.items())])
        built = get_mechanism(name).from_params(params)
        one_number = any(isinstance(v, int | float) and not isinstance(v, bool) for v in params.values())
        for size, shape in SHAPES.items():
            for model in ("logistic", "svm", "mlp") if not params else ("logistic",) if one_number else ("logistic", "mlp"):
                for budget in BUDGETS[:1] if one_number or size == "large" else BUDGETS:
                    what = f"{form}: {model}, {size}, {budget}"
                    found[what] = kept_or_refused(lambda: of_calibration(built, model, shape, budget))
        for model in ("logistic", "mlp") if not params else ("logistic",):
            budgets = BUDGETS[:1] if one_number else BUDGETS[:2]
            found[f"{form}: {model}, trained"] = kept_or_refused(lambda: of_training(built, model, budgets, pair=not params))
    return found


# ---- the tests --------------------------------------------------------------------------------------------------------

GROUPS: dict[str, Callable[[], dict[str, Numbers]]] = {
    name: lambda name=name: of_mechanism(name) for name in dpviz.list_mechanisms()
}


def without_refusals(found: dict[str, Numbers]) -> dict[str, Numbers]:
    """What has numbers: a form that is refused from now on, or no longer, is seen by its name."""
    return {what: values for what, values in found.items() if values[:1] != ["refused"]}


@pytest.mark.before_release
@pytest.mark.parametrize("group", GROUPS)
def test_numbers_are_those_that_were_kept(group: str) -> None:
    kept = json.loads(KEPT.read_text(encoding="utf-8")).get(group, {})
    found = json.loads(json.dumps(without_refusals(GROUPS[group]())))
    assert found.keys() == kept.keys(), "other forms than were kept: write them anew, and read the difference"
    other = [f"{what}: {found[what]}, kept {kept[what]}" for what in kept if not same(found[what], kept[what])]
    assert not other, "\n".join(other[:5])


def main(groups: list[str]) -> None:
    """Writes the numbers of some groups anew, of all by default."""
    kept = json.loads(KEPT.read_text(encoding="utf-8"))
    wanted = groups or list(GROUPS)
    found = {group: without_refusals(compute()) if group in wanted else kept[group] for group, compute in GROUPS.items()}
    lines = [
        f"{json.dumps(group)}: {{\n"
        + ",\n".join(f"{json.dumps(k, ensure_ascii=False)}: {json.dumps(v)}" for k, v in kept.items())
        for group, kept in found.items()
    ]
    KEPT.write_text("{\n" + "\n},\n".join(lines) + "\n}\n}\n", encoding="utf-8")


if __name__ == "__main__":
    main(sys.argv[1:])
