"""The command line; what commands print arrives, or the command says in one line why it does not."""

import errno
import io
import json
import os
import re
import shlex
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest
from support import LIMIT, assert_words, mostly_long
from support_shell import Shell

import dpviz
from dpviz.cli import answers
from dpviz.cli.examples import EXAMPLES
from dpviz.cli.main import COMMANDS, app_script, main, parser

LONG = "a" * 300  # a name that no file system takes


@pytest.mark.parametrize(
    ("command", "said"),
    [
        ("run --epsilon=-1", "epsilon"),
        ("run --epsilon x", "epsilon"),
        ("run --dataset nowhere", "dataset"),
        ("run --set steps=x", "steps"),
        ("run --set nothing=1", "nothing"),
        ("run --set steps", "KNOB=VALUE"),
        ("run --metric auc", "--metric"),
        ("run --metric recall@precision=2", "--metric"),
        ("app --port 0", "dpviz: --port: must "),
        ("app --port many", "dpviz: --port: must "),
        ("run adult", "Write --dataset adult."),  # a known name in the place of a file
        ("calibrate dp-gd", "Write --mechanism dp-gd."),
        ("sweep dp-gd", "Write --mechanisms dp-gd."),
        (f"run {LONG}", "is not there"),
        (f"sweep {LONG}", "is not there"),
        (f"run {LONG[:251]}", "is not there"),  # its own name is short enough, and that of a file beside it is not
        (f"predict {LONG} {LONG}", "cannot be read"),
        (f"release --dataset teaching --out {LONG}", "cannot be written"),
        (f"sweep --dataset teaching --epsilons 1 --mechanisms dp-gd --out {LONG}.csv", "cannot be written"),
    ],
)
def test_bad_input_is_one_line_and_code_2(command: str, said: str, shell: Shell) -> None:
    assert_words(shell.refused(command.split()), said, absent=["parts are finished"])


def test_a_run_is_measured_and_trained_without_noise_once(shell: Shell, monkeypatch: pytest.MonkeyPatch) -> None:
    from dpviz.experiments.run import run as of_run
    from dpviz.experiments.studies import cost

    measured, trained = list[str](), list[str]()
    measure, train = of_run.measure_models, cost.train_without_noise
    monkeypatch.setattr(of_run, "measure_models", lambda *asked: measured.extend(asked[-1]) or measure(*asked))
    monkeypatch.setattr(cost, "train_without_noise", lambda spec, *rest: trained.append(spec.mechanism) or train(spec, *rest))
    asked = ["--dataset", "breast-cancer", "--mechanism", "output-gaussian", "--epsilon", "0.01", "--lam", "0.01", "--seeds", "2"]
    made = json.loads(shell(["run", *asked, "--metric", "roc-auc", "--metric", "accuracy", "--json"]))
    assert (measured[-2:], measured.count("roc-auc"), trained) == (["accuracy", "roc-auc"], 1, ["output-gaussian"])
    assert any("no better" in remark for remark in made["remarks"])
    assert list(made["metrics"]) == ["roc-auc", "accuracy"]
    # what the pages show: the noise's part by the accuracy in closed form
    result = dpviz.run(dpviz.RunSpec("breast-cancer", mechanism="output-gaussian", epsilon=0.01, lam=0.01, seeds=2))
    parts = cost.split_cost(result)
    assert made["cost"]["noise"] == pytest.approx(parts.noise, rel=1e-12)


@pytest.mark.parametrize(
    ("arguments", "said"),
    [
        ("frobnicate", "is no command. See"),
        ("rnu", "Did you mean run?"),
        ("datasets", "Did you mean list datasets?"),
        ("run --frob", "--frob"),
        ("list nothing", "invalid choice: 'nothing'"),
        ("audit --runs", "--runs"),
        ("run --eps 1", "Did you mean --epsilon? See dpviz run --help."),  # the beginning of an option is none
        ("run --epsilon -x", "=VALUE"),
    ],
)
def test_bad_usage_is_one_line_and_code_2(arguments: str, said: str, capsys: pytest.CaptureFixture[str]) -> None:
    with pytest.raises(SystemExit) as stop:
        main(arguments.split())
    assert stop.value.code == 2
    told = capsys.readouterr().err
    assert told.count("\n") == 1
    assert said in told


@pytest.mark.parametrize("host", mostly_long(["999.1.1.1", "192.0.2.1"]))  # no address; of no machine (RFC 5737)
def test_a_host_that_is_no_address_of_this_machine_is_one_line(host: str) -> None:
    words = [sys.executable, "-m", "dpviz", "app", "--no-browser", "--host"]
    ended = subprocess.run([*words, host], cwd=app_script().parent, capture_output=True, text=True, timeout=LIMIT)
    assert (ended.returncode, ended.stderr.count("\n")) == (2, 1)
    assert ended.stderr.startswith(f"dpviz: --host: {host!r} cannot be listened on (")


def test_host_and_port_reach_streamlit(monkeypatch: pytest.MonkeyPatch, shell: Shell) -> None:
    from dpviz.dashboard.frame import server

    started: list[dict[str, Any]] = []
    guards: list[Any] = []
    monkeypatch.setattr(sys, "argv", sys.argv)
    monkeypatch.setattr(server, "settings", lambda *given: guards.append(given) or {})
    monkeypatch.setattr(server.st.App, "run", lambda app, config: started.append(config))
    assert main(["app", "--host", "0.0.0.0", "--port", "8600", "--no-browser"]) == 0
    options = {"port": 8600, "address": "0.0.0.0", "headless": True, "allowedHosts": ["*"], "baseUrlPath": ""}
    assert started[0] == {f"server.{name}": value for name, value in options.items()}
    assert Path(sys.argv[0]).name == "app.py"
    assert "localhost" in guards[0][0]
    for bad in ("", "a b", "http://x/", "x\n"):
        assert "--host" in shell.refused(["app", "--host", bad])
    assert len(started) == 1


def test_a_limit_that_is_no_number_is_said_before_the_app_starts(shell: Shell, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("DPVIZ_MAX_ROWS", "lots")
    assert "DPVIZ_MAX_ROWS: must be a number, got 'lots'" in shell.refused(["app", "--no-browser"])


def test_fetch_names_what_it_cannot_do(shell: Shell, monkeypatch: pytest.MonkeyPatch, tmp_path: object) -> None:
    monkeypatch.setenv("DPVIZ_CACHE", str(tmp_path))
    assert "dpviz show adult --download" in shell(["list", "datasets"])
    assert "unknown value 'nothing'" in shell.refused(["show", "nothing", "--download"])


@pytest.mark.parametrize("command", COMMANDS)
def test_the_help_of_every_command_has_examples_that_are_read(command: str, capsys: pytest.CaptureFixture[str]) -> None:
    with pytest.raises(SystemExit) as stop:
        main(["help", command])
    assert stop.value.code == 0
    said = capsys.readouterr().out
    assert len(set(re.findall(r"^  (?:-\w[^,\n]*, )?(--[\w-]+)", said, re.M)) - {"--help", "--json", "--quiet"}) <= 15
    with pytest.raises(SystemExit):
        main([command, "--help", "all"])
    assert ("--encoding" in capsys.readouterr().out) == (command not in ("app", "list", "ledger"))
    assert EXAMPLES[command]
    for example in EXAMPLES[command]:
        assert f"\n  {example}\n" in said
        words = shlex.split(example)
        parser().parse_args(words[1:] or ["app"])


def test_answers_fit_the_terminal_and_stay_whole_in_a_pipe(monkeypatch: pytest.MonkeyPatch, shell: Shell) -> None:
    piped = shell(["list", "mechanisms"])
    assert max(map(len, piped.splitlines())) > 100
    monkeypatch.setattr(answers, "_width", lambda stream: 70)
    for words in (["list", "mechanisms"], ["run", "--seeds", "2"], ["show", "teaching"]):
        lines = shell(words).splitlines()
        assert max(map(len, lines)) <= 70, words


def test_completion_knows_every_command_and_option(capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch) -> None:
    pytest.importorskip("shtab")
    for shell, code in (("zsh", 0), ("fish", 2)):
        with pytest.raises(SystemExit) as stop:
            main(["--print-completion", shell])
        assert stop.value.code == code
    said = capsys.readouterr().out
    assert said.startswith("#compdef dpviz")
    assert {command for command in COMMANDS if command not in said} == set()
    assert {"--round-range", "--row-scaling", "--write-toml"} <= set(re.findall(r"--[\w-]+", said))
    monkeypatch.setitem(sys.modules, "shtab", None)
    with pytest.raises(SystemExit):
        main(["--print-completion", "zsh"])
    assert "pip install shtab" in capsys.readouterr().err


@pytest.mark.parametrize(
    ("command", "out", "said"),
    [
        ("sweep", "here", "is a folder"),
        ("sweep", "none/a{}", "folder 'none' is not there"),
        ("sweep", "", "names no file"),
        ("sweep", "here/a.txt", "must end in"),
        ("sweep", "mine{}", "is there already. Name a new file, or add --overwrite"),
        ("sweep", "link{}", "is there already and no plain file"),
        ("sweep", "mine{}/a{}", "folder 'mine.*' is not there"),
        ("report", "mine{}", "is there already. Name a new file, or add --overwrite"),
    ],
)
def test_a_place_is_looked_at_before_work_and_nothing_is_overwritten(
    command: str, out: str, said: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, shell: Shell
) -> None:
    monkeypatch.chdir(tmp_path)
    (tmp_path / "here").mkdir()
    ending = {"sweep": ".csv", "report": ".html"}[command]
    (tmp_path / f"mine{ending}").write_text("a person's own")
    (tmp_path / f"link{ending}").symlink_to("/dev/null")
    for name in ("dpviz.experiments.sweeps.cells.attempts", "dpviz.reporting.report_of"):
        monkeypatch.setattr(name, lambda *_, **__: pytest.fail("worked before it looked"))
    assert re.search(said, shell.refused([command, "--dataset", "teaching", "--out", out.format(ending, ending)]))
    assert sorted(path.name for path in tmp_path.iterdir()) == ["here", f"link{ending}", f"mine{ending}"]
    assert (tmp_path / f"mine{ending}").read_text() == "a person's own"


@pytest.mark.parametrize(
    ("words", "ending"),
    [
        ("sweep --mechanisms majority --epsilons 1 --seeds 1 --no-cache --quiet", ".csv"),
        ("report --mechanism majority --seeds 1", ".html"),
    ],
)
def test_a_file_is_replaced_only_where_that_is_asked_for(
    words: str, ending: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, shell: Shell
) -> None:
    monkeypatch.chdir(tmp_path)
    asked = [*words.split(), "--dataset", "teaching", "--out", f"a{ending}"]
    assert main(asked) == 0
    first = (tmp_path / f"a{ending}").read_bytes()
    assert main(asked) == 2
    assert (tmp_path / f"a{ending}").read_bytes() == first
    (tmp_path / f"a{ending}").write_text("of an earlier run")
    assert main([*asked, "--overwrite"]) == 0
    assert len((tmp_path / f"a{ending}").read_bytes()) > 100
    Path("dir").mkdir()
    Path(f"dir/x{ending}").symlink_to("/dev/null")
    assert "no plain file" in shell.refused([*asked[:-1], f"dir/x{ending}", "--overwrite"])
    assert [path.name for path in Path("dir").iterdir()] == [f"x{ending}"]


def test_every_command_that_writes_what_was_named_refuses_what_is_there() -> None:
    """Files by --overwrite; models, folders of pages, ledgers and TOML files never. A new --out has to say which it is."""
    commands = parser()._subparsers._group_actions[0].choices  # type: ignore[union-attr]
    options = {name: {text for action in one._actions for text in action.option_strings} for name, one in commands.items()}
    assert {name for name, known in options.items() if "--out" in known} == {"predict", "release", "report", "sweep"}
    assert {name for name, known in options.items() if "--overwrite" in known} == {"predict", "report", "sweep"}
    assert main(["sweep", "--overwrite"]) == 2


class Failing(io.StringIO):
    """A stream whose reader has gone, or whose disk is full."""

    def __init__(self, number: int) -> None:
        super().__init__()
        self._error = OSError(number, os.strerror(number))

    def write(self, text: str) -> int:
        raise self._error


@pytest.mark.parametrize(("number", "code"), [(errno.ENOSPC, 1), (errno.EPIPE, 141)])
def test_output_that_fails(number: int, code: int, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> None:
    monkeypatch.setattr(sys, "stdout", Failing(number))
    assert main(["list", "mechanisms"]) == code
    said = capsys.readouterr().err.splitlines()
    assert len(said) == (1 if number == errno.ENOSPC else 0)
    assert all("No space left on device" in line for line in said)


def test_signs_that_a_terminal_lacks_are_escaped(monkeypatch: pytest.MonkeyPatch) -> None:
    written = io.BytesIO()
    monkeypatch.setattr(sys, "stdout", io.TextIOWrapper(written, encoding="ascii"))
    assert main(["list", "mechanisms"]) == 0
    assert b"\\u03b5-DP" in written.getvalue()


@pytest.mark.skipif(not os.path.exists("/dev/full"), reason="no device that is always full")
def test_the_end_of_the_process_says_nothing_more() -> None:
    with open("/dev/full", "w") as full:
        ended = subprocess.run([sys.executable, "-m", "dpviz", "--help"], stdout=full, stderr=subprocess.PIPE, text=True)
    assert ended.returncode == 1
    assert ended.stderr.count("\n") == 1
    assert "No space left" in ended.stderr
