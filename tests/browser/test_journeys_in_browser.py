"""From a file to who is at risk and a model to publish, by the upload form: tables with ids, gaps, categories, several visits."""

from collections.abc import Callable
from typing import Any

import numpy as np
import pandas as pd
import pytest

N = 1200


def table(name: str) -> pd.DataFrame:
    """A table in the manner of a public one; the last column is its label."""
    rng = np.random.default_rng(3)
    ids, money = rng.permutation(N) + 10_000, rng.gamma(2.0, 500.0, N).round(2)
    if name == "credit default":
        plan = rng.choice(["rent", "own", "free"], N)
        late = rng.integers(0, 6, N)
        return pd.DataFrame({"id": ids, "limit": money, "home": plan, "late": late, "default": np.where(late > 2, "yes", "no")})
    if name == "churn":
        gaps = pd.Series(money).where(rng.random(N) > 0.02)
        contract = rng.choice(["monthly", "yearly", "two years"], N)
        return pd.DataFrame({"customerID": ids, "total": gaps, "contract": contract, "churn": contract == "monthly"})
    days = rng.integers(1, 14, N)
    return pd.DataFrame({"patient_id": rng.integers(0, 500, N), "days": days, "readmitted": np.where(days > 6, "yes", "no")})


@pytest.mark.long
@pytest.mark.parametrize("name", ["credit default", "churn", "readmissions"])
def test_a_file_becomes_a_person_at_risk_and_a_model(reader: Callable[..., Any], name: str) -> None:
    one, frame = reader(), table(name)
    page = one.page
    page.goto(f"{one.address}/Data?dataset=teaching&seeds=2")
    file = {"name": f"{name}.csv", "mimeType": "text/csv", "buffer": frame.to_csv(index=False).encode()}
    page.locator("input[type=file]").set_input_files(file)
    page.get_by_text("Guessed: no other column has two values.").wait_for()
    if name == "readmissions":
        page.get_by_text("Guessed: it has the name of an id").wait_for()
    page.get_by_role("button", name="Make it my dataset").click()
    page.wait_for_function("location.search.includes('upload-')")
    one.settled()
    page.get_by_role("link", name="Person").first.click()
    page.wait_for_function("location.pathname.includes('Person')")
    one.settled()
    assert "moves the model most" in one.sentence
    page.get_by_role("link", name="One model").first.click()
    one.settled()
    one.unfold("A model to publish")
    page.get_by_text("Publish ranges and categories that were read").click()
    page.get_by_role("button", name="Train a model and spend").click()
    page.get_by_text("Released:").wait_for()
    page.get_by_role("button", name="Download model.json").wait_for()
