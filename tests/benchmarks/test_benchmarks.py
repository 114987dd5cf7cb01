"""The benchmarks' own arithmetic, the way to a peer, the table of the best defaults, and the memory that a table takes."""

import subprocess
import sys
from pathlib import Path

import numpy as np
import pandas as pd
import pytest
from sklearn.linear_model import LogisticRegression
from support import LIMIT

from benchmarks import best_known as bk
from benchmarks.defaults import write
from benchmarks.peers.environments import Peer, Unavailable
from benchmarks.peers.measure import Row, Times, faster, markdown, ratio
from benchmarks.peers.rows import track
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


def test_ratios_are_taken_round_by_round_and_per_model() -> None:
    ours, peer = Times(models=100), Times()
    for mine, other in ((1.0, 3.0), (2.0, 8.0), (1.0, 5.0)):
        ours.add(mine, 2 * mine)
        peer.add(other, other)
    found = ratio(peer.wall, ours.wall)
    assert (found.low, found.median, found.high) == pytest.approx((300, 400, 500))
    wanted = ((400, True), (401, True), (400, False))
    row, *others = (faster("race", peer, ours, wanted=least, also=also) for least, also in wanted)
    assert row.raw["cpu_ratio"] == pytest.approx(200)
    assert [each.reached for each in (row, *others)] == [True, False, False]
    assert "400× (300 to 500)" in markdown([row])
    assert "| at least 400× faster | yes |" in markdown([row])
    assert "**no**" in markdown([Row("x", reached=False)])


@pytest.mark.long
def test_a_peer_fits_what_scikit_learn_fits_and_fails_in_one_line(tmp_path: Path) -> None:
    raced = track(None, tmp_path, rows=400)
    assert "synthetic census" in raced.words
    rows, test = raced.setup.problem.rows, raced.setup.test
    with Peer("scikit-learn", Path(sys.executable), raced.arrays, 1) as peer:
        answer = peer.ask("fit", lam=1e-3)
        with pytest.raises(Unavailable, match="scikit-learn: ZeroDivisionError"):
            peer.ask("fit", lam=0.0)
        assert peer.ask("fit", lam=1e-3)["accuracy"] == answer["accuracy"]  # it goes on
    model = LogisticRegression(C=1 / (1e-3 * len(rows)), fit_intercept=False).fit(rows.X, rows.y)
    assert answer["accuracy"] == pytest.approx(model.score(test.X, test.y))
    assert min(answer["cpu"], answer["wall"]) > 0
    with pytest.raises(Unavailable, match="stopped with exit code"):
        Peer("scikit-learn", Path(sys.executable), tmp_path / "no.npz", 1)


ROOT = Path(__file__).parents[2]


@pytest.mark.long
@pytest.mark.skipif(not Path("/proc/self/statm").exists(), reason="memory is read in /proc")
def test_many_short_categories_do_not_grow_a_thousandfold() -> None:
    command = [sys.executable, "-m", "benchmarks.upload_memory", "--rows", "60000"]
    said = subprocess.run(command, cwd=ROOT, check=True, capture_output=True, text=True, timeout=LIMIT).stdout
    found = {name: float(value) for name, value in (line.rsplit(maxsplit=1) for line in said.splitlines())}
    assert found.pop("encoded MB") > 200, "large beside what the process needs anyway"
    assert set(found) == {"reading", "encoding", "training"}
    assert max(found.values()) < 5.6, found  # a copy more would be 1; the rest is what the allocator keeps
    assert found["training"] > 0.2, "the control: training is seen"
