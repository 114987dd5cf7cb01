"""A page names its controls, and the shell its options."""

import ast
from pathlib import Path

import pytest
import streamlit as st

import dpviz
from dpviz.common.validate import InvalidInput
from dpviz.dashboard.data import dataset as shown
from dpviz.dashboard.kit import panels
from dpviz.dashboard.kit.on_page import on_page
from dpviz.datasets import load_dataset

ROOM = Path(dpviz.__file__).parent
#: of files that only the shell writes
SHELL = ("--out", "--write-toml", "dpviz ledger", "--person)", "--header data", "dpviz fetch")


def messages(folder: str) -> list[str]:
    """The texts of a folder's code that name an option; what is filled in is "x"."""
    found = []
    for path in sorted((ROOM / folder).rglob("*.py")):
        tree = ast.parse(path.read_text())
        inner = {id(part) for node in ast.walk(tree) if isinstance(node, ast.JoinedStr) for part in node.values}
        for node in ast.walk(tree):
            if isinstance(node, ast.JoinedStr):
                text = "".join(str(part.value) if isinstance(part, ast.Constant) else "x" for part in node.values)
            elif isinstance(node, ast.Constant) and isinstance(node.value, str) and id(node) not in inner:
                text = node.value
            else:
                continue
            if " --" in text or "(--" in text:
                found.append(text)
    return found


def test_messages_about_tables_and_releases_name_controls_on_pages() -> None:
    all_of_them = [*messages("datasets"), *messages("releasing")]
    assert len(all_of_them) > 15
    left = [text for text in all_of_them if "--" in on_page(text) and not any(sign in text for sign in SHELL)]
    assert not left


@pytest.mark.parametrize(
    ("message", "page"),
    [
        ("leave it out (--drop 'a b').", "leave it out (no tick at “use” in its line)."),
        ("leave it out: --drop a.b.", "leave it out: no tick at “use” in its line."),
        ("for the person: --person id. It is", "for the person: “Person (whose row it is)”. It is"),
        ("name it as one: --missing 'it'\"'\"'s=?'.", "name it as one: “Words that are gaps”."),
        ('say so: --missing NA, missing = ["NA"] in Python, or “Words” on the page Data.', "say so: “Words”."),
        ("say: --header data on the command line, header = false, or “The first line holds” on the page Data.", None),
        ("Did you mean 'a'? Choose one of: dp-gd, amp.", "Did you mean 'a'? Choose one under “Mechanism”."),
        ("Choose one of: dp-gd, mlp.", "Choose one of: dp-gd, mlp."),
        ("The column --dropped and drop stay; a--drop too--", "The column --dropped and drop stay; a--drop too--"),
    ],
)
def test_an_option_becomes_its_control(message: str, page: str | None) -> None:
    assert on_page(message) == (page or "say: “The first line holds”.")


def test_lists_of_methods_name_the_control_that_is_wrong(monkeypatch: pytest.MonkeyPatch) -> None:
    shown = list[str]()
    monkeypatch.setattr(st, "warning", lambda text, **_: shown.append(text))
    for field in ("mechanism", "Methods"):
        panels.problem(InvalidInput(field, "is unknown", "Choose one of: dp-gd, amp."))
    assert [text.partition(". ")[2] for text in shown] == ["Choose one under “Mechanism”.", "Choose one under “Methods”."]


@pytest.mark.parametrize(
    ("scaling", "said"),
    [
        ("unit", "all norms are 1, because row scaling divides each row by its own norm."),
        ("bound", "because row scaling divides all rows by one number."),
        ("clip", "because row scaling clipped 177 of 178 rows to norm 1."),
    ],
)
def test_the_norms_say_what_row_scaling_made_of_them(scaling: str, said: str) -> None:
    assert shown.norms(load_dataset("wine", scaling=scaling, intercept=False))[0].endswith(f"{said} {shown.BOUNDED}")


def test_the_clipped_rows_are_counted() -> None:
    dataset = load_dataset("iris", scaling="centred", intercept=False)
    sentence, norms = shown.norms(dataset)
    count = int((norms > 1 - 1e-9).sum())
    assert 0 < count < dataset.n
    assert f"clipped {count:,} of {dataset.n:,} rows to norm 1" in sentence


def test_rows_that_were_in_the_ball_are_not_said_to_be_scaled() -> None:
    assert "scaling" not in shown.norms(load_dataset("teaching"))[0]
