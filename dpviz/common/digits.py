"""Numbers for people: three significant digits, with powers of ten as textbooks print them."""

import math

_SUPERSCRIPTS = str.maketrans("-0123456789", "⁻⁰¹²³⁴⁵⁶⁷⁸⁹")


def counted(number: int, what: str) -> str:
    """ "1 row", "2,000 rows"."""
    return f"{number:,} {what}{'s' * (number != 1)}"


def three(value: float) -> str:
    """Three significant digits, without a power of ten where it can be helped.

    >>> three(0.12345), three(1234.0), three(1e-5), three(-3.78e-6)
    ('0.123', '1,230', '10⁻⁵', '−3.78 · 10⁻⁶')
    """
    if not math.isfinite(value):
        return "none" if math.isnan(value) else ("∞" if value > 0 else "−∞")
    digits, _, exponent = f"{value:.3g}".partition("e")
    if exponent and 1 <= abs(value) < 1e7:
        digits = f"{float(f'{digits}e{exponent}'):,.0f}"
    elif exponent:
        power = "10" + str(int(exponent)).translate(_SUPERSCRIPTS)
        digits = digits.removesuffix("1") + power if digits in ("1", "-1") else f"{digits} · {power}"
    return digits.replace("-", "−")
