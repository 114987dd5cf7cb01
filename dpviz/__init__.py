"""dpviz: privacy-utility trade-offs of differentially private empirical risk minimisation.

>>> import dpviz
>>> result = dpviz.run(dpviz.RunSpec(dataset="breast-cancer", mechanism="dp-gd", epsilon=1.0))
>>> result.accuracy.shape
(10,)
"""

import os
import sys

if sys.orig_argv[1:3] == ["-m", "dpviz"] or os.path.basename("".join(sys.orig_argv[1:2])) in ("dpviz", "dpviz.exe"):
    import _signal  # `signal` is slow to load

    for _number in (_signal.SIGINT, _signal.SIGTERM):  # until `dpviz.cli.start` listens
        _signal.signal(_number, lambda number, _: os._exit(128 + number))


def _homes() -> dict[str, str]:
    """The module of every public name, by the stub beside this file.

    Names are loaded when they are first asked for, so that the command hears Ctrl-C from its first moment on, and its short
    answers take a moment only.
    """
    import ast
    from pathlib import Path

    stub = ast.parse(Path(__file__).with_suffix(".pyi").read_text(encoding="utf-8"))
    return {alias.name: str(node.module) for node in stub.body if isinstance(node, ast.ImportFrom) for alias in node.names}


def __getattr__(name: str) -> object:
    from importlib import import_module
    from importlib.util import find_spec

    homes = _homes()
    if name == "__all__":
        return sorted(homes)
    if name in homes:
        value = getattr(import_module(homes[name]), name)
        globals()[name] = value
        return value
    if not name.startswith("_") and find_spec(f"dpviz.{name}") is not None:
        return import_module(f"dpviz.{name}")
    raise AttributeError(f"module 'dpviz' has no attribute {name!r}")


def __dir__() -> list[str]:
    return sorted({*globals(), *_homes()})
