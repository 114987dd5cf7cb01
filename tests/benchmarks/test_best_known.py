"""The table of the best proved defaults: what it is chosen on, and what it keeps."""

from pathlib import Path

import numpy as np
import pandas as pd
import pytest

from benchmarks import best_known as bk
from benchmarks.defaults import write
from dpviz.datasets import load_dataset


def test_candidates_are_chosen_on_rows_that_are_neither_trained_on_nor_tested() -> None:
    train, held, test = bk.parts(load_dataset("iris"), 3)
    assert set(held) < set(train)
    assert len(held) == len(train) // 4
    assert not set(train) & set(test)


def test_only_what_is_proved_is_compared() -> None:
    claimed = bk.Candidate("dp-gd", params=(("noise", "published"), ("c", 0.01)))
    assert bk.scores("iris", "logistic", claimed, [1.0], 0, 2, final=False) is None
    found = bk.scores("iris", "logistic", bk.Candidate("objective-tight", lam=0.01), bk.EPSILONS, 0, 2, final=True)
    assert found.shape == (3, 2)
    held, best = bk.chosen("iris", "logistic", [claimed, bk.Candidate("output-gaussian")], 1, 2)
    assert set(held) == set(best.values()) == {bk.Candidate("output-gaussian")}


def test_rows_replace_those_of_the_same_set_and_budget(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """The best known is diffprivlib where that is ahead."""
    file = tmp_path / "best_known.csv"
    monkeypatch.setattr(bk, "EPSILONS", (1.0, 10.0))
    monkeypatch.setattr(bk, "chosen", lambda *_: ({bk.Candidate("a"): np.zeros(2)}, {}))
    monkeypatch.setattr(bk, "tested", lambda *_: [bk.Cell("a", 0.8), bk.Cell("a", 0.81)])
    for best in (0.7, 0.9):
        peers = [bk.Cell("C 1", 0.6)] * 2, [bk.Cell("C 9", best), bk.Cell("C 9", 0.5)]
        monkeypatch.setattr(bk, "peer_cells", lambda *_, peers=peers: peers)
        table = bk.rows("Iris", "logistic", 3, tmp_path)
        assert list(table["known_is"]) == ["a" if best < 0.8 else "diffprivlib, C 9", "a"]
        write(table, file, ("set", "epsilon"))
        write(table.assign(set="699"), file, ("set", "epsilon"))
        kept = pd.read_csv(file, dtype=str)
        assert sorted(zip(kept["set"], kept["epsilon"], strict=True)) == [(s, e) for s in ("699", "Iris") for e in ("1", "10")]
        assert set(kept[kept["epsilon"] == "1"]["known"]) == {f"{100 * max(best, 0.8):.1f}"}
