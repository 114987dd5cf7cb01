"""The package's version, and the version of the engine that stored results carry in their key.

The engine's version is the release's number. In a checkout, where code changes without a new number, a hash of the files of
the rooms that compute results follows it, so that a stored result is never taken for one of other code.
"""

import hashlib
import inspect
import uuid
from functools import cache
from pathlib import Path

__version__ = "0.2.0"

#: the rooms that compute what is stored
ROOMS = ("common", "datasets", "models", "privacy", "influence", "mechanisms", "experiments")
#: rooms whose code matters to verdicts on claims, beside `ROOMS`
OF_VERDICTS = ("auditing", "papers")
_PACKAGE = Path(__file__).parents[1]
_TYPED = f"+{uuid.uuid4().hex[:12]}"


@cache
def engine_version(*also: str) -> str:
    """The release's version; in a checkout, a hash of the rooms that compute results follows.

    Args:
        also: further rooms whose code matters.

    >>> engine_version().startswith(__version__)
    True
    """
    if not (_PACKAGE.parent / "pyproject.toml").is_file():
        return __version__
    files = [path for room in (*ROOMS, *also) for end in ("py", "toml") for path in (_PACKAGE / room).rglob(f"*.{end}")]
    return f"{__version__}+{content_hash({p.relative_to(_PACKAGE).as_posix(): p.read_bytes() for p in files})}"


def foreign_code(cls: type) -> str:
    """Hash of the module of a class from outside this package; "" for dpviz's own, which `engine_version` covers."""
    if cls.__module__.partition(".")[0] == "dpviz":
        return ""
    try:
        source = Path(inspect.getfile(cls)).read_bytes()
    except (OSError, TypeError):
        return _TYPED  # at a prompt: the same in this process only
    return f"+{content_hash({cls.__module__: source})}"


def content_hash(sources: dict[str, bytes]) -> str:
    """12 hex digits that change with every byte of modules (by path), but not with how lines end."""
    digest = hashlib.sha256()
    for name in sorted(sources):
        text = sources[name].replace(b"\r\n", b"\n")
        digest.update(f"{name} {len(text)}\n".encode() + text)
    return digest.hexdigest()[:12]
