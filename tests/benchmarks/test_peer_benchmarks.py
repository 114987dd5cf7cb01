"""The benchmarks' own arithmetic and the way to a peer, with this Python as the peer's environment."""

import sys
from pathlib import Path

import pytest
from sklearn.linear_model import LogisticRegression

from benchmarks.peers.environments import Peer, Unavailable
from benchmarks.peers.fastest import fastest, ways
from benchmarks.peers.measure import Row, Times, faster, markdown, ratio
from benchmarks.peers.rows import track
from benchmarks.peers.whole_figure import SHARED, whole_figure


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


class Stand:
    """A peer of whom it is known how fast it is, and what it reaches."""

    def __init__(self, wall: dict[tuple[str, int], float], objective: dict[str, float]) -> None:
        self.wall, self.objective = wall, objective

    def ask(self, do: str, solver: str, threads: int) -> dict[str, float]:
        return {"wall": self.wall[solver, threads], "cpu": 1.0, "objective": self.objective[solver]}


def test_a_peer_races_in_its_fastest_way_that_reaches_the_same_objective() -> None:
    wall = {("lbfgs", 1): 0.11, ("lbfgs", 2): 0.35, ("liblinear", 1): 0.06, ("liblinear", 2): 0.07}
    candidates = ways(2, ("lbfgs", "liblinear"))
    equal = Stand(wall, {"lbfgs": 0.5, "liblinear": 0.50001})
    assert fastest(equal, {"do": "fit"}, candidates).words == "liblinear, 1 thread"  # type: ignore[arg-type]
    worse = Stand(wall, {"lbfgs": 0.5, "liblinear": 0.51})
    found = fastest(worse, {"do": "fit"}, candidates)  # type: ignore[arg-type]
    assert found.words == "lbfgs, 1 thread"
    assert "liblinear, 2 threads: 0.070 s (1.000 s CPU), objective 2.0e-02 above" in found.notes[0]
    assert ways(1) == [{"threads": 1}]


def test_the_figure_counts_every_mechanism_once(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    few = ["non-private", "cms-output", "dp-gd"]
    monkeypatch.setattr("benchmarks.peers.whole_figure.those_that_fit", lambda dataset: few)

    class Unit:
        def ask(self, do: str, lam: float, solver: str, threads: int) -> dict[str, float]:
            return {"wall": 2.0, "cpu": 1.0, "objective": 0.5}

    row = whole_figure(track(None, tmp_path, rows=300), Unit(), budgets=2, seeds=3, repeats=1)[0]  # type: ignore[arg-type]
    assert set(row.raw["fits"]) == {SHARED, *few}
    assert all(fits > 0 for fits in row.raw["fits"].values())
    ((wall, cpu),) = row.raw["rounds"]
    assert 0 < sum(row.raw["fits"].values()) <= cpu
    assert wall > 0
    assert row.reached is None  # a part of the figure is not the figure
