"""Rules of public facts for hyperparameters that are left automatic: regularisation, number of steps, step size, training time.

Key terms. Gradient descent with steps of size eta has run for the time s = eta T after T steps. Noise of standard
deviation sigma on every gradient moves each parameter by eta sqrt(T) sigma = s nu in that time, nu = sigma/sqrt(T). For
noise that composes over the steps, nu depends on the budget alone and not on T: only the time matters.

What is lost after the time s is at most R^2/(2s), as the start is not yet forgotten, and beta s^2 nu^2/2, as the noise is
not contracted; R is the norm of the minimiser, and the trace of the Hessian is at most beta for rows in the unit ball.
The sum is smallest at s^3 = R^2/(2 beta nu^2) [ours, elementary]. Both are upper bounds, so R is not known better than by
trials: `_REACH` fits the bundled sets, Adult and synthetic censuses (`python -m benchmarks.defaults`). Noise on the steps of a
linear model loses less than its bound (`time_in_noise`).

Regularisation lambda costs at most lambda R^2/2 (bias). It lowers what d parameters lose by being estimated from n rows, about
d/(2n), and what noise loses. The sum of what is lost is smallest, or its parts are equal, at the lambda of `regularisation` and
`against_objective_noise` [ours, elementary]; `against_output_noise` has its own reason. docs/default_rules.md has the table.
"""

import math
from bisect import bisect_left
from collections.abc import Callable
from dataclasses import replace

from dpviz.mechanisms.calibration import Calibration
from dpviz.models import Setting
from dpviz.privacy.accounting.gaussian import gaussian_mu
from dpviz.privacy.budget import Budget

#: R above: a minimiser is rarely longer at usual lambda; sqrt(2/lambda) bounds it, as phi(0) <= 1
_REACH = 20.0
#: standard deviation of the noise of all steps on each weight of a linear model, and the largest on a finished one, by trials:
#: later steps correct noise of earlier ones, and nothing corrects noise at the end
_IN_STEPS, _AT_THE_END = 2.0, 0.7
#: largest standard deviation on each weight of noise that falls with lambda, by trials
_ON_A_WEIGHT = 0.5
#: after this time, in units of 1/lambda, even directions without curvature have settled to e^-3
_SETTLED = 3.0
#: what lambda may be where it is automatic
LAMS = (*(float(f"{k}e{e}") for e in range(-8, 0) for k in (1, 2, 5)), 1.0)
#: least variance of one weight before the rows are seen: with more than 13 features the minimiser is longer than R
_LEAST_VARIANCE = 30.0
#: beta/d, which the mean curvature of d directions is at most, over this is the curvature that noise on the objective meets
_FLATTER = 10.0
_SHORTEST = 0.01  # smallest value of the knobs
_MOST_STEPS, _LEAST_STEPS = 200, 50
#: batches of methods that add noise to the finished model suit this budget; smaller ones take shorter steps
_LARGE = Budget(10.0, 1e-5)
_MANY_ROWS = 10_000
_ENTRIES = 10_000_000  # rows times parameters for which `_MOST_STEPS` passes are taken; larger problems get fewer


def round_lambda(value: float) -> float:
    """The nearest 1, 2 or 5 times a power of ten, by ratio, within what lambda may be.

    >>> round_lambda(1.4e-5), round_lambda(8e-3)
    (1e-05, 0.01)
    """
    return min(LAMS, key=lambda lam: abs(math.log(lam / value)))


def regularisation(n: int, d: int) -> float:
    """Lambda of the model without noise: d/(n R^2), the mode under a normal prior of weights with E|theta|^2 = R^2.

    At this lambda the bias lambda R^2/2 equals the d/(2n) that d parameters lose by estimation from n rows. The prior's variance
    R^2/d of one weight is taken as 30 where it would be less, by trials.

    Args:
        n: training rows.
        d: features, the intercept included.
    """
    return round_lambda(1 / (n * max(_REACH**2 / d, _LEAST_VARIANCE)))


LAM = "d/(400 n), at most 1/(30 n), for d features and n training rows; more where a method's noise needs it"


def against_objective_noise(setting: Setting, noise_norm: float) -> float:
    """Lambda that balances its bias and a random linear term b in the sum over rows: lambda R^2/2 + |b|^2/(2 n^2 lambda).

    The second part bounds what b loses: F(theta_b) - F* <= |b/n|^2/(2 lambda) for a lambda-strongly convex F. The sum is
    smallest at u = |b|/(n R). Where the rows' own curvature h is larger than u it holds the noise back, and less is needed: in
    a direction in which the gradient is h theta + b_j/n, E theta_j^2 = R^2/d, E b_j^2 = |b|^2/d, the mean squared error of
    (h theta + b_j/n)/(h + lambda), that is (lambda^2 R^2/d + |b|^2/(d n^2))/(h + lambda)^2, is smallest at lambda = u^2/h.

    Args:
        noise_norm: root of E|b|^2.
    """
    wanted = noise_norm / (setting.n * _REACH)
    curvature = setting.beta / (_FLATTER * setting.d)
    return max(setting.lam, round_lambda(wanted * min(1.0, wanted / curvature)))


def curvature_share(setting: Setting, epsilon: float, terms: int = 1) -> float:
    """Largest part of epsilon for the change of curvature: sqrt(k n epsilon)/750, at least 0.1 and at most 0.2.

    A part s adds about 2 s |b|^2/(2 n^2 h) to what noise loses where curvature h holds it back, as |b| is in proportion to
    1/((1 - s) epsilon). Where the proof counts k terms ln(1 + beta/Lam), the regularisation of the sum is then about
    k beta/(s epsilon) at least, whose bias is at most k beta R^2/(2 n s epsilon). The sum is smallest at an s in proportion to
    sqrt(k n epsilon) [ours, elementary]; the factor and both ends are by trials.

    Args:
        epsilon: of one row.
        terms: k.
    """
    return min(max(math.sqrt(terms * setting.n * epsilon) / 750, 0.1), 0.2)


CURVATURE_SHARE = "√(n ε)/750, at least 0.1 and at most 0.2, for n training rows"


def against_output_noise(setting: Setting, budget: Budget, calibrate: Callable[[Setting, Budget], Calibration]) -> float:
    """Least lambda at which noise on the finished model has a standard deviation of at most 1/2 on each weight.

    Labels depend on the direction of the minimiser alone. With curvature h along the mean gradient g at 0 its norm is about
    |g|/(h + lambda), and noise of norm s/lambda is s (h + lambda)/(lambda |g|) of that, which falls until lambda is about h; more
    lambda only turns the minimiser towards g [ours, elementary]. Most signs of decision values, of order 1 for rows in the unit
    ball, stay where noise moves each weight by less; 1/2 is by trials on validation rows (docs/default_rules.md).

    Args:
        calibrate: the mechanism's; the norm of its noise falls with lambda.
    """
    lams, most = (setting.lam, *(lam for lam in LAMS if lam > setting.lam)), _ON_A_WEIGHT * math.sqrt(setting.m)
    least = bisect_left(lams, True, key=lambda lam: calibrate(replace(setting, lam=lam), budget).rms_noise(setting.m) <= most)
    return lams[min(least, len(lams) - 1)]


def against_curvature_noise(setting: Setting, scale: float) -> float:
    """Lambda that keeps a noisy Hessian away from 0: half the norm sqrt(d) sigma/n of a column of the noise.

    Eigenvalues of symmetric noise with standard deviation sigma/n on its diagonal spread by sqrt(d/2) sigma/n around 0.

    Args:
        scale: sigma, of the noise on the sum over rows.
    """
    return max(setting.lam, round_lambda(math.sqrt(setting.d) * scale / (2 * setting.n)))


def clip_norm(setting: Setting) -> float:
    """Clip norm |phi'(0)|, the norm of a unit row's gradient at theta = 0; 1 for networks, whose gradients have no such bound.

    Noise is in proportion to it, while rows on the right side of the boundary, whose slope is less, lose nothing. For rows of
    norm 1 the loss that is descended is phi on that side and its tangent at 0 on the other. It is convex and falls at 0, and so
    is calibrated for classification (Bartlett, Jordan, McAuliffe 2006, Theorem 2) [ours]; it is not phi, so that bounds on
    the excess of phi do not hold. 1/2 for logistic regression; 1 for the SVM, where nothing is clipped.
    """
    return min(1.0, setting.slope_at_zero)


CLIP_NORM = "the loss's slope at 0: logistic ½, SVM 1; network 1"


def clip_norm_of_search(setting: Setting) -> float:
    """The same for methods that choose step sizes by phi itself; 1 for many rows.

    Where noise is small, the directions have to be those of the loss that compares them. By trials: clipped at 1/2, `dp-agd`
    is at majority on Bank at epsilon = 10; with few rows noise matters more, and 1/2 gains up to 8 points.
    """
    return 1.0 if setting.n >= _MANY_ROWS else clip_norm(setting)


CLIP_NORM_OF_SEARCH = f"{CLIP_NORM}; 10,000 rows or more: 1"


def longest_step(setting: Setting, clip: float = math.inf) -> float:
    """Longest useful step in units of 1/L.

    Below 2 descent is certain, clipped or not: a clipped gradient is that of a convex loss that is as smooth. Where it is
    clipped at the slope at 0, rows of norm 1 on the wrong side have no curvature. Of such rows on one line, a share p of them
    with label +1, the minimum is at the slope (1 - p)/(2 p) of those, and the curvature there is (1 - p)(3 p - 1)/(4 p), at
    most 1 - sqrt(3)/2 = 0.134, which is 0.54 L: below 3.73/L steps near it contract [ours, elementary]. Rows of norm up to
    sqrt(2/3.7) have no curvature above 2/3.7 of the bound, so that such steps are certain; norms in between may swing around
    a minimum on one line, but on all sets tried steps settle.

    The curvature of the SVM's loss is 0 but for margins in an interval, so that the mean curvature is far below its bound:
    steps of 4/L converge on all sets tried, and 1.9/L takes twice the steps. A network has no L; its unit step is as long as
    its rows without clipping bear.
    """
    if not setting.linear:
        return 1.0
    if math.isinf(setting.third):
        return 4.0
    return 3.7 if clip <= setting.slope_at_zero else 1.9


def full_steps(setting: Setting) -> int:
    """Steps over all rows: 200, for linear models fewer where n m is above 10 million; where the regulariser settles earlier.

    A network's steps are short, and with fewer it predicts majority on Adult, whatever the noise.
    """
    share = min(1.0, _ENTRIES / (setting.n * setting.m)) if setting.linear else 1.0
    affordable = max(_LEAST_STEPS, round(_MOST_STEPS * share))
    settled = math.ceil(_SETTLED / (setting.lam * longest_step(setting) * setting.unit_step))
    return max(1, min(affordable, settled))


FULL_STEPS = "200; for linear models down to 50 where rows × parameters are above 10 million; fewer where λ is large"


def splits(setting: Setting) -> int:
    """First parts of the budget of a method that chooses its steps: 30; networks of many rows need more and cheaper steps.

    By trials: with 30 a network stays at majority on Adult at epsilon = 10, with 100 those of iris lose most of what they learn.
    """
    return 30 if setting.linear or setting.n < _MANY_ROWS else 100


SPLITS = "30; network of 10,000 rows or more: 100"


SHARE = 0.1  # of the rows in a batch


def sampling_rate(setting: Setting) -> float:
    """Sampling rate q of `dp-sgd`: 0.1; a network of many rows takes five times the steps on a fifth of the rows each.

    A network's steps are at most `longest_step` long, and `training_time` at epsilon = 10 is that of 2.3 n^(2/3) of them,
    1,080 at 10,000 rows [ours]. 20 epochs at q = 0.1 are 200 steps; at q = 0.02 they are 1,000 and visit no more rows. With T
    steps z grows as q sqrt(T) where it is above 1 (Abadi et al. 2016, Theorem 1), so that nu = z C/(q n sqrt(T)) does not
    depend on q. The draw of a batch adds at most q n C^2 to the m z^2 C^2 of the noise on its sum. By trials `dp-sgd` gains on
    four sets, while others of its kind lose at small epsilon (docs/default_rules.md).
    """
    return SHARE if setting.linear or setting.n < _MANY_ROWS else SHARE / 5


SAMPLING_RATE = "0.1; network of 10,000 rows or more, with Poisson sampling: 0.02"


def reach(setting: Setting) -> float:
    """R, how long a minimiser may be expected to be; networks of large weights are no better than those of half as large ones."""
    return min(_REACH if setting.linear else _REACH / 2, math.sqrt(2 / setting.lam))


REACH = "20 (network: 10), or √(2/λ) where that is less"


def training_time(setting: Setting, noise_per_time: float) -> float:
    """Time s that balances what training and noise lose; infinite without noise and regularisation.

    Args:
        noise_per_time: nu.
    """
    settled = _SETTLED / setting.lam
    if noise_per_time <= 0:
        return settled
    beta = min(setting.beta, 1 / setting.unit_step)
    return float(min(settled, (reach(setting) ** 2 / (2 * beta * noise_per_time**2)) ** (1 / 3)))


def time_in_noise(setting: Setting, noise_per_time: float) -> float:
    """Training time with noise on the steps; of linear models s = 2/nu, when noise has moved each weight by 2.

    The curvature of the logistic loss is at most the loss: phi'' = p (1 - p) <= p <= phi, where p is the probability of the
    other class. Where the least loss is near 0 and the loss falls as R^2/(2 s), noise loses R^2/(2 s) s^2 nu^2/2 at most and the
    sum is smallest at s = sqrt(2)/nu [ours, elementary]. The factor 2 is by trials on validation rows, of other sets and of the
    SVM, too (docs/default_rules.md).

    Args:
        noise_per_time: nu.
    """
    if not setting.linear or noise_per_time <= 0:
        return training_time(setting, noise_per_time)
    return min(_SETTLED / setting.lam, _IN_STEPS / noise_per_time)


def time_before_release(setting: Setting, budget: Budget | None = None, steps: float = _MOST_STEPS) -> float:
    """Training time of methods that add Gaussian noise to the finished model, at most that of `steps` of the longest steps.

    That of a linear model ends where the noise on each weight has a standard deviation of 0.7, too.

    T steps of size eta move the result by at most 2 eta T G/n, so that its noise is s nu with nu = 2G/(n mu), where mu
    is the largest ratio of sensitivity and noise that the budget allows. Batches change nothing of this: an epoch of k
    steps takes the time k eta, and a row moves the result by 2 eta G k/n.

    Args:
        budget: None for the largest budget that batches are made for, epsilon = 10.
    """
    most = steps * longest_step(setting) * setting.unit_step
    mu = gaussian_mu(_LARGE if budget is None else budget)
    noise = 2 * setting.G / (setting.n * mu)
    bearable = _AT_THE_END / noise if setting.linear else math.inf
    return min(most, bearable, training_time(setting, noise))


def step_size(setting: Setting, steps: int, noise_scale: float, *, steeper: float = 1.0, clip: float = math.inf) -> float:
    """Step size in units of 1/L with which `steps` steps take the training time, at most the longest useful one.

    Args:
        noise_scale: standard deviation per coordinate of the noise on each step's mean gradient.
        steeper: factor by which noise on the rows raises the curvature.
        clip: clip norm of the rows' gradients.
    """
    time = time_in_noise(setting, noise_scale / math.sqrt(steps))
    return max(_SHORTEST, min(longest_step(setting, clip) / steeper, time / (steps * setting.unit_step)))


STEP_SIZE = "follows from the noise, at most 1.9 (clipped at ½: 3.7, SVM: 4, network: 1)"
