"""Ctrl-C and SIGTERM: the exit code says so, children end, and no traceback is printed, from the first moment on."""

import functools
import os
import signal
import subprocess
import sys
import time
from pathlib import Path

import pytest
from support import LIMIT, mostly_long, until

ROOT = Path(__file__).parents[2]

pytestmark = pytest.mark.skipif(not Path("/proc/self/stat").exists(), reason="children are looked up in /proc")

#: sends the command a signal when a module is about to be loaded; Python loads it at its own start
AT_IMPORT = """
import os, sys
class Sender:
    def find_spec(self, name, path=None, target=None):
        if name == {module!r}:
            os.kill(os.getpid(), {number})
sys.meta_path.insert(0, Sender())
for early in ("signal", "contextlib"):
    sys.modules.pop(early, None)
"""


def children(pid: int) -> list[int]:
    """All descendants of a process that are alive."""
    parents: dict[int, int] = {}
    for folder in Path("/proc").glob("[0-9]*"):
        try:
            fields = (folder / "stat").read_text().rpartition(")")[2].split()
        except OSError:
            continue
        if fields[0] != "Z":
            parents[int(folder.name)] = int(fields[1])
    found, new = [], [pid]
    while new:
        new = [child for child, parent in parents.items() if parent in new]
        found += new
    return found


def alive(pid: int) -> bool:
    try:
        return (Path("/proc") / str(pid) / "stat").read_text().rpartition(")")[2].split()[0] != "Z"
    except OSError:
        return False


WAYS = [("-m", signal.SIGINT, 130), ("script", signal.SIGTERM, 143), ("-m", signal.SIGTERM, 143), ("script", signal.SIGINT, 130)]


@pytest.fixture
def environment(tmp_path: Path) -> dict[str, str]:
    return os.environ | {"DPVIZ_CACHE": str(tmp_path), "OMP_NUM_THREADS": "1"}


@pytest.mark.parametrize("module", ["dpviz.cli", "dpviz.cli.start", "signal", "dpviz.cli.main", "numpy"])
@pytest.mark.parametrize(("way", "number", "code"), mostly_long(WAYS, *WAYS[:2]))
def test_no_traceback_at_any_moment_of_the_start(
    module: str, way: str, number: int, code: int, environment: dict[str, str], tmp_path: Path
) -> None:
    script = tmp_path / "dpviz"
    script.write_text("from dpviz.cli.start import main\nraise SystemExit(main())")
    (tmp_path / "sitecustomize.py").write_text(AT_IMPORT.format(module=module, number=int(number)))
    command = [sys.executable, *(["-m", "dpviz"] if way == "-m" else [str(script)]), "sweep", "--dataset", "teaching"]
    # a shell has what it starts in the background ignore Ctrl-C, and so these tests, too
    listens = functools.partial(signal.signal, signal.SIGINT, signal.SIG_DFL) if os.name == "posix" else None
    found = environment | {"PYTHONPATH": os.pathsep.join([str(tmp_path), str(ROOT)])}
    ended = subprocess.run(command, cwd=tmp_path, env=found, capture_output=True, text=True, timeout=LIMIT, preexec_fn=listens)
    assert (ended.returncode, ended.stderr) == (code, "")


def blocked(process: int) -> int:
    """The signals that a process does not listen to, as bits; 0 where it has ended."""
    try:
        status = Path(f"/proc/{process}/status").read_text()
    except OSError:
        return 0
    return int(status.partition("SigBlk:")[2].split()[0], 16)


@pytest.mark.long
@pytest.mark.parametrize(("number", "code"), [(signal.SIGINT, 130), (signal.SIGTERM, 143), (signal.SIGKILL, -9)])
def test_a_sweep_that_is_ended_takes_its_workers_along(
    number: int, code: int, environment: dict[str, str], tmp_path: Path
) -> None:
    flags = "--dataset census-20000 --mechanisms dp-gd,dp-agd --set dp-gd.steps=1000 --seeds 200 --jobs 2 --quiet"
    command = [sys.executable, "-m", "dpviz", "sweep", *flags.split(), "--out", str(tmp_path / "out.csv")]
    sweep = subprocess.Popen(command, cwd=ROOT, env=environment, stderr=subprocess.PIPE, text=True, start_new_session=True)
    workers: list[int] = []

    def started() -> bool:
        workers[:] = children(sweep.pid)
        assert sweep.poll() is None
        return len(workers) >= 3  # two workers and what joblib watches them with

    def deaf() -> bool:
        workers[:] = children(sweep.pid)
        return sum(bool(blocked(pid) & 1 << (signal.SIGINT - 1)) for pid in workers) >= 2

    until(started)
    time.sleep(0.5)  # in the middle of importing, or of a cell
    until(deaf, "two workers that Ctrl-C does not reach while they are being loaded, when they would print a traceback")
    if number == signal.SIGINT:
        os.killpg(sweep.pid, number)  # Ctrl-C reaches the workers too
    else:
        sweep.send_signal(number)
    _, said = sweep.communicate(timeout=LIMIT)
    assert sweep.returncode == code
    assert "Traceback" not in said
    until(lambda: not any(alive(pid) for pid in workers))
    assert not list(tmp_path.rglob(".part-*"))


RUN = "--dataset census-20000 --mechanism dp-gd --set steps=5000 --seeds 300"
#: options with which a command works for more than a second: alone, in threads, in jobs, or waiting for standard input
WORK = {
    "run": RUN,
    "sweep": "--dataset census-20000 --mechanisms dp-gd --set dp-gd.steps=5000 --seeds 300 --jobs 1",
    "calibrate": "- --target y",
    "list": "claims --test all --full",
    "release": f"{RUN} --out model",
    "report": f"{RUN} --page Audit --out a.html",
}

#: sends itself a signal when its main thread has worked for some seconds, not counting the loading of modules
AT_WORK = """
import os, signal, sys, threading, time
number, seconds = int(sys.argv[1]), float(sys.argv[2])
sys.argv = ["dpviz", *sys.argv[3:]]
main_thread = threading.get_ident()

def works():
    frame, own = sys._current_frames()[main_thread], False
    while frame is not None:
        if "importlib" in frame.f_code.co_filename:
            return False
        own = own or "/dpviz/" in frame.f_code.co_filename and not frame.f_code.co_filename.endswith(("/main.py", "/start.py"))
        frame = frame.f_back
    return own

def send():
    worked, last = 0.0, time.monotonic()
    while worked < seconds:
        time.sleep(0.01)
        now = time.monotonic()
        worked, last = worked + (now - last) * works(), now
    os.kill(os.getpid(), number)

threading.Thread(target=send, daemon=True).start()
from dpviz.cli.start import main
sys.exit(main())
"""


TAKEN_APART = """
import atexit, sys, types
atexit.register(print, "taken apart")
def command():
    print("served")
    {end}
sys.modules["dpviz.cli.main"] = types.SimpleNamespace(main=command)
from dpviz.cli.start import main
raise SystemExit(main())
"""


@pytest.mark.parametrize(
    ("names", "end", "code", "said"),
    [
        ([], "return 0", 0, "served\n"),
        (["--no-browser"], "raise SystemExit(None)", 0, "served\n"),
        (["app"], "raise SystemExit(2)", 2, "served\n"),
        (["run"], "raise SystemExit(2)", 2, "served\ntaken apart\n"),
    ],
)
def test_the_app_leaves_without_taking_the_interpreter_apart(names: list[str], said: str, end: str, code: int) -> None:
    """Threads that are at work then make Python abort now and then (exit code -6)."""
    script = TAKEN_APART.format(end=end)
    call = subprocess.run([sys.executable, "-c", script, *names], cwd=ROOT, capture_output=True, text=True)
    assert (call.returncode, call.stdout, call.stderr) == (code, said, "")


@pytest.mark.long
@pytest.mark.parametrize("command", WORK)
def test_a_command_at_work_ends_at_once_and_in_silence(command: str, environment: dict[str, str], tmp_path: Path) -> None:
    """Nothing is on standard error, and no half-written file stays."""
    number = signal.SIGINT if command in ("run", "report") else signal.SIGTERM
    words = [sys.executable, "-c", AT_WORK, str(int(number)), "0.3", command, *WORK[command].split()]
    pipes = {"stdin": subprocess.PIPE, "stdout": subprocess.PIPE, "stderr": subprocess.PIPE}  # standard input stays open
    ended = subprocess.Popen(words, cwd=tmp_path, env=environment | {"PYTHONPATH": str(ROOT)}, text=True, **pipes)
    ended.wait(LIMIT)
    assert (ended.returncode, ended.stderr.read()) == (128 + number, "")
    assert not [path for path in tmp_path.iterdir() if path.name.startswith((".part-", "a.html", "model"))]
