"""The program in a peer's environment: answers requests, one JSON line each, and takes its own time.

Standard library and numpy only, because a peer's environment has no dpviz.
"""

import json
import os
import resource
import sys
import time
import warnings
from collections.abc import Callable
from typing import Any

import numpy as np


def clock() -> np.ndarray:
    """(wall, CPU) seconds; CPU of all threads and finished children."""
    used = [resource.getrusage(who) for who in (resource.RUSAGE_SELF, resource.RUSAGE_CHILDREN)]
    return np.array([time.perf_counter(), sum(u.ru_utime + u.ru_stime for u in used)])


def rest(most: float = 2.0) -> None:
    """Waits until no thread is at work: those of BLAS spin on for a while after a product, as CPU time of what is timed next.

    Args:
        most: seconds after which the wait ends in any case.
    """
    end, look = time.perf_counter() + most, 0.02
    used = clock()[1]
    while time.perf_counter() < end:
        time.sleep(look)
        before, used = used, clock()[1]
        if used - before < look / 20:
            return


def serve(load: Callable[[dict[str, np.ndarray]], dict[str, Callable[..., dict[str, Any]]]]) -> None:
    """Loads the arrays of the file in argv[1], then answers requests from standard input until it ends.

    Args:
        load: arrays "x", "y" (training) and "x_test", "y_test" -> handlers by name; what a handler returns is the answer.
    """
    # libraries print to standard output, which belongs to the answers
    answers = os.fdopen(os.dup(1), "w")
    os.dup2(2, 1)
    warnings.filterwarnings("ignore")
    with np.load(sys.argv[1]) as arrays:
        handlers = load(dict(arrays))
    for line in sys.stdin:
        request = json.loads(line)
        rest()
        try:
            answer = handlers[request.pop("do")](**request)
        except Exception as error:  # noqa: BLE001 (the answer says it)
            answer = {"error": f"{type(error).__name__}: {error}"}
        print(json.dumps(answer), file=answers, flush=True)
