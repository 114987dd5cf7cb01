"""The package's version, and a fingerprint of the code that computes results."""

from __future__ import annotations

import hashlib
from functools import cache
from pathlib import Path

__version__ = "0.1.0"

_NOT_ENGINE = ("dashboard", "figures")


@cache
def engine_version() -> str:
    """Version plus a hash of the engine's source: a stored result is never taken for one of other code."""
    root = Path(__file__).parents[1]
    digest = hashlib.sha256()
    for path in sorted(root.rglob("*.py")):
        relative = path.relative_to(root)
        if relative.parts[0] not in _NOT_ENGINE:
            digest.update(relative.as_posix().encode())
            digest.update(path.read_bytes())
    return f"{__version__}+{digest.hexdigest()[:12]}"
