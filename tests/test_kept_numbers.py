"""Numbers that an earlier version gave, kept: an unintended change of one is seen here, in every form of every mechanism.

It is looked at before a release: tests of the distribution of noise say the same and know why. Closed forms, accountants,
audits and searches have no numbers here: their own tests compare each with another formula. Where a change is meant,
`python tests/test_kept_numbers.py` writes the numbers anew, and the difference in kept_numbers.json is read before it is
committed.
"""

# ruff: noqa: B023 (what is defined in a loop is called before the loop goes on)
import json
import sys
from collections.abc import Callable
from pathlib import Path

import pytest
from kept.mechanisms import forms, of_calibration, of_training
from support_kept import Numbers, kept_or_refused, same

import dpviz
from dpviz.mechanisms import get_mechanism
from dpviz.privacy.budget import Budget

KEPT = Path(__file__).with_name("kept_numbers.json")

# ---- mechanisms -------------------------------------------------------------------------------------------------------

SHAPES = {"small": (60, 3, 0.05), "large": (20_000, 30, 1e-3)}
BUDGETS = (Budget(0.3, 1e-6), Budget(4.0, 1e-5), Budget(1.0))


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
