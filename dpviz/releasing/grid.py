"""The grid of published numbers: noise is added and parameters are rounded so that no low bit depends on a row.

What goes wrong without it. Parameters theta in doubles plus noise in doubles is rounded to a double whose low bits depend on
the exact theta, however good the noise is: which results are possible at all, and how often, tells two tables apart with
certainty (Haney, Desfontaines, Hartman, Shrestha, Hay 2022, "Precision-based attacks and interval refining"; for the noise
alone Mironov 2012).

**Noise on a finished model** (the output family) [ours]. Let g be the grid's step, a power of two that follows from the
calibrated noise scale alone, R the rounding of each coordinate to a multiple of g, and N the real-valued noise of the proof.
Published is

    R(theta) + R(N).

Both are whole multiples of g, added as whole numbers, and converted to doubles without rounding (below 2^53 g, else refused). As
R(theta) is on the grid, R(theta) + R(N) = R(R(theta) + N): the proved mechanism with real-valued noise on R(theta), and then a
rounding, which is post-processing. Two things are left, and both are accounted for:

- R moves each coordinate by at most g/2, on either of two neighbours, so R(theta) has the sensitivity D + g sqrt(m) where theta
  has D. The noise is larger by that factor, about 1 + 2^-30 sqrt(m) scale/D.
- N is drawn with 513 binary digits (`sampler`). But for a chance of 2^-740 no normal draw is beyond 32; then a coordinate is off
  by less than 32 (2 sqrt(m + 1) + 1) 2^-513 scale < 2^-506 sqrt(m + 1) scale. That changes R(N) only within this distance e of
  a border between two cells of width g >= 2^-31 scale, a chance of at most 2e/g + 2e/scale < 2^-473 sqrt(m + 1), because a
  coordinate has one mode and a density of at most 1/(2 scale). In all m coordinates the total variation stays below
  tau = 2^-473 (m + 1)^1.5. So P <= P' + tau <= e^eps Q' + delta + tau <= e^eps (Q + tau) + delta + tau: a proof of (eps, delta)
  for real numbers is one of (eps, delta + (1 + e^eps) tau) for what is published, and none of pure epsilon (`add_grid_slack`).

The exact theta enters through R(theta) alone, so no event in bits below g exists, and every multiple of g has under each table
the chance that the proof counts with.

**Noise inside training** (all other families). The result is rounded to a grid of public step, which as post-processing cannot
harm and takes away low bits. It does not turn draws in floating point into real numbers: that stays a condition of the proof
(`mechanisms.conditions.REAL_NOISE`), and `PROTECTION` says for each family what an attacker faces. The step is 2^-20 of
1/(n max(1, eps) max(1, lam)), the order of what one row adds to the parameters, which noise that protects it exceeds; at least
2^-44.

Noise for a release, drawn exactly with whole numbers: no draw goes through floating-point arithmetic.

A normal draw is made by Karney (2016, "Sampling exactly from the normal distribution", algorithm N), whose only ingredients are
fair bits and events of probability exp(-a/b) with whole a, b, drawn exactly by Canonne, Kamath and Steinke (2020, algorithm 1):

    k with chance ~ exp(-k/2);  kept with chance exp(-k(k - 1)/2);  x uniform in (0, 1);  kept with chance exp(-x(2k + x)/2)

so that k + x has density ~ exp(-(k + x)^2/2); the sign is a fair bit. Here x is the middle of one of 2^512 cells, chosen
uniformly. The chance of a cell is then its width times the density in its middle, which differs from the integral of the
density by less than 2^-1000 in total variation. So a draw is, up to that, a real normal draw moved by at most 2^-513 to the
middle of its cell.

Noise with density ~ exp(-|b|) in m dimensions is b = |h| g for independent h ~ N(0, I_(m+1)), g ~ N(0, I_m): |h|^2 is
Gamma((m + 1)/2, scale 2), and the Gaussian scale mixture has the characteristic function (1 + |t|^2)^(-(m + 1)/2) [ours; the
mixture is that of `dpviz.common.random`].
"""

import math
import random
from collections.abc import Callable
from dataclasses import dataclass, replace

import numpy as np

from dpviz.common.arrays import Floats
from dpviz.common.validate import InvalidInput
from dpviz.mechanisms import Calibration, Fit, Mechanism
from dpviz.models import Setting
from dpviz.privacy.budget import Budget

_BITS = 512  # so many that the slack of `grid.add_grid_slack` is below every delta in use, also times e^epsilon
DIGITS = _BITS + 1
_ONE = 1 << DIGITS  # what stands for 1 in a draw: middles of cells are odd numbers

#: (m,) numerators of the draws and their common denominator
Draws = tuple[list[int], int]


def _happens(a: int, b: int, source: random.Random) -> bool:
    """An event of probability exp(-a/b), a >= 0, b > 0 (Canonne, Kamath, Steinke 2020, algorithm 1)."""
    while a > b:
        if not _happens(b, b, source):
            return False
        a -= b
    k = 1
    while source.randrange(b * k) < a:
        k += 1
    return k % 2 == 1


def _normal(source: random.Random) -> int:
    """N(0, 1) times `_ONE` (Karney 2016, algorithm N)."""
    while True:
        k = 0
        while _happens(1, 2, source):
            k += 1
        if not all(_happens(1, 1, source) for _ in range(k * (k - 1) // 2)):
            continue
        x = 2 * source.getrandbits(_BITS) + 1
        if _happens(x * (2 * k * _ONE + x), 2 * _ONE * _ONE, source):
            y = k * _ONE + x
            return -y if source.getrandbits(1) else y


def gaussian(size: int, source: random.Random) -> Draws:
    """A draw of N(0, I)."""
    return [_normal(source) for _ in range(size)], _ONE


def gamma_sphere(size: int, source: random.Random) -> Draws:
    """A draw with density proportional to exp(-|b|)."""
    norm = math.isqrt(sum(_normal(source) ** 2 for _ in range(size + 1)))
    return [norm * _normal(source) for _ in range(size)], _ONE * _ONE


#: by the ids of `dpviz.privacy.noise`
EXACT: dict[str, Callable[[int, random.Random], Draws]] = {"gaussian": gaussian, "gamma-sphere": gamma_sphere}


_FINE, _COARSE = 30, 20  # binary digits below the noise scale, and below what one row adds
_TAU = 2.0 ** (40 - DIGITS)  # total variation of the sampler, times (m + 1)^-1.5
_LEAST = 2.0**-44  # so that parameters up to 512 are whole multiples that a double holds

EXACTLY: str = (
    "The noise is drawn exactly with whole numbers (Karney 2016) and added to the rounded model on a grid that follows from the "
    "noise scale alone, so no low bit of a published number depends on the rows (the attacks of Mironov 2012 and of Haney et al. "
    "2022). The noise is enlarged for the rounding; what is left, at most (1 + e^ε) (m + 1)^1.5 2⁻⁴⁷³ for m parameters, is in δ."
)
_ROUNDED: str = "The result is rounded to a public grid, so its low bits are not published."
PROTECTION: dict[str, str] = {
    "output": EXACTLY,
    "gradient": f"Every step draws its noise in floating point. {_ROUNDED} Earlier steps are seen through noise of later ones.",
    "objective": (
        "The noise is drawn in floating point, stands in the objective and is never added to a published number; the exact "
        f"minimiser and guessed rows determine it. {_ROUNDED} That a rounded minimiser fits many draws "
        "whatever the rows are is a reason to trust that, no proof."
    ),
    "input": (
        "The rows receive noise drawn in floating point, and only a model trained on all of them is published. " + _ROUNDED
    ),
    "local": "Every report receives noise drawn in floating point, and only a model trained on all of them is published. "
    + _ROUNDED,
    "reference": f"Nothing but a label is published by the private count; its noise is drawn in floating point. {_ROUNDED}",
}


@dataclass(frozen=True, eq=False)
class Published:
    """Parameters as they may be published.

    Attributes:
        theta: (m,) multiples of `step`.
        step: of the grid, a power of two that follows from public facts.
        exact: whether the noise was drawn exactly and added on the grid.
    """

    theta: Floats
    step: float
    exact: bool


def publish(mechanism: Mechanism, setting: Setting, cal: Calibration, fit: Fit, source: random.Random) -> Published:
    """The first replica of a fit, for publication: with noise drawn anew where it is added to a finished model, else rounded.

    Args:
        setting: public facts about the rows that were trained on.
        source: of the bits of exact noise; `random.SystemRandom()` for what is published.

    Raises:
        InvalidInput: a parameter is too large for the grid, or no number.
    """
    noise = None if fit.distribution is None else fit.distribution.select(0)
    if noise is not None and noise.family.id in EXACT and noise.scale[0] > 0:
        scale, centre = float(noise.scale[0]), np.atleast_2d(noise.centre)[0]
        step = step_of(scale)
        return Published(add_on_grid(centre, scale, noise.family.id, cal.sensitivity, source), step, True)
    step = public_step(setting.n, cal.budget.epsilon, setting.lam)
    return Published(_doubles(_multiples(fit.theta[0, 0], step), step), step, False)


def add_grid_slack(mechanism: Mechanism, cal: Calibration, m: int) -> Calibration:
    """The calibration with what its proof for real-valued noise proves of m published numbers: see the module.

    Beyond epsilon of about 300 the slack is 1, so that nothing is proved of what is published.

    >>> from dpviz import Budget, RunSpec, setup_for
    >>> cms = RunSpec("teaching", mechanism="cms-output").build()
    >>> cal = cms.calibrate(setup_for(RunSpec("teaching")).problem.setting, Budget(1.0))
    >>> print(add_grid_slack(cms, cal, 3).proved_budget)
    (ε = 1, δ = 1.22 · 10⁻¹⁴¹)
    """
    proved = cal.proved_budget
    if proved is None or mechanism.family != "output":
        return cal
    slack = (1 + math.exp(min(proved.epsilon, 700.0))) * (m + 1) ** 1.5 * _TAU
    return replace(cal, proved_budget=Budget(proved.epsilon, min(proved.delta + slack, 1 - 2.0**-53)))


def step_of(scale: float) -> float:
    """The step of the grid for a noise scale: a power of two within 2^-31 and 2^-30 of it, at least 2^-44.

    >>> step_of(1.0) == step_of(1.99) == 2.0**-30
    True
    """
    return max(math.ldexp(1.0, math.frexp(scale)[1] - 1 - _FINE), _LEAST)


def public_step(n: int, epsilon: float, lam: float) -> float:
    """The step of the grid where noise enters inside training, from public facts: see the module.

    >>> public_step(1024, 0.5, 0.1) == 2.0**-30
    True
    """
    share = 1 / (n * max(1.0, epsilon) * max(1.0, lam))
    return max(math.ldexp(1.0, math.frexp(share)[1] - 1 - _COARSE), _LEAST)


def add_on_grid(centre: Floats, scale: float, family: str, sensitivity: float, source: random.Random) -> Floats:
    """(m,) R(centre) + R(noise), exact multiples of `step_of(scale)`.

    Args:
        centre: (m,) parameters before noise.
        sensitivity: of `centre`; NaN where none is proved.
    """
    step = step_of(scale)
    if sensitivity > 0:  # pays for R(centre), and for the rounding of this line and of the calibration
        scale *= 1 + step * math.sqrt(len(centre)) / sensitivity + 2.0**-40
    draws, one = EXACT[family](len(centre), source)
    (a, b), (c, d) = scale.as_integer_ratio(), step.as_integer_ratio()
    top, bottom = a * d, b * c * one
    noise = [(2 * draw * top + bottom) // (2 * bottom) for draw in draws]  # to the nearest whole number
    return _doubles([k + z for k, z in zip(_multiples(centre, step), noise, strict=True)], step)


def _multiples(theta: Floats, step: float) -> list[int]:
    """(m,) nearest whole multiples of the step."""
    with np.errstate(over="ignore"):
        whole = np.rint(theta / step)  # division by a power of two is exact
    if not np.isfinite(whole).all():
        raise InvalidInput("mechanism", "a parameter of the model is no finite number", "Use a smaller step size.")
    return [int(value) for value in whole]


def _doubles(multiples: list[int], step: float) -> Floats:
    """(m,) the same as doubles, without rounding.

    Whether this raises is decided by the noisy numbers alone, so it tells no more than they do.

    >>> _doubles([2**53 - 1], 2.0**-53).item() == 1 - 2.0**-53
    True
    >>> _doubles([-(2**53)], 1.0)
    Traceback (most recent call last):
    dpviz.common.validate.InvalidInput: lam
    """
    if any(abs(k) >= 2**53 for k in multiples):
        cause = f"a parameter is more than {2**53 * step:.3g}, too large beside the noise to be published without rounding"
        raise InvalidInput("lam", cause, "Choose a larger lam, or a smaller ε.")
    return np.array([k * step for k in multiples])
