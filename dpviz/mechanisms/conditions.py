"""Conditions of privacy guarantees as short texts: bounded rows, convexity, exact minimum, public n, floating-point noise.

A mechanism lists those that its proof needs in `Mechanism.supposes`; its `guarantee` then ends with them.
"""

BOUNDED_ROWS: str = "rows in the unit ball"
CLIPPED_OR_BOUNDED: str = "gradients clipped, or bounded by rows in the unit ball"
BOUNDED_LABELS: str = "labels of -1 and +1"
CONVEX: str = "convex objective"
STRONGLY_CONVEX: str = "strongly convex objective"
EXACT_MINIMUM: str = "exact minimum"
ACCURATE_MINIMUM: str = "minimum of stated accuracy"
PUBLIC_CLASSES: str = "public class labels"
PUBLIC_N: str = "public number of rows"
PUBLIC_DIVISOR: str = "public: the number n that noise, steps and regularisation are divided by, the same for both neighbours"
PUBLIC_N_IF_SHUFFLED: str = "public number of rows if reports are shuffled"
PUBLIC_RANGES: str = "public ranges and categories"
REAL_NOISE: str = "real-valued noise (training draws floating-point numbers)"
SECRET_RANDOMNESS: str = "unpredictable randomness (noise of training comes from PCG64, seeded by the operating system)"
SECRET_SEED: str = "a secret seed: an attacker who knows random_state can subtract the noise"
SINGLE_PRECISION: str = "exact arithmetic (parts run in single precision)"
SMOOTH: str = "smooth loss"


def with_conditions(guarantee: str, supposes: tuple[str, ...]) -> str:
    """The guarantee followed by its conditions; those of every noisy method come last. As it is where `supposes` is empty."""
    if not supposes:
        return guarantee
    return f"{guarantee} Conditions: {'; '.join((*supposes, PUBLIC_RANGES, REAL_NOISE))}."
