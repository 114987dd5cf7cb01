"""A virtual environment for each peer, made when it is first needed, and the process that runs in it."""

from __future__ import annotations

import json
import os
import subprocess
import sys
import venv
from pathlib import Path
from types import TracebackType
from typing import Any

import sklearn

#: peer -> what pip is asked for, one call after the other
REQUIREMENTS: dict[str, tuple[tuple[str, ...], ...]] = {
    "scikit-learn": ((f"scikit-learn=={sklearn.__version__}",),),
    # diffprivlib uses what scikit-learn 1.6 took away
    "diffprivlib": (("diffprivlib==0.6.6", "scikit-learn==1.5.2"),),
    # torch first and pinned in both calls, so that opacus brings no other one
    "opacus": (("torch==2.13.0",), ("opacus==1.6.0", "torch==2.13.0")),
}


class Unavailable(RuntimeError):
    """A peer cannot be installed, does not start, or fails."""


def interpreter(peer: str, folder: Path) -> Path:
    """The Python of a peer's environment, installed where it is not there yet.

    Raises:
        Unavailable: pip fails; the last lines of what it says are in the message.
    """
    home = folder / peer
    python = home / "bin" / "python"
    stamp = home / "installed.json"
    wanted = json.dumps(REQUIREMENTS[peer])
    if stamp.is_file() and stamp.read_text() == wanted and python.exists():
        return python
    print(f"installing {peer} into {home}", flush=True)
    venv.create(home, clear=True, with_pip=True)
    for packages in REQUIREMENTS[peer]:
        command = [str(python), "-m", "pip", "install", "-q", "--disable-pip-version-check", *packages]
        done = subprocess.run(command, capture_output=True, text=True)
        if done.returncode:
            said = "\n".join(done.stderr.strip().splitlines()[-3:])
            raise Unavailable(f"{peer}: pip could not install {' '.join(packages)}: {said}")
    stamp.write_text(wanted)
    return python


class Peer:
    """A peer's process: requests go in, answers with their times come out."""

    def __init__(self, peer: str, python: Path, arrays: Path, threads: int) -> None:
        """
        Args:
            peer: key of `REQUIREMENTS`.
            python: its interpreter.
            arrays: an npz file with x, y, x_test and y_test.
            threads: threads that its libraries may use.
        """
        self.peer = peer
        script = Path(__file__).with_name(f"with_{peer.replace('-', '_')}.py")
        names = ("OMP_NUM_THREADS", "OPENBLAS_NUM_THREADS", "MKL_NUM_THREADS")
        env = {k: v for k, v in os.environ.items() if k != "PYTHONPATH"} | dict.fromkeys(names, str(threads))
        self._process = subprocess.Popen(
            [str(python), str(script), str(arrays)], stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True, env=env
        )
        try:
            self.versions: dict[str, str] = self.ask("versions")
        except Unavailable:
            self.close()
            raise

    def ask(self, do: str, **request: Any) -> dict[str, Any]:
        """The answer to a request.

        Raises:
            Unavailable: the peer fails, in its own words.
        """
        assert self._process.stdin is not None
        assert self._process.stdout is not None
        try:
            self._process.stdin.write(json.dumps({"do": do, **request}) + "\n")
            self._process.stdin.flush()
            line = self._process.stdout.readline()
        except BrokenPipeError:
            line = ""
        if not line:
            raise Unavailable(f"{self.peer} stopped with exit code {self._process.wait()}")
        answer: dict[str, Any] = json.loads(line)
        if "error" in answer:
            raise Unavailable(f"{self.peer}: {answer['error']}")
        return answer

    def close(self) -> None:
        """Ends the process."""
        if self._process.stdin:
            self._process.stdin.close()
        if self._process.stdout:
            self._process.stdout.close()
        self._process.wait()

    def __enter__(self) -> Peer:
        return self

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None) -> None:
        self.close()


def start(peer: str, folder: Path, arrays: Path, threads: int) -> Peer:
    """A peer at work in its environment."""
    return Peer(peer, interpreter(peer, folder) if peer in REQUIREMENTS else Path(sys.executable), arrays, threads)
