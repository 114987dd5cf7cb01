"""The package's version, and a fingerprint of the code that computes results.

The fingerprint changes with every change of the code that could change a number, and stays when only words change (see
`source`). Stored results carry it in their key, so that a result is never taken for one of other code.

To compute it takes a second, which nobody who starts the app for the first time should wait for: it lies beside this module
under the hash of the source that it is of. `python -m dpviz.common.fingerprint` writes it anew.
"""

from __future__ import annotations

import hashlib
import inspect
import json
import threading
import uuid
from contextlib import suppress
from functools import cache
from pathlib import Path

from dpviz.common import files
from dpviz.common.source import meanings

__version__ = "0.1.0"

#: the rooms that compute what is stored
ROOMS = ("common", "datasets", "models", "privacy", "influence", "mechanisms", "experiments")
#: rooms whose code matters to verdicts on claims, beside `ROOMS`
OF_VERDICTS = ("auditing", "papers")
SHIPPED = Path(__file__).with_name("fingerprints.json")
_MOST_STORED = 32
_lock = threading.Lock()
_TYPED = f"+{uuid.uuid4().hex[:12]}"


def engine_version(*also: str) -> str:
    """Version plus fingerprint of the rooms that compute results; a few milliseconds where this source was met before.

    Args:
        also: further rooms whose code matters.
    """
    with _lock:  # the first visitors of a server come together
        return _version_of(also)


@cache
def _version_of(also: tuple[str, ...]) -> str:
    return f"{__version__}+{_recalled(_sources(also))}"


def _sources(also: tuple[str, ...]) -> dict[str, bytes]:
    root = Path(__file__).parents[1]
    rooms = (*ROOMS, *also)
    return {path.relative_to(root).as_posix(): path.read_bytes() for room in rooms for path in (root / room).rglob("*.py")}


def foreign_code(cls: type) -> str:
    """Fingerprint of the module of a class from outside this package; "" for dpviz's own, which `engine_version` covers."""
    if cls.__module__.partition(".")[0] == "dpviz":
        return ""
    try:
        source = Path(inspect.getfile(cls)).read_bytes()
    except (OSError, TypeError):
        return _TYPED  # at a prompt: the same in this process only
    return f"+{_hash({cls.__module__: source})}"


def fingerprint(sources: dict[str, bytes]) -> str:
    """12 hex digits that change with the meaning of modules (by path), and not with their words; takes a second."""
    return _hash({name: text.encode() for name, text in meanings(sources).items()})


def _hash(parts: dict[str, bytes]) -> str:
    digest = hashlib.sha256()
    for name in sorted(parts):
        digest.update(f"{name} {len(parts[name])}\n".encode() + parts[name])
    return digest.hexdigest()[:12]


def exact(sources: dict[str, bytes]) -> str:
    """64 hex digits that change with every byte, but not with how lines end; takes milliseconds."""
    hashes = {name: hashlib.sha256(text.replace(b"\r\n", b"\n")).hexdigest() for name, text in sources.items()}
    return hashlib.sha256(json.dumps(hashes, sort_keys=True).encode()).hexdigest()


def _recalled(sources: dict[str, bytes]) -> str:
    """`fingerprint`, as shipped or as kept in the cache folder, under the hash of the exact source."""
    key, path = exact(sources), files.cache_folder() / "fingerprints.json"
    shipped, stored = _read(SHIPPED), _read(path)
    if key in shipped:
        return shipped[key]
    if key not in stored:
        stored[key] = fingerprint(sources)
        with suppress(OSError):  # then the next process computes it again
            files.write(path, json.dumps(dict(list(stored.items())[-_MOST_STORED:])).encode())
    return stored[key]


def _read(path: Path) -> dict[str, str]:
    """Fingerprints by the hash of their source; none where the file is missing or damaged."""
    with suppress(OSError, ValueError):
        content = json.loads(path.read_bytes())
        if isinstance(content, dict):
            return {k: v for k, v in content.items() if isinstance(v, str) and len(v) == 12}
    return {}


def ship() -> None:
    """Writes the fingerprints of this source beside this module.

    Raises:
        OSError: the file cannot be written.
    """
    found = {exact(sources): fingerprint(sources) for sources in map(_sources, ((), OF_VERDICTS))}
    files.write(SHIPPED, (json.dumps(found, indent=0) + "\n").encode())


if __name__ == "__main__":
    ship()
