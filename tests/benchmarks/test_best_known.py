"""The table of the best proved defaults: what it is chosen on, what it counts, and where it stands on its page."""

from pathlib import Path

import pytest

from benchmarks import best_known as bk
from benchmarks import sections
from dpviz.datasets import load_dataset

LINES = ["| A | 1 | 80.0 | a | 80.9 | b | 0.9 | 80.1 | 80.2 |", "| A | 10 | 80.0 | a | 82.0 | b | 2.0 | 79.0 | 82.0 |"]


def test_candidates_are_chosen_on_rows_that_are_neither_trained_on_nor_tested() -> None:
    train, held, test = bk.parts(load_dataset("iris"), 3)
    assert set(held) < set(train)
    assert len(held) == len(train) // 4
    assert not set(train) & set(test)


def test_only_what_is_proved_is_compared() -> None:
    claimed = bk.Candidate("dp-gd", params=(("noise", "published"), ("c", 0.01)))
    assert bk.scores("iris", "logistic", claimed, [1.0], 0, 2, final=False) is None
    found = bk.scores("iris", "logistic", bk.Candidate("objective-tight", lam=0.01), bk.EPSILONS, 0, 2, final=True)
    assert found.shape == (3, 2)
    held, best = bk.chosen("iris", "logistic", [claimed, bk.Candidate("output-gaussian")], 1, 2)
    assert set(held) == set(best.values()) == {bk.Candidate("output-gaussian")}


def test_what_is_near_and_who_is_ahead_is_counted() -> None:
    assert bk.verdict(LINES) == "Within one point: 1 of 2. diffprivlib at C = 1 is ahead: A at ε = 1."
    assert bk.verdict(LINES[1:]).endswith("nowhere.")


def test_what_is_measured_alone_joins_the_lines_of_the_page() -> None:
    """The best known is diffprivlib or the default where that is ahead of it, and the gap is that of what is shown."""
    filled = bk.beside(LINES, ([bk.Cell("x", 0.79), bk.Cell("x", 0.8)], [bk.Cell("C 9", 0.801), bk.Cell("C 9", 0.832)]))
    assert filled == [
        "| A | 1 | 80.0 | a | 80.9 | b | 0.9 | 79.0 | 80.1 |",
        "| A | 10 | 80.0 | a | 83.2 | diffprivlib, C 9 | 3.2 | 80.0 | 83.2 |",
    ]
    assert bk.renewed([LINES[0], LINES[1].replace("| a |", "| c |")], [bk.Cell("d", 0.805), bk.Cell("e", 0.83)], ["c"]) == [
        LINES[0],
        "| A | 10 | 83.0 | e | 83.0 | e | 0.0 | 79.0 | 82.0 |",
    ]
    lines = [line.replace("A", "Iris") for line in LINES]
    assert bk.by_set("\n".join(["", "| set | x |", *lines, ""])) == {"Iris": lines}


def test_a_page_that_is_not_there_is_made(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    out = tmp_path / "new.md"
    monkeypatch.setattr(bk, "rows", lambda name, model, draws: [line.replace("A", name) for line in LINES])
    monkeypatch.setattr("sys.argv", ["best_known", "--sets", "Iris", "--alone", "--out", str(out)])
    for _ in range(2):
        bk.main()
        assert list(sections.read(out)) == [bk.TITLE]
        assert out.read_text(encoding="utf-8").count("| Iris | 1 |") == 1
