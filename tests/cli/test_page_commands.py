"""The pages from the shell: `--json` is one valid document with stable keys, errors are one line, nothing is said by the way."""

import re
import subprocess
import sys
from pathlib import Path

import pytest
from support import mostly_long
from support_shell import Shell

import dpviz
from dpviz.cli import membership
from dpviz.cli.main import COMMANDS, main, parser
from dpviz.datasets.sources import remote

ROOT = Path(__file__).parents[2]
RUN = ["--dataset", "teaching", "--mechanism", "output-gaussian", "--seeds", "2"]

#: command and options -> keys of the document; a key that goes or gets another name is a break that users would feel
KEYS = {
    "run --metric roc-auc": (
        "run remarks training_rows features looked_at lost guarantee accuracy cost optimality_gap metrics attack"
    ),
    "calibrate": "dataset n d mechanism model lam params guarantee",
    "calibrate --n 1000 --d 5": "dataset n d mechanism model lam params guarantee",
    "calibrate --attacker advantage=0.1": "dataset n d mechanism model lam params attacker guarantee",
    "calibrate --accountants --published": "run mechanism guarantee accountants relations attack published",
    "calibrate --methods": "run methods baselines",
    "influence --top 2": "run guarantee training_rows non_private_norm exact_curvature noise_on rows",
    "audit --runs 40": "run pair pair_in_words guarantee runs seed confidence score guessed_right epsilon_lower verdict warnings "
    "guessed_right_low guessed_right_high guessed_right_allowed epsilon_ceiling epsilon_lower_gaussian "
    "epsilon_lower_measured_noise against_claimed against_proved",
    "audit --membership --shadows 64 --targets 16 --no-cache": "run shadows guarantee targets half sentence verdict attacks rows",
    "audit --membership --shadows 64 --targets 16 --no-cache --epsilons 1": "run shadows attacks",
    "groups": "run column groups gap gap_non_private",
    "list claims": "claims",
    "list mechanisms": "mechanisms",
    "list datasets": "datasets to_fetch",
    "list papers": "papers",
    "show teaching": "name dataset rows features labels source columns looked_at notes lost",
    "sweep --epsilons 1 --no-cache": "sweep missing rows",
    "release --out model": "run guarantee model card training_rows hardened_sampler tried looked_at audit searched",
    "predict model new.csv": "classes predictions notes",
    "ledger a.toml --limit 3 --delta 1e-6": "table unit relation limit total status not_proved conditions entries",
    "report --out a.html": "run out bytes",
}


def given(command: str) -> list[str]:
    name, *rest = command.split()
    if name in ("list", "show", "predict", "ledger") or "--n" in rest:
        return [name, *rest]
    if name == "sweep":
        return [name, "--dataset", "teaching", "--mechanisms", "output-gaussian", "--seeds", "2", *rest]
    return [name, *RUN, *rest]


@pytest.fixture
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """An empty working directory, and no downloads."""
    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr(remote, "download", lambda name, progress: None)
    return tmp_path


@pytest.mark.parametrize("command", mostly_long(KEYS, *(command for command in KEYS if "--membership" not in command)))
def test_json_is_one_document_with_stable_keys(command: str, folder: Path, shell: Shell) -> None:
    if command.startswith("predict"):
        dpviz.release(dpviz.RunSpec("teaching", mechanism="output-gaussian")).save(folder / "model")
        dpviz.load_dataset("teaching").frame.to_csv(folder / "new.csv", index=False)
    found = shell.json(given(command))
    assert list(found) == ["command", "version", "schema", *KEYS[command].split()]
    assert (found["command"], found["version"], found["schema"]) == (command.split()[0], dpviz.__version__, 1)
    documented = (ROOT / "docs" / "commands.md").read_text()
    assert all(f"`{key}`" in documented for key in found)


#: a default at the end of an option's help, or after this word
STATED = re.compile(r"\((?:default: )?([\w.]+)(?:, which costs least)?\)$|Default: (.+?)\.(?: |$)")

AUDIT = "audit --mechanism output-gaussian --pair label-flip"


@pytest.mark.parametrize("command", ["run", "calibrate", "influence", AUDIT, "groups", "list claims --test numerical-tighter"])
def test_options_that_are_left_out_have_the_defaults_that_help_states(command: str, shell: Shell) -> None:
    name, *more = command.split()
    options = parser(name)._subparsers._group_actions[0].choices[name]._actions  # type: ignore[union-attr]
    found = [(one, STATED.search(one.help or "")) for one in options if name != "audit" or one.dest not in membership.OPTIONS]
    stated = [f"{one.option_strings[0]}={match[1] or match[2]}" for one, match in found if match and one.dest != "person_rows"]
    assert stated
    assert shell.json([name, *stated, *more]) == shell.json([name, *more])


def test_numbers_are_those_of_the_library(shell: Shell) -> None:
    spec = dpviz.RunSpec("teaching", mechanism="output-gaussian", seeds=2)
    found = shell.json(["run", *RUN])
    assert found["accuracy"]["draws"] == dpviz.run(spec).accuracy.tolist()
    assert dpviz.RunSpec(**found["run"]).seeds == 2
    found = shell.json(["calibrate", "--mechanism", "dp-gd", "--n", "1000", "--d", "5"])
    assert found["guarantee"]["noise_scale"] == dpviz.calibrate("dp-gd", n=1000, d=5, epsilon=1.0).noise_scale
    found = shell.json(["influence", *RUN, "--top", "0"])
    influence = dpviz.influence_of(spec)
    assert [row["newton_step"] for row in found["rows"]] == influence.newton_norm[influence.order].tolist()
    found = shell.json(["audit", *RUN, "--runs", "40", "--pair", "label-flip"])
    assert found["guessed_right"] == dpviz.audit_run(spec, "label-flip", runs=40).guessed_right
    found = shell.json(
        ["audit", "--membership", *RUN, "--shadows", "64", "--targets", "64", "--attacks", "rmia", "--no-baseline", "--no-cache"]
    )
    attacked = dpviz.attack_run(spec, 64, 64, attacks=["rmia"], baseline=False)
    assert [row["auc"] for row in found["attacks"]] == attacked.table["auc"].tolist()
    assert [row["row_id"] for row in found["rows"]] == attacked.rows.index.tolist()


#: arguments > the field that is named
BAD = """
calibrate --n 5 > --n; calibrate --n 5 --d 2 --dataset teaching > --n; calibrate --n x --d 2 > --n;
calibrate --attacker tpr=0.05 > attacker; calibrate --attacker advantage=0.1 --epsilon 1 > --attacker; audit --pair x > --pair;
audit --runs 3 > --runs; audit --pair without --row 99999 > row; audit --confidence 2 > confidence;
audit --row 17 > --pair without; audit --pair without --other 17 > --pair two-rows;
audit --membership --shadows 3 > --shadows; audit --membership --targets 3000 > --targets;
audit --membership --attacks lira > attack; audit --membership --epsilons 1 --no-baseline > --no-baseline;
audit --membership --mechanism majority --no-cache > mechanism; audit --membership --pair without > --pair;
audit --shadows 64 > --membership; calibrate --metric f1 > --methods; calibrate --accountants --n 5 > --n;
release --out m --runs poisson > --try; release --out m --try --audit 40 > --audit; report --out m --live x > --all;
list papers --test all > --test; list claims --full > --test; show teaching --declare > --declare;
influence --top=-1 > --top; calibrate --accountants --mechanism dbdp > --mechanism; groups --group nothing > --group;
calibrate --methods --epsilon 0 > epsilon; list claims --test nothing > claim
"""


@pytest.mark.parametrize(("arguments", "field"), [case.split(" > ") for case in BAD.strip().replace("\n", " ").split("; ")])
def test_bad_input_is_one_line_and_code_2(arguments: str, field: str, shell: Shell) -> None:
    for more in ([], ["--json"]):
        assert field in shell.refused([*arguments.split(), *more])


def test_the_link_of_an_upload_is_answered_for_the_shell(shell: Shell) -> None:
    said = shell.refused(["run", "http://127.0.0.1:8501/?dataset=upload-0123456789abcdef&v=1"])
    assert "Name its file in the place of the link" in said


def test_what_cannot_be_computed_is_one_line_and_code_1(
    capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    from dpviz.experiments.studies import inspected

    def fails(*_: object) -> None:
        raise FloatingPointError("Outputs are not finite.")

    monkeypatch.setattr(inspected, "inspect", fails)
    assert main(["influence", *RUN]) == 1
    assert capsys.readouterr().err == "dpviz: influence: Outputs are not finite.\n"


def test_every_command_has_help_and_loads_nothing_heavy_for_it() -> None:
    code = (
        "import sys, dpviz.cli.start\nfrom dpviz.cli.main import COMMANDS, parser\n"
        "made = parser('')\nassert all(name in made.format_help() for name in COMMANDS)\n"
        "print([m for m in ('numpy', 'pandas', 'scipy', 'sklearn', 'joblib', 'plotly', 'streamlit') if m in sys.modules])"
    )
    out = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True, cwd=ROOT)
    assert out.stdout.strip() == "[]"
    assert len(COMMANDS) == len(set(COMMANDS))


def test_every_command_but_the_app_has_json() -> None:
    assert {command.split()[0] for command in KEYS} == set(COMMANDS) - {"app"}


@pytest.mark.parametrize("name", ["dp-gd", "objective-tight"])
def test_a_tolerated_attacker_needs_no_data_and_the_lambda_is_told(name: str, shell: Shell) -> None:
    facts = ["calibrate", "--n", "500", "--d", "5", "--mechanism", name]
    found = shell.json([*facts, "--attacker", "advantage=0.1"])
    assert found["lam"] > 0
    again = shell.json([*facts, "--lam", repr(found["lam"]), "--attacker", "advantage=0.1"])
    assert (again["guarantee"], again["attacker"]) == (found["guarantee"], found["attacker"])


def test_another_method_is_accounted_for_with_the_regularisation_of_its_own_rule(shell: Shell) -> None:
    link = "?dataset=teaching&mechanism=dp-gd&epsilon=1&compare=output-gaussian"
    compared = shell.json(["calibrate", "--accountants", link])
    own = shell.json(["calibrate", "--accountants", "--dataset", "teaching", "--mechanism", "output-gaussian"])
    assert compared == own, "as on the page, whose table is of the method's run"
