"""The benchmarks' own arithmetic and the way to a peer, with this Python as the peer's environment."""

import sys
from pathlib import Path

import pytest
from sklearn.linear_model import LogisticRegression

from benchmarks.peers.environments import Peer, Unavailable
from benchmarks.peers.measure import Row, Times, faster, markdown, ratio
from benchmarks.peers.rows import track


def test_ratios_are_taken_round_by_round_and_per_model() -> None:
    ours, peer = Times(models=100), Times()
    for mine, other in ((1.0, 3.0), (2.0, 8.0), (1.0, 5.0)):
        ours.add(mine, 2 * mine)
        peer.add(other, other)
    found = ratio(peer.wall, ours.wall)
    assert (found.low, found.median, found.high) == pytest.approx((300, 400, 500))
    row = faster("race", peer, ours, wanted=400)
    assert row.reached is True
    assert row.raw["cpu_ratio"] == pytest.approx(200)
    assert faster("race", peer, ours, wanted=401).reached is False
    assert faster("race", peer, ours, wanted=400, also=False).reached is False
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
    assert answer["cpu"] > 0
    assert answer["wall"] > 0
    with pytest.raises(Unavailable, match="stopped with exit code"):
        Peer("scikit-learn", Path(sys.executable), tmp_path / "no.npz", 1)
