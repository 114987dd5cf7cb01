"""Who is exposed, and what predicts it: influence does without privacy, as two of the papers suppose."""

from dataclasses import replace

import numpy as np
import pandas as pd
import pytest

import dpviz
from dpviz.auditing.attacks.exposure import FACTS, associations, describe_row, exposure
from dpviz.auditing.attacks.study import attack_run


def test_rows_of_large_influence_are_easier_to_find_and_noise_ends_that() -> None:
    """The claim of the picture, with its control: at epsilon = 0.01 influence predicts nothing."""
    spec = dpviz.RunSpec("breast-cancer", mechanism="non-private")
    known = associations(exposure(attack_run(spec, 256, 16, attacks=["loss-threshold"]))).set_index("fact")
    assert known.loc["influence", "low"] > 0.3
    assert known.loc["leverage", "low"] > 0
    assert known.loc["margin", "high"] < 0
    assert "individual_epsilon" not in known.index
    noisy = replace(spec, mechanism="output-gaussian", epsilon=0.01)
    none = associations(exposure(attack_run(noisy, 256, 16, attacks=["loss-threshold"], baseline=False))).set_index("fact")
    assert abs(none.loc["influence", "correlation"]) < 0.2


def test_facts_belong_to_their_rows() -> None:
    spec = dpviz.RunSpec("iris", mechanism="dp-gd", params={"steps": 5})
    found = attack_run(spec, 64, 16, attacks=["loss-threshold"], baseline=False)
    exposed, result = exposure(found), dpviz.run(replace(spec, seeds=1))
    assert exposed.index.equals(found.rows.index)
    assert exposed["margin"].equals(result.instances["margin_non_private"].loc[exposed.index].rename("margin"))
    by_position = dict(zip(result.instances.index, dpviz.influence_of(spec).newton_norm, strict=True))
    assert exposed["influence"].to_dict() == pytest.approx(by_position)
    assert exposed["individual_epsilon"].max() == pytest.approx(result.individual.epsilon.max())
    assert "label" in describe_row(found, int(exposed.index[0]))


def test_rank_correlations_have_their_confidence() -> None:
    """Of 400 pairs of independent columns the limits miss 0 in about 5 %."""
    rng, missed = np.random.default_rng(0), 0
    for _ in range(400):
        values = rng.standard_cauchy(size=(60, 5))
        row = associations(pd.DataFrame(values, columns=[*FACTS, "separation"])).iloc[0]
        missed += not row["low"] <= 0 <= row["high"]
    assert 8 <= missed <= 34
