"""The docs say what the code says."""

import ast
import importlib
import re
from operator import attrgetter
from pathlib import Path
from types import ModuleType

import pytest
from support import mostly_long
from support_shell import Shell

import dpviz
from dpviz.cli.main import COMMANDS, main
from dpviz.papers import saved

ROOT = Path(__file__).parent.parent


@pytest.fixture(scope="module")
def generated() -> ModuleType:
    return importlib.import_module("docs.generate")


def test_pages_are_made_from_declarations_and_numbers(generated: ModuleType) -> None:
    made = generated.mechanisms()
    for name, cls in dpviz.list_mechanisms().items():
        assert f"| `{name}` | {cls.label} |" in made
        assert all(f"| `{knob}` |" in made for knob in cls.knobs())
    for page, numbers in ((generated.defaults(), ("defaults", "best_known")), (generated.cost(), ("cost",))):
        of_sets = [line for line in page.splitlines() if re.match(r"\| (?!method|chosen|reported)", line)]
        rows = [line for line in of_sets if re.search(r"\d", line.split("|")[2])]
        counts = {"defaults": 3}  # three budgets stand in one row
        assert len(rows) == sum(len(generated.data(name)) // counts.get(name, 1) for name in numbers)
    page = generated.claimed_and_proved()
    assert all(f"| {label} |" in page for label in generated.data("survey")["label"])
    assert "<svg" in (ROOT / "docs" / "claimed_and_proved.svg").read_text(encoding="utf-8")


@pytest.mark.long
def test_the_page_of_figures_has_every_verdict(generated: ModuleType) -> None:
    figures = generated.figures()
    assert all(f"| {one.text} | {one.verdict.headline} |" in figures for one in saved.load().figures)


def test_readme_has_two_commands_to_set_up_one_to_run_and_one_to_test() -> None:
    text = (ROOT / "README.md").read_text()
    blocks = [block.strip().splitlines() for block in re.findall(r"```sh\n(.*?)```", text, re.S)]
    assert [len(block) for block in blocks] == [2, 1, 1]
    assert blocks[1:] == [[".venv/bin/dpviz"], [".venv/bin/pytest"]]
    assert re.search(r"<!-- test command -->\n```sh\n\.venv/bin/pytest\n```", text), ".ci/run looks for it there"


def test_the_benchmarks_are_listed_in_their_own_words() -> None:
    rows = set((ROOT / "benchmarks" / "README.md").read_text().splitlines())
    files = {path.stem: ast.get_docstring(ast.parse(path.read_text(encoding="utf-8"))) for path in ROOT.glob("benchmarks/*.py")}
    assert files
    assert {f"| `benchmarks.{name}` | {(said or '').splitlines()[0]} |" for name, said in files.items()} <= rows


def test_the_architecture_page_points_at_what_is_there() -> None:
    text = (ROOT / "docs" / "architecture.md").read_text()
    found = re.findall(r"^\| [^|]+ \| `([\w/]+)\.py` \| `([\w.]+)` \|$", text, re.M)
    assert len(found) >= 10
    for path, name in found:
        attrgetter(name)(importlib.import_module("dpviz." + path.replace("/", ".")))


def test_the_architecture_page_is_short() -> None:
    assert len((ROOT / "docs" / "architecture.md").read_text(encoding="utf-8").split()) <= 1500


#: expressions that this project writes in other words -> what it writes
WORDS = {
    r"\bpull(s|ed)?\b": "influence; moves closer",
    r"\b(hundred bets|bets? won|wins? a bet)\b": "attack accuracy",
    r"\brows? (that )?(meets?|met) noise\b|\bnoised rows?\b|\brows? (is|are) noised\b": "rows that receive noise",
    r"\bshares? noised\b": "share of rows that receive noise",
    r"\bof the same law\b|\blaws? of (its|the) (outputs?|noise)\b": "distribution",
    r"\b(on|at) the left end\b": "smallest value",
    r"\bmade[- ]up (data|rows?|people)\b": "synthetic",
    r"\bwhat an attacker can reach\b": "best possible attack",
    r"\basks? for [\d{][^ ]* times that\b": "needs … times as much noise",
    r"\b(take away|save) the data\b": "Download data (CSV)",
}


def said_badly(text: str) -> list[str]:
    return [found[0] for pattern in WORDS for found in re.finditer(pattern, text, re.IGNORECASE)]


def test_the_fields_own_terms_are_used() -> None:
    written = ("dpviz/**/*.py", "dpviz/**/*.toml", "pages/*.py", "docs/*.md", "README.md", "app.py")
    places = [path for pattern in written for path in ROOT.glob(pattern)]
    assert {str(path): words for path in places if (words := said_badly(path.read_text(encoding="utf-8")))} == {}


def test_each_expression_is_noticed() -> None:
    texts = "A row pulls., bets won, Noised rows, share noised, noise of the same law, at the left end, made-up data"
    for text in texts.split(", "):
        assert said_badly(text), text


def test_the_parts_of_every_cost_add_up(generated: ModuleType) -> None:
    """Accuracy = non-private − training − noise, as rounded: three roundings of at most 0.05 points each, and the sum's own."""
    table = generated.data("cost")[["non_private", "training", "noise", "accuracy"]].astype(float)
    assert len(table) >= 20
    assert (table["non_private"] - table["training"] - table["noise"] - table["accuracy"]).abs().max() < 0.2 + 1e-9


#: pages that are made when the site is built
MADE = {"claimed_and_proved", "cost", "defaults", "figures", "mechanisms"}
PAGES = sorted(path for path in ROOT.glob("docs/*.md") if path.stem not in {"index", *MADE})


def test_every_page_of_the_docs_is_in_their_contents(generated: ModuleType) -> None:
    assert {page.__name__ for page in generated.PAGES} == MADE
    listed = re.findall(r"```{toctree}\n(?::.*\n)+([^`]*)```", (ROOT / "docs" / "index.md").read_text())
    notebooks = [path.stem for path in ROOT.glob("docs/*.ipynb")]
    assert sorted(" ".join(listed).split()) == sorted([path.stem for path in PAGES] + [*MADE] + notebooks)


#: pages with code, by name
TEXTS = {
    str(path.relative_to(ROOT)): path.read_text(encoding="utf-8")
    for path in [ROOT / "README.md", ROOT / "data" / "README.md", *PAGES]
}
#: (page, language of the block) -> where its blocks run, or why they do not
RUN_ELSEWHERE = {
    ("README.md", "sh"): "setting up, starting and testing: .ci/run and tests/dashboard/test_private.py",
    ("docs/journeys.md", "sh"): "tests/cli/test_journeys.py",
    ("docs/architecture.md", ""): "no code: the tree of folders",
}
#: what a block of Python finds there, as its page says in words
BEFORE = {
    "docs/architecture.md": "from dataclasses import dataclass\nfrom dpviz.mechanisms.capabilities import ProtectsQuery\n"
    "from dpviz.mechanisms.knobs import knob"
}


def blocks(page: str) -> list[tuple[str, str]]:
    """(language, text) of each block of code of a page."""
    found = re.findall(r"^```([^\n]*)\n(.*?)^```$", TEXTS[page], re.S | re.M)
    return [(language, text) for language, text in found]


def pages_with(language: str) -> list[str]:
    return [page for page in TEXTS if any(language == found for found, _ in blocks(page))]


def test_every_block_of_code_is_run_somewhere() -> None:
    found = {(page, language) for page in TEXTS for language, _ in blocks(page)}
    # directives of the site: tests/browser/test_gallery.py
    assert {pair for pair in found if pair[1] not in ("python", "toml", "{eval-rst}")} == set(RUN_ELSEWHERE)
    assert all(text.count("\n```") % 2 == 0 for text in TEXTS.values())


@pytest.mark.parametrize("page", mostly_long(pages_with("python"), "README.md"))
def test_the_blocks_of_python_run_one_after_the_other(page: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    names: dict[str, object] = {}
    for text in [BEFORE.get(page, ""), *(text for language, text in blocks(page) if language == "python")]:
        exec(text, names)


def test_the_block_of_settings_is_read(tmp_path: Path, shell: Shell) -> None:
    ((language, text),) = blocks("data/README.md")
    assert language == "toml"
    rows = [f"{20 + k % 50},{('Private', 'Government', '?')[k % 3]},{k % 60},{('<=50K', '>50K')[k % 2]}" for k in range(60)]
    (tmp_path / "people.csv").write_text("\n".join(["age,workclass,hours,income", *rows]))
    (tmp_path / "people.toml").write_text(text)
    said = shell.json(["show", str(tmp_path / "people.csv"), "--json"])
    assert said["label"]["positive"] == ">50K"
    assert [column["column"] for column in said["columns"]] == ["age", "workclass", "hours"]
    assert said["looked_at"] == ["hours"]


def test_every_command_that_is_named_knows_its_options(capsys: pytest.CaptureFixture[str]) -> None:
    helps: dict[str, str] = {}
    for page, text in TEXTS.items():
        for span in re.findall(r"`dpviz ([a-z]+[^`]*)`", text):
            name = span.split()[0]
            assert name in COMMANDS, (page, span)
            if name not in helps:
                with pytest.raises(SystemExit):
                    main([name, "--help", "all"])
                helps[name] = capsys.readouterr().out
            unknown = [
                option for option in re.findall(r"--[a-z][a-z-]*", span) if not re.search(rf"{option}\b(?!-)", helps[name])
            ]
            assert not unknown, (page, span, unknown)
    assert len(helps) > 10
