"""The app in processes of its own, and nginx in front of them, for measurements."""

from __future__ import annotations

import os
import re
import shutil
import signal
import socket
import subprocess
import sys
import time
import urllib.request
from collections.abc import Iterator, Sequence
from contextlib import contextmanager, suppress
from pathlib import Path

PATIENCE = 120.0  # seconds after which a server that does not answer counts as lost
LOADED = 15.0  # seconds in which a server has loaded what a class uses, without a session
ROOT = Path(__file__).resolve().parents[1]


def free_port() -> int:
    """A port of this machine that nothing listens on."""
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        port: int = probe.getsockname()[1]
        return port


def wait_for(address: str, process: subprocess.Popen[bytes]) -> None:
    """Returns when an app answers at an address."""
    end = time.monotonic() + PATIENCE
    while True:
        with suppress(OSError):
            urllib.request.urlopen(f"{address}/_stcore/health", timeout=PATIENCE).close()
            return
        assert process.poll() is None, "the server stopped"
        assert time.monotonic() < end, "the server does not answer"
        time.sleep(0.02)


def configured(hosts: Sequence[str]) -> str:
    """The configuration of nginx that ships, whose two processes are replaced by those at `hosts`."""
    shipped = (ROOT / "deploy" / "nginx.conf").read_text()
    first, second, *_ = re.findall(r" *server app\d:8501.*\n", shipped)
    return shipped.replace(second, "").replace(first, "".join(first.replace("app1:8501", host) for host in hosts))


@contextmanager
def nginx(folder: Path, servers: Sequence[Server]) -> Iterator[str]:
    """The address of nginx with the configuration that ships, in front of these processes."""
    port = free_port()
    text = configured([server.address.split("/")[2] for server in servers])
    text = text.replace("listen 8080", f"listen 127.0.0.1:{port}").replace("/tmp/", f"{folder}/")
    (folder / "nginx.conf").write_text(text)
    program = shutil.which("nginx") or "/usr/sbin/nginx"
    command = [program, "-c", str(folder / "nginx.conf"), "-g", "daemon off;", "-e", str(folder / "error.log")]
    with subprocess.Popen(command) as process:
        try:
            address = f"http://127.0.0.1:{port}/dpviz"
            wait_for(address, process)
            yield address
        finally:
            process.terminate()


class Server:
    """The app in a process of its own."""

    def __init__(
        self, folder: Path, log: str = "log", base_path: str = "", root: Path = ROOT, start: Sequence[str] = ("-m", "dpviz")
    ) -> None:
        """
        Args:
            folder: of its log and caches.
            root: of the sources.
            start: what Python is to run.
        """
        port = free_port()
        self.address = f"http://127.0.0.1:{port}/{base_path}".rstrip("/")
        command = [sys.executable, *start, "app", "--port", str(port), "--no-browser", "--base-path", base_path]
        self._log = (folder / log).open("wb")
        self._process = subprocess.Popen(
            command,
            cwd=folder,
            env=os.environ | {"PYTHONPATH": str(root), "DPVIZ_CACHE": str(folder)},
            stderr=self._log,
            stdout=self._log,
            start_new_session=True,
        )
        wait_for(self.address, self._process)

    def counted(self) -> dict[str, int]:
        """Open files, threads and resident megabytes."""
        here = Path(f"/proc/{self._process.pid}")
        pages = int((here / "statm").read_text().split()[1])
        count = {name: len(list((here / part).iterdir())) for name, part in (("files", "fd"), ("threads", "task"))}
        return count | {"megabytes": pages * os.sysconf("SC_PAGE_SIZE") >> 20}

    def peak(self) -> int:
        """The most megabytes that it has had."""
        status = Path(f"/proc/{self._process.pid}/status").read_text()
        return int(status.partition("VmHWM:")[2].split()[0]) >> 10

    def processor_seconds(self) -> float:
        """Processor time of the process so far, with that of its children that have ended."""
        fields = Path(f"/proc/{self._process.pid}/stat").read_text().rpartition(")")[2].split()
        return sum(map(int, fields[11:15])) / os.sysconf("SC_CLK_TCK")

    @property
    def process(self) -> int:
        """Its number, for a profiler."""
        return self._process.pid

    def kill(self, number: int) -> int:
        """Ends it by a signal; returns the exit code."""
        self._process.send_signal(number)
        code = self._process.wait(PATIENCE)
        self._log.close()
        return code

    def stop(self) -> None:
        """Ends it."""
        self.kill(signal.SIGTERM)
