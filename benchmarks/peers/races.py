"""Models per second: DP-SGD and one hidden layer against Opacus, objective perturbation against diffprivlib."""

import functools
import itertools
import math
import statistics

import numpy as np

from benchmarks.peers.environments import Peer, Unavailable
from benchmarks.peers.fastest import SOLVERS, fastest, ways
from benchmarks.peers.measure import Row, Times, faster, ratio
from benchmarks.peers.rows import Track
from dpviz.common.random import spawn
from dpviz.common.threads import processors
from dpviz.experiments.run.resolve import resolve
from dpviz.experiments.run.setup import setup_for
from dpviz.experiments.run.spec import RunSpec
from dpviz.mechanisms import Training, get_mechanism
from dpviz.models import get_model
from dpviz.models.problem import Problem, accuracy
from dpviz.privacy.budget import Budget, default_delta

EPSILONS = tuple(float(e) for e in np.geomspace(0.01, 10.0, 10))
SEEDS = 10
OBJECTIVE = ("cms-objective", "objective-tight")
MODES = ("hooks", "functorch", "ew", "ghost")
LAM = 1e-3
AT_ONE = int(np.argmin(np.abs(np.log(EPSILONS))))  # the budget at which accuracies are compared


def opacus(track: Track, peer: Peer, threads: int, *, model: str, batch: int, epochs: float, rounds: int) -> list[Row]:
    """DP-SGD: 10 budgets x 10 seeds of ours in one call, against Opacus model by model.

    Both sides take the same number of steps with the same sampling rate, clip norm, step size, regularisation and
    noise multiplier, in single precision. Our replicas of a seed share Poisson batches; seeds are independent.
    """
    named = f"DP-SGD, {get_model(model).label.lower()}"
    trained = get_model(model)
    problem = Problem(track.setup.problem.rows, trained, LAM)
    setting, n = problem.setting, problem.n
    rate = 1 / math.ceil(n / batch)  # what Opacus makes of the loader's batch size
    mechanism = get_mechanism("dp-sgd").from_params({"sampling_rate": rate, "epochs": epochs, "relation": "add-remove"})
    calibrations = [mechanism.calibrate(setting, Budget(e, default_delta(n))) for e in EPSILONS]
    request = {
        "steps": int(calibrations[AT_ONE].details["steps"]),
        "batch": batch,
        "clip_norm": mechanism.value("clip_norm", setting),
        "lam": LAM,
        "noise_multiplier": calibrations[AT_ONE].details["noise_multiplier"],
        "rate": float(Training(problem, calibrations, []).step_sizes[AT_ONE]),
        "width": 0 if trained.width is None else (setting.m - 1) // (setting.d + 2),
    }

    failures: list[str] = []

    def fastest(loader: str) -> tuple[str, int]:
        trial = request | {"steps": min(20, request["steps"]), "loader": loader, "seed": 0}
        found = {}
        for mode, count in itertools.product(MODES, sorted({1, threads})):
            try:
                peer.ask("train", mode=mode, threads=count, **trial | {"steps": 2})  # warm
                found[mode, count] = peer.ask("train", mode=mode, threads=count, **trial)["wall"]
            except Unavailable as problem:
                failures.append(f"Opacus's {mode} was left out: {str(problem).splitlines()[0][:160]}")
        if not found:
            raise Unavailable(failures[-1])
        return min(found, key=lambda which: found[which])

    ways = {loader: fastest(loader) for loader in ("documented", "gathered")}
    streams = spawn(0, SEEDS)
    many = spawn(1, SEEDS * len(EPSILONS))
    ours, alone = Times(SEEDS * len(EPSILONS)), Times(len(many))
    theirs = {loader: Times() for loader in ways}
    reached: dict[str, list[float]] = {loader: [] for loader in ways}
    mechanism.fit(Training(problem, calibrations[:1], streams[:1], record=False))  # warm
    for k in range(rounds):
        theta = ours.take(lambda: mechanism.fit(Training(problem, calibrations, streams, record=False))).theta
        alone.take(lambda: mechanism.fit(Training(problem, [calibrations[AT_ONE]], many, record=False)))
        for loader, (mode, count) in ways.items():
            answer = peer.ask("train", mode=mode, threads=count, loader=loader, seed=k, **request)
            theirs[loader].add(answer["wall"], answer["cpu"])
            reached[loader].append(answer["accuracy"])
    mine = float(accuracy(problem.model, theta[AT_ONE], track.setup.test).mean())
    wanted = 300.0 if setting.linear else 25.0
    rows = []
    for loader, (mode, count) in ways.items():
        other = statistics.mean(reached[loader])
        same = abs(mine - other) <= 0.01
        words = "as documented" if loader == "documented" else "with a batched loader of our own"
        rows.append(
            faster(
                f"{named}: Opacus {words}",
                theirs[loader],
                ours,
                wanted=wanted if loader == "documented" else None,
                also=same,
                notes=(
                    f"{request['steps']} steps, mean batch {n * rate:,.0f}, {SEEDS} seeds x {len(EPSILONS)} budgets in one call.",
                    f"Opacus's fastest way here: {mode}, {count} thread(s).",
                    f"Test accuracy at ε = 1: ours {mine:.1%}, Opacus {other:.1%}" + ("." if same else ": **not equal ± 1 %**."),
                    *dict.fromkeys(failures),
                ),
            )
        )
    rows.append(
        faster(
            f"{named}: the same, {len(many)} seeds with batches of their own",
            theirs["documented"],
            alone,
            wanted=wanted,
            notes=("One budget, so that no two models share a batch.",),
        )
    )
    return rows


def diffprivlib(track: Track, peer: Peer, threads: int, rounds: int) -> list[Row]:
    """Objective perturbation: 100 models of ours to a gradient norm of 1e-12, against diffprivlib model by model, as it comes."""
    problem = Problem(track.setup.problem.rows, get_model("logistic"), LAM)
    ours = {name: Times(SEEDS * len(EPSILONS)) for name in OBJECTIVE}
    theirs, streams, norms, accurate = Times(len(EPSILONS)), spawn(0, SEEDS), {}, {}
    task = {"do": "fit", "lam": LAM, "epsilons": list(EPSILONS), "tol": 1e-4, "max_iter": 100}
    way = fastest(peer, task | {"seed": 0}, ways(threads))
    for k in range(rounds):  # kernels and peer are warm from `at_defaults` and `fastest`
        for name, taken in ours.items():
            mechanism = get_mechanism(name)()
            calibrations = [mechanism.calibrate(problem.setting, Budget(e, default_delta(problem.n))) for e in EPSILONS]
            theta = taken.take(lambda m=mechanism, c=calibrations: m.fit(Training(problem, c, streams, record=False))).theta
            norms[name] = gradient_norms(problem, name, theta).max()
            accurate[name] = accuracy(problem.model, theta[-1], track.setup.test).mean()
        answer = peer.ask(**task, seed=k, **way.request)
        theirs.add(answer["wall"], answer["cpu"])
    return [
        faster(
            f"Objective perturbation, {name}, λ = {LAM:g}: diffprivlib as it comes (tol 1e-4)",
            theirs,
            taken,
            wanted=25.0,
            also=bool(norms[name] <= 1e-12),
            notes=(
                f"{SEEDS} seeds x {len(EPSILONS)} budgets from {EPSILONS[0]:g} to {EPSILONS[-1]:g}; largest gradient norm of "
                f"ours {norms[name]:.1e}; diffprivlib took {min(answer['steps'])} to {max(answer['steps'])} steps.",
                *way.notes,
                f"Test accuracy at ε = {EPSILONS[-1]:g}: ours {accurate[name]:.1%}, diffprivlib {answer['accuracy'][-1]:.1%}.",
            ),
        )
        for name, taken in ours.items()
    ]


def at_defaults(track: Track, peer: Peer, rounds: int) -> list[Row]:
    """Objective perturbation with nothing set: models trained in the time of two fits of scikit-learn at the papers' λ."""
    way, rows = fastest(peer, {"do": "fit", "lam": LAM}, ways(processors(), SOLVERS)), []
    for name in OBJECTIVE:
        runs = [resolve(RunSpec(track.dataset, mechanism=name, epsilon=epsilon)) for epsilon in EPSILONS]
        problems, built = [setup_for(run.spec).problem for run in runs], runs[0].spec.build()
        calibrations = [built.calibrate(at.setting, run.budget) for at, run in zip(problems, runs, strict=True)]
        training = Training(problems[0], calibrations, spawn(0, SEEDS), record=False, problems=problems)
        ours, two = Times(SEEDS * len(EPSILONS)), Times()
        for _ in range(rounds):
            ours.take(functools.partial(built.fit, training))
            fits = [peer.ask("fit", lam=LAM, **way.request) for _ in range(2)]
            two.add(sum(fit["wall"] for fit in fits), sum(fit["cpu"] for fit in fits))
        found = ratio(two.wall, ours.wall)
        rows.append(
            Row(
                f"Objective perturbation, {name}, defaults: models in the time of two fits of scikit-learn ({way.words})",
                found.text(),
                ratio(two.cpu, ours.cpu).text(),
                "at least 25 models",
                found.median >= 25,
                (f"{SEEDS} seeds x {len(EPSILONS)} budgets, λ from {problems[-1].lam:g} to {problems[0].lam:g}.", *way.notes),
            )
        )
    return rows


def gradient_norms(problem: Problem, mechanism: str, theta: np.ndarray) -> np.ndarray:
    """(E, S) gradient norms of the perturbed objectives at theta (E, S, m), in double precision."""
    built = get_mechanism(mechanism)()
    streams, out = spawn(0, theta.shape[1]), np.empty(theta.shape[:2])
    for e, epsilon in enumerate(EPSILONS):
        calibration = built.calibrate(problem.setting, Budget(epsilon, default_delta(problem.n)))
        linear = calibration.noise_scale * calibration.noise_family.sample(streams, problem.m)
        total = problem.model.sum_gradient(theta[e], problem.rows) + linear + calibration.details["Lam"] * theta[e]
        out[e] = np.linalg.norm(total / problem.n, axis=1)
    return out
