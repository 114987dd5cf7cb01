"""A page names its controls, and the shell its options."""

import ast
from pathlib import Path

import pytest

import dpviz
from dpviz.dashboard.components.on_page import page_message

ROOM = Path(dpviz.__file__).parent
#: of files that only the shell writes
SHELL = ("--out", "--write-toml", "dpviz ledger", "--person)", "--header data", "dpviz show x --download")


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
    left = [text for text in all_of_them if "--" in page_message(text) and not any(sign in text for sign in SHELL)]
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
    assert page_message(message) == (page or "say: “The first line holds”.")
