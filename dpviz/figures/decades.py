"""Labels of logarithmic axes whose positions are exponents."""

import numpy as np

from dpviz.figures.style import Floats


def decades(low: float, high: float, most: int = 8) -> Floats:
    """Exponents at which to label a logarithmic axis: 1, 2 and 5 where it is short, powers of ten where it is long."""
    digits = (1, 2, 5) if high - low < 2 else (1,)
    powers = range(int(np.floor(low)), int(np.ceil(high)) + 1)
    marks = np.array([p + np.log10(d) for p in powers for d in digits])
    marks = marks[(marks >= low) & (marks <= high)]
    return marks[:: max(1, len(marks) // most)]


def ticks(low: float, high: float, unit: str = "", most: int = 8) -> dict[str, object]:
    """Ticks of an axis of exponents."""
    marks = decades(low, high, most)
    return {"tickvals": marks, "ticktext": [f"{text}{unit}" for text in powers(marks)]}


def powers(exponents: Floats) -> list[str]:
    """10^t as people write it."""
    return [f"{10**t:,.0f}" if 3 <= t < 6 else f"{10**t:.3g}".replace("e+0", "e") for t in exponents]
