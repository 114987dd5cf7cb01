"""Noise scales as formulas written out here: every form that declares no event, and every published form.

What declares an event is accounted for from that event alone (`tests/privacy/test_declared_events.py`). For the others, and
for formulas that are kept because they were published, the event could not tell a wrong constant.
"""

import math
from collections.abc import Callable
from typing import Any

import pytest

import dpviz
from dpviz.mechanisms import Calibration
from dpviz.models import get_model
from dpviz.privacy.accounting.mixture import mixture_rdp_epsilon
from dpviz.privacy.budget import Budget, Neighbouring
from dpviz.privacy.objective import PerturbedObjective

ALL = dpviz.list_mechanisms()
N, LAM, BETA, EPS, DELTA = 400, 1e-2, 0.25, 1.5, 1e-5
SETTING, BUDGET = get_model("logistic").setting(N, 10, LAM), Budget(EPS, DELTA)
LOG = math.log(1 / DELTA)
RHO = (math.sqrt(LOG + EPS) - math.sqrt(LOG)) ** 2  # Bun, Steinke 2016, Proposition 1.3
#: (calibration, the value of every knob) -> noise scale
Scale = Callable[[Calibration, dict[str, Any]], float]


def solved(cal: Calibration, bound: str, share: float = 1.0) -> float:
    """The noise at which the density of the minimiser gives a share of the budget; twice that where this is not the noise."""
    relation = cal.neighbouring

    def reached(sigma: float) -> float:
        Lam = cal.details["Lam"]
        return PerturbedObjective(G=1.0, beta=BETA, Lam=Lam, relation=relation, bound=bound).epsilon(share * DELTA, sigma)

    exact = reached(cal.noise_scale) <= share * EPS * (1 + 1e-6) and reached(0.999 * cal.noise_scale) > share * EPS
    return cal.noise_scale if exact else 2 * cal.noise_scale


def hops(v: dict[str, Any]) -> int:
    """How many contributions of a row a neighbour differs by."""
    return 1 if v.get("relation") == "add-remove" else 2


def clipped(v: dict[str, Any]) -> float:
    """The longest contribution of a row: gradients are at most 1 long on rows in the unit ball, half of it at theta = 0."""
    return min(1.0, float(v["clip_norm"]) or 0.5)


def amp(cal: Calibration, v: dict[str, Any]) -> float:
    share = v["output_share"]
    eps, delta, out = (1 - share) * EPS, (1 - share) * DELTA, (share * EPS, share * DELTA)
    moved = 2 * N * N ** -v["stop_power"] / cal.details["Lam"]  # two errors of n gamma/Lam, gamma = 1/n^2 by default
    assert cal.details["output_sensitivity"] == pytest.approx(moved)
    if v["noise"] == "published":  # Iyengar et al. 2019, Algorithm 1, lines 2, 3 and 6
        fraction = 0.88671 + 0.0186607 / EPS**0.372906
        assert cal.details["Lam"] == pytest.approx(max(N * LAM, 2 * BETA / (eps - fraction * eps)))
        assert cal.details["sigma_output"] == pytest.approx(moved * (1 + math.sqrt(2 * math.log(1 / out[1]))) / out[0])
        return 2 * (1 + math.sqrt(2 * math.log(1 / delta))) / (fraction * eps)
    assert cal.details["Lam"] == pytest.approx(max(N * LAM, BETA / math.expm1(v["curvature_share"] * eps)))
    assert cal.details["sigma_output"] == pytest.approx(moved / _mu(*out))
    return solved(cal, "two-sided", 1 - share)


def _mu(epsilon: float, delta: float) -> float:
    from dp_accounting import get_sigma_gaussian

    return 1 / get_sigma_gaussian(epsilon, delta)


def dp_agd(cal: Calibration, v: dict[str, Any]) -> float:
    splits = v["splits"] or 30  # the rule for linear models
    choice = min((EPS / 2 / splits) ** 2 / 2, RHO / splits)  # Lee, Kifer 2018, in the authors' code
    assert cal.details["rho_total"] == pytest.approx(RHO)
    assert cal.details["rho_nmax"] == pytest.approx(choice)
    # a choice is (eps')-bounded range: eps'^2/8-zCDP
    assert cal.details["gumbel_scale"] == pytest.approx(hops(v) * v["clip_loss"] / math.sqrt(8 * choice))
    return hops(v) * clipped(v) / math.sqrt(2 * choice / (2 * math.log(1.25 / DELTA)))


def pidp(cal: Calibration, v: dict[str, Any]) -> float:
    first, second, half = v["share"] * EPS, (1 - v["share"]) * EPS, DELTA / 2
    rounds, steps = v["rounds"], v["rounds"] * v["local_steps"]
    rule = 2 * math.sqrt(2) * rounds * math.sqrt(math.log(1.25 * rounds / half)) / (N * LAM * second)
    assert cal.details["sigma_c"] == pytest.approx(rule)
    assert cal.details["threshold"] == pytest.approx(2 * (v["radius"] / LAM) * half * (1 + math.exp(-first)))
    return v["c"] * math.sqrt(steps * math.log(1 / half)) / (N * first)


def share_in_a_batch(v: dict[str, Any]) -> float:
    return 1 / N if v["noise"] == "table-1" else v["batch"] / math.sqrt(N)


def input_perturbation(cal: Calibration, v: dict[str, Any]) -> float:
    root = 1.0 if v["theorem"] == "pl" else math.sqrt(LAM)
    return math.sqrt(v["c"] * cal.details["steps"] * LOG / (N * (N - 1) * root)) / EPS


def cms_objective(cal: Calibration, v: dict[str, Any]) -> float:
    terms = 2 if v["slack"] == "published" else 1
    assert cal.details["Lam"] == pytest.approx(N * LAM)
    if v["slack"] == "joint":  # curvature costs nothing from Lam = 8 beta/epsilon on, here 1.33
        return 2 / EPS
    return 2 / (EPS - terms * math.log(1 + BETA / (N * LAM)))


def kst(cal: Calibration, v: dict[str, Any]) -> float:
    assert cal.details["Lam"] == pytest.approx(N * LAM + 2 * BETA / EPS)
    return hops(v) * math.sqrt(8 * math.log(2 / DELTA) + 4 * EPS) / EPS


def tight(cal: Calibration, v: dict[str, Any]) -> float:
    assert cal.neighbouring is Neighbouring(v["relation"])
    share = v["curvature_share"] or 0.1  # the rule's for few rows
    assert cal.details["Lam"] == pytest.approx(max(N * LAM, BETA / math.expm1(share * EPS)))
    return solved(cal, v["bound"])


def permuted(name: str) -> Scale:
    """RSGD by Rényi divergence: the noise at which the mixture of its positions gives the budget."""

    def scale(cal: Calibration, v: dict[str, Any]) -> float:
        built = ALL[name].from_params(v).settle(SETTING, cal.budget)
        sizes, weights = built.position_sensitivities(SETTING), built.batches(SETTING)[2]  # type: ignore[attr-defined]
        conversion = "mironov" if v["accounting"] == "published" else "improved"
        reached, order = mixture_rdp_epsilon(DELTA, sizes, weights, cal.noise_scale, conversion)
        assert cal.details["alpha"] == pytest.approx(order)
        return cal.noise_scale if reached == pytest.approx(EPS, rel=1e-6) else 2 * cal.noise_scale

    return scale


def mironov(cal: Calibration, params: dict[str, Any]) -> float:
    return cal.sensitivity * (math.sqrt(2 * LOG + 2 * EPS) + math.sqrt(2 * LOG)) / (2 * EPS)


#: mechanism -> (forms that it is for, the noise scale); the forms are those with these values of knobs, {} for all
BY_HAND: dict[str, tuple[dict[str, tuple[Any, ...]], Scale]] = {
    "amp": ({}, amp),
    "bassily-sgd": ({"mode": ("faithful",)}, lambda c, v: clipped(v) * N * math.sqrt(32 * math.log(N / DELTA) * LOG) / EPS),
    "bolt-on-psgd": ({"noise": ("classical",)}, lambda c, v: math.sqrt(2 * math.log(1.25 / DELTA)) * c.sensitivity / EPS),
    "cms-objective": ({}, cms_objective),
    "cms-output": ({"refined": (False,)}, lambda c, v: (2 / (N * LAM) + 2e-10 / LAM) / EPS),
    "dbdp": ({}, lambda c, v: v["c"] * math.sqrt(c.details["steps"] * LOG) * share_in_a_batch(v) / EPS),
    "dbdp-pi": ({}, lambda c, v: v["c"] * math.sqrt(v["rounds"] * v["local_steps"] * LOG) / (N * EPS)),
    "dp-agd": ({}, dp_agd),
    "dp-gd": ({"noise": ("published",)}, lambda c, v: clipped(v) * math.sqrt(v["c"] * c.details["steps"] * LOG) / (N * EPS)),
    "dp-svrg": (
        {"noise": ("published",)},
        lambda c, v: clipped(v) * math.sqrt(v["c"] * v["rounds"] * v["inner_steps"] * LOG) / (N * EPS),
    ),
    "input-perturbation": ({}, input_perturbation),
    "kst-objective": ({}, kst),
    "majority": ({"private": (True,)}, lambda c, v: 2 / EPS),
    "nsgd": ({"accounting": ("published",)}, mironov),
    "objective-tight": ({}, tight),
    "outpert-gd": (
        {"calibration": ("published",)},
        lambda c, v: math.sqrt(2 * math.log(2 / DELTA)) * 5 * (BETA + 2 * LAM) / (N * LAM * (BETA + LAM)) / EPS,
    ),
    "pidp-sgd": ({}, pidp),
    "rsgd": ({"accounting": ("rdp-improved", "published")}, permuted("rsgd")),
    "rsgd-ar": ({"accounting": ("rdp-improved", "published")}, permuted("rsgd-ar")),
    "song-sgd": ({}, lambda c, v: 2 * clipped(v) / c.details["smallest_batch"] * v["passes"] / EPS),
}


def by_hand(name: str, params: dict[str, Any]) -> bool:
    """Whether there is a formula here."""
    values = ALL[name].defaults() | params
    return name in BY_HAND and all(values[k] in chosen for k, chosen in BY_HAND[name][0].items())
