"""Words on pages: every term has an entry, and a badge names what every proof takes for granted."""

import ast
import re
from pathlib import Path

import pytest
from streamlit.testing.v1 import AppTest
from support import LIMIT, parse, walk

import dpviz
from dpviz.dashboard.components import glossary
from dpviz.dashboard.components.lessons import LESSONS
from dpviz.experiments.run.settings import SETTINGS

ROOT = Path(__file__).parents[2]
FILES = [ROOT / "app.py", *sorted((ROOT / "pages").glob("*.py")), *sorted((ROOT / "dpviz/dashboard").rglob("*.py"))]

#: abbreviations that are no terms of the field, and signs that only stand in formulas
PLAIN = set("API ASGI CLI CSS HTTP CSV MB GB TOML UTF URL HTML ID PDF PNG ZIP JSON OK OR AND NOT".split())
#: words of the field; where one is used on a page, it has an entry
FIELD = (
    "accountant, add-remove, audit, batch size, bootstrap, canary, clip norm, clipping, composition, curvature, delta, "
    "differential privacy, excess risk, gamma-sphere, gradient, Hessian, influence, intercept, leave-one-out, leverage, "
    "Lipschitz, local privacy, majority, neighbour, Newton step, noise draw, noise multiplier, non-private, optimality gap, "
    "principal component, privacy budget, privacy filter, regularisation, replace-one, sampling rate, sensitivity, "
    "shuffling, step size, strongly convex, subsampling, trade-off curve, unit ball, objective perturbation, output "
    "perturbation, input perturbation"
).split(", ")


def sentences(source: str) -> list[str]:
    """The texts of a file that hold a space, without docstrings and style sheets."""
    tree = parse(source)
    documented = (ast.Module, ast.FunctionDef, ast.ClassDef)
    notes = {id(n.body[0].value) for n in walk(tree) if isinstance(n, documented) and isinstance(n.body[0], ast.Expr)}
    texts = [n.value for n in walk(tree) if isinstance(n, ast.Constant) and isinstance(n.value, str) and id(n) not in notes]
    return [text for text in texts if " " in text and "<style" not in text and "<div" not in text and "\\" not in text]


def missing(text: str) -> list[str]:
    """Abbreviations, Greek letters and words of the field in a text that have no entry."""
    methods = {part for cls in dpviz.list_mechanisms().values() for part in re.split(r"[\W_]+", cls.label)}
    signs = re.findall(r"\b[A-Z]{2,}[A-Za-z]*\b|[α-ωΑ-Ω]", text)
    used = [*signs, *(word for word in FIELD if re.search(rf"\b{re.escape(word)}\b", text))]
    return [term for term in used if term not in PLAIN | methods and not glossary.find_terms(term)]


def test_every_term_on_a_page_has_an_entry() -> None:
    texts = [(path.name, text) for path in FILES if path.name != "glossary.py" for text in sentences(path.read_text())]
    texts += [(one.id, " ".join((one.question, one.hint, one.explanation, one.pitfall))) for one in LESSONS]
    knobs = [*SETTINGS.values(), *(knob for cls in dpviz.list_mechanisms().values() for knob in cls.knobs().values())]
    texts += [("knob", f"{knob.label}. {knob.help}") for knob in knobs]
    assert len(texts) > 500
    assert [(where, lacks) for where, text in texts if (lacks := missing(text))] == []


@pytest.mark.parametrize("text", ["Noise by XYZQ is smaller.", "It grows with ω here."])
def test_a_term_without_an_entry_is_noticed(text: str) -> None:
    assert missing(text)


def test_sentences_of_a_page_are_read_and_its_docstrings_are_not() -> None:
    assert sentences('"""The QQQ of it."""\nx = f"At {x} the QQQ"\ny = "key"\n') == ["At ", " the QQQ"]


def test_entries_are_short_sourced_and_unique() -> None:
    terms = [entry.term for entry in glossary.GLOSSARY]
    assert len(set(terms)) == len(terms) > 40
    for entry in glossary.GLOSSARY:
        assert entry.source
        assert 1 <= len(re.findall(r"[.](?:\s|$)", entry.text)) <= 2, entry.term
        assert all(len(part.split()) <= 22 for part in entry.text.split(". ")), entry.term
        assert glossary.find_terms(f"The {entry.term} here.")[0] is entry


def page(mechanism: str) -> None:
    import dpviz
    from dpviz.dashboard.components import guarantee

    cal = dpviz.calibrate(mechanism, n=400, d=5, epsilon=1.0)
    guarantee.badge(cal, dpviz.list_mechanisms()[mechanism]())


@pytest.mark.parametrize(
    ("mechanism", "proved"), [("dp-gd", True), ("cms-output", True), ("pidp-sgd", False), ("non-private", False)]
)
def test_proved_budgets_come_with_floating_point_and_public_ranges(mechanism: str, proved: bool) -> None:
    shown = AppTest.from_function(page, args=(mechanism,), default_timeout=LIMIT).run()
    assert not shown.exception
    said = " ".join(m.value for m in shown.markdown)
    assert ("real numbers" in said) is proved
    assert ("must be public" in said) is proved
