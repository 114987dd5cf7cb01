"""Shadow models of membership attacks on ordinary rows: ours against loops in PyTorch as other auditing tools have them."""

import numpy as np

from benchmarks.peers.environments import Peer
from benchmarks.peers.measure import Row, Times, faster
from benchmarks.peers.rows import Track
from dpviz.auditing.attacks.halves import SHADOW, Halves, signals, train_models
from dpviz.experiments.run.spec import RunSpec

LAM = 1e-3
#: way of training -> settings of SGD: the published settings of two tools for tabular rows
WAYS = {
    "as ml_privacy_meter's tabular configuration (purchase.yaml: 100 epochs)": {"epochs": 100, "batch": 256, "rate": 0.1},
    "as LeakPro's example on Adult (10 epochs, momentum)": {"epochs": 10, "batch": 128, "rate": 0.1, "momentum": 0.8},
}


def shadows(track: Track, peer: Peer, *, ours: int, theirs: int, rounds: int, epochs: int | None = None) -> list[Row]:
    """Seconds a shadow model on half of the rows, signals of all rows included; linear models without noise on both sides.

    Args:
        ours: shadow models that we train in a round.
        theirs: shadow models that a peer trains in a round; they are independent, so more take as many times longer.
        rounds: how often both take turns.
        epochs: of all ways, where not those of `WAYS`.
    """
    halves = Halves.make(RunSpec(track.dataset, mechanism="non-private", lam=LAM, row_scaling="unit", seeds=1))
    rows, model = track.setup.problem.rows, track.setup.problem.model
    taken, right = Times(ours), []

    def train() -> None:
        for _, _, theta in train_models(halves, [(SHADOW, ours)]):
            _ = signals(model, theta, rows)
            right.extend(model.measure(theta, track.setup.test)[1])

    others: dict[str, tuple[Times, list[float]]] = {words: (Times(theirs), []) for words in WAYS}
    halves.train(SHADOW, 0)  # warm
    for k in range(rounds):
        taken.take(train)
        for words, way in WAYS.items():
            request = {"momentum": 0.0} | way | ({} if epochs is None else {"epochs": epochs})
            answer = peer.ask("shadow", models=theirs, threads=1, seed=k, **request)
            others[words][0].add(answer["wall"], answer["cpu"])
            others[words][1].append(answer["accuracy"])
    return [
        faster(
            f"Shadow models, logistic: {words}",
            times,
            taken,
            wanted=100.0 if words.startswith("as ml_privacy_meter") and epochs is None else None,
            notes=(
                f"{ours:,} models of ours in a round and {theirs} of the peer's, on halves of {halves.size:,} rows.",
                f"1,024 models: {_hours(times):.2g} h against {_hours(taken):.2g} h by wall time. The peer trains one by one, so "
                "that its hours are 1,024 times those of one model, not measured.",
                f"Test accuracy: ours {float(np.mean(right)):.1%} (at the minimum), the peer's {float(np.mean(accuracy)):.1%}.",
            ),
        )
        for words, (times, accuracy) in others.items()
    ]


def _hours(times: Times) -> float:
    """Hours of wall time for 1,024 models."""
    return 1024 * float(np.median(times.wall)) / 3600
