"""The page Data without a browser: cards, one's own table, and other people's sessions."""

import gc
from functools import partial
from pathlib import Path
from types import ModuleType

import pytest
import support_pages
from streamlit.testing.v1 import AppTest
from support import LIMIT, assert_refused, assert_words, until
from support_pages import addressed, text

import dpviz
from dpviz.dashboard.data import upload
from dpviz.dashboard.data.form import describe, spec_of
from dpviz.dashboard.frame import session
from dpviz.datasets.sources import uploads
from dpviz.datasets.sources.remote import REMOTE
from dpviz.datasets.table.csv import read_csv
from dpviz.datasets.table.spec import TableSpec

pytestmark = pytest.mark.usefixtures("data_folder")
EVIL = "<img src=x onerror=alert(1)>"


opened = partial(support_pages.opened, "Data")


def csv(rows: int = 50) -> bytes:
    lines = [
        "age,=job,answer",
        *(f"{20 + k % 40},{['a', EVIL, '=1+1'][k % 3]},{'yes' if k % 3 == 0 or k % 7 == 0 else 'no'}" for k in range(rows)),
    ]
    return "\n".join(lines).encode()


def give(page: AppTest, content: bytes, name: str = "people.csv") -> AppTest:
    page.file_uploader[0].set_value((name, content, "text/csv")).run()
    return page


def test_use_my_data_leads_to_the_upload_above_all_else() -> None:
    def order(page: AppTest) -> list[str]:
        shown = {"file_uploader": "upload", "header": "set"}  # headings of the chosen set's pictures
        return [shown[one.type] for one in page.main if one.type in shown]

    assert order(opened()) == ["set", "set", "upload"]
    page = opened(upload="true")
    assert order(page) == ["upload", "set", "set"]
    give(page, csv()).button(key="dpviz.make").click().run()
    assert "upload" not in page.query_params, "a person who has uploaded looks at the set"


def test_cards_of_all_sets_and_what_is_trained_on() -> None:
    page = opened(dataset="iris", epsilon="0.5")
    assert_words(
        text(page),
        "Iris has 150 rows and 4 features; 120 rows are trained on",
        "66.7",
        f"where d/(n ε) is small: it is {5 / 60:.3g} at ε = 0.5 for d = 5 parameters",
    )
    for remote in REMOTE.values():
        assert remote.title in text(page)
    assert_words(text(page), "IPUMS-BR", "n = 142 trained on, d = 14, majority 66.9")
    assert "n = 160 trained on, d = 14, majority 66.9" in text(opened(dataset="iris", folds="10"))
    assert "Read from the rows, which ε does not cover: sepal length (cm)" in text(page)


def test_use_this_set_sets_the_sidebar() -> None:
    page = opened()
    page.button(key="use-wine").click().run()
    assert page.selectbox(key="dataset").value == "wine"
    assert page.query_params["dataset"] in ("wine", ["wine"])
    assert "Wine has 178 rows" in text(page)


@pytest.mark.reader_process
def test_a_table_becomes_a_dataset_and_belongs_to_its_session() -> None:
    page = give(opened(), csv())
    assert page.selectbox(key="dpviz.target").value == "answer"
    assert "Guessed: no other column has two values" in text(page)
    page.button(key="dpviz.make").click().run()
    assert not page.error
    name = page.selectbox(key="dataset").value
    assert uploads.is_upload(name)
    assert any(visit.uploads == {name} for visit in session._visits.values()), "it goes with its session"
    assert "people.csv has 50 rows and 4 features" in text(page)
    raw = "\n".join(str(m.value) for m in page.markdown)
    assert EVIL not in raw
    # the first page of the same session trains on it; another session that knows the name gets the default
    assert page.session_state["dpviz.uploads"][name].rows == 50
    other = support_pages.opened("One_model", dataset=name)
    assert "does not hold" in text(other)
    assert other.selectbox(key="dataset").value == dpviz.RunSpec.dataset
    assert name not in other.selectbox(key="dataset").options
    page.button(key=f"drop-{name}").click().run()
    assert page.selectbox(key="dataset").value == dpviz.RunSpec.dataset


def test_a_bad_file_is_refused_in_words_and_the_page_goes_on() -> None:
    page = give(opened(), csv() + b"\n1,2", name="../../<b>evil</b>.csv")
    assert "line 52 has 2 values where line 1 has 3" in text(page)
    assert "<b>" not in "\n".join(str(m.value) for m in page.markdown)
    assert page.selectbox(key="dataset").value == "teaching"
    give(page, csv())
    assert page.selectbox(key="dpviz.target").value == "answer"


def test_three_classes_need_a_choice() -> None:
    content = b"a,b,c\n" + b"\n".join(b"%d,%d,%s" % (k, k % 5, [b"u", b"v", b"w"][k % 3]) for k in range(40))
    page = give(opened(), content)
    assert page.selectbox(key="dpviz.target").value is None, "no column is more likely than the others"
    page.selectbox(key="dpviz.target").set_value("c").run()
    page.button(key="dpviz.make").click().run()
    assert "**Values that count as +1**: 'c' takes 3 values" in page.error[0].value.replace("\\", "")
    page.multiselect(key="dpviz.positive.c").set_value(["w"]).run()
    page.button(key="dpviz.make").click().run()
    assert not page.error
    assert "w counts as +1, and 2 other values as −1" in text(page).replace("-1", "−1")
    assert "Label: c; +1 is w, -1 is other" in text(page).replace("*", "").replace("−", "-")


def test_a_file_in_the_folder_that_breaks_is_told_on_every_page(data_folder: Path) -> None:
    path = data_folder / "people.csv"
    path.write_bytes(csv())
    page = support_pages.opened("One_model", dataset="data/people.csv")
    assert page.selectbox(key="dataset").value == "data/people.csv"
    path.write_bytes(b"a,b\n1")
    page.run()
    assert "line 2 has 1 value where line 1 has 2" in text(page)
    path.unlink()
    assert not support_pages.opened("One_model", dataset="data/people.csv").exception


def test_the_form_says_what_is_meant() -> None:
    frame = read_csv(csv()).frame
    form = describe(frame.drop(columns="answer"))
    assert list(form["column"]) == ["age", "=job"]
    form.loc[0, ["low", "high"]] = (0, 99)
    form.loc[1, "categories"] = "a | =1+1"
    form.loc[1, "gap value"] = "a"
    spec = spec_of(form, TableSpec("answer"), ("yes",), None)
    assert (spec.ranges, spec.categories) == ({"age": (0.0, 99.0)}, {"=job": ("a", "=1+1")})
    assert spec.defaults == {"=job": "a"}
    form.loc[0, "high"] = None
    assert_refused(spec_of, form, TableSpec("answer"), ("yes",), None, match="one end of a range")


def test_round_ranges_are_taken_at_a_click_stay_proposals_and_what_they_clip_is_listed() -> None:
    content = b"size,age,answer\n" + b"\n".join(
        b"%d.5,%d,%d" % (k**3 if k < 119 else 10**8, 20 + k % 50, k % 3 // 2) for k in range(1, 120)
    )
    page = give(opened(), content)
    assert "two people's own" in text(page)
    page.toggle(key="dpviz.round").set_value(True).run()
    page.button(key="dpviz.make").click().run()
    mine = uploads._live[page.selectbox(key="dataset").value]
    assert set(mine.spec.ranges) == {"size", "age"}
    assert mine.spec.ranges["age"] == (20.0, 70.0)
    assert mine.dataset(True).looked_at == ("size", "age"), "they are not declared"
    high = mine.spec.ranges["size"][1]
    assert f"1 value of size outside [0, {high:g}] was clipped" in text(page)


def test_private_ranges_stand_beside_those_of_the_rows() -> None:
    page = opened(dataset="census-20000", epsilon="5.0")
    page.button(key="start.private-ranges").click().run()
    until(lambda: page.run() and any("private" in frame.value for frame in page.dataframe), "private ranges")
    table = next(frame.value for frame in page.dataframe if "private" in frame.value)
    assert set(table["column"]) == {c.name for c in dpviz.load_dataset("census-20000").encoder.columns}
    assert "only the third one is private" in text(page)


def test_an_upload_goes_by_its_file_name_on_the_trade_off_page() -> None:
    made = uploads.Upload(read_csv(csv()), TableSpec("answer", ("yes",)), "people.csv")
    page = addressed("Trade-off", dataset=made.name, points="2", methods="cms-output")
    page.session_state["dpviz.uploads"] = {made.name: made}
    page.run()
    assert page.session_state["dpviz.sweep"].wait(LIMIT)
    page.run()
    assert "people.csv (your upload), logistic regression" in text(page)
    assert made.name not in text(page)


def test_forget_it_now_frees_the_rows_and_leaves_no_name_in_what_streamlit_knows_of_controls() -> None:
    page = give(opened(), csv())
    page.button(key="dpviz.make").click().run()
    (name,) = page.session_state["dpviz.uploads"]
    mine = uploads._live[name]

    def known() -> str:
        """The texts of all options and callbacks of this session's controls."""
        seen, todo, texts = set(), [page.session_state._state._state._new_widget_state.widget_metadata], []
        while todo:
            one = todo.pop()
            if id(one) in seen or isinstance(one, type | ModuleType):
                continue
            seen.add(id(one))
            if isinstance(one, str):
                texts.append(one)
            elif not (isinstance(one, dict) and "__builtins__" in one):  # a module's names
                todo += gc.get_referents(one)
        return " ".join(texts)

    assert page.session_state["dpviz.table"][1] is mine.table
    words = {name, "=job"}
    assert all(word in known() for word in words), known()[:200]
    page.button(key=f"drop-{name}").click().run()
    assert not uploads.is_held(name)
    assert mine.table.frame.empty, "whatever still holds the object"
    assert "dpviz.table" not in page.session_state, "the first rows of the file are not shown either"
    assert page.session_state["dataset"] == dpviz.RunSpec.dataset
    assert not [word for word in words if word in known()]


def test_a_refused_file_is_read_once_until_something_changes(monkeypatch: pytest.MonkeyPatch) -> None:
    reads: list[object] = []
    real = upload.read_table

    def read(*args: object, **kwargs: object) -> object:
        reads.append(kwargs["header"])
        return real(*args, **kwargs)  # type: ignore[arg-type]

    monkeypatch.setattr(upload, "read_table", read)
    page = give(opened(), b"1,b,3\n4,c,6\n7,d,9\n")
    assert page.error
    page.run()
    assert page.error
    assert reads == [None]
    page.radio(key="dpviz.header").set_value("names").run()
    assert reads == [None, True]


def test_a_problem_that_is_kept_holds_nothing_of_what_was_tried() -> None:
    found: list[dpviz.InvalidInput] = []
    asked = {"dataset": "upload-0123456789abcdef", "epsilon": "no", "mechanism": "dp-gd", "dp-gd.steps": "x"}
    dpviz.resolve(dpviz.RunSpec.from_query(asked, found), found)
    assert len(found) >= 3
    assert all(problem.__traceback__ is None and problem.__context__ is None for problem in found)


def test_the_limit_on_files_is_the_limit_on_uploads(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("DPVIZ_MAX_MEGABYTES", "80")
    assert opened().file_uploader[0].proto.max_upload_size_mb == 80


def odd() -> bytes:
    """NA is a third of a text column, None is a class, 0 means missing in `dose`, and one column gives the label away."""
    lines = ["country,dose,before,outcome"]
    lines += [f"{['NA', 'ZA', 'BW'][k % 3]},{k % 5},{k % 2},{['None', 'ill'][k % 2]}" for k in range(90)]
    return "\n".join(lines).encode()


def test_the_form_asks_about_words_that_may_be_gaps_and_makes_remarks() -> None:
    page = give(opened(), odd())
    page.selectbox(key="dpviz.target").set_value("outcome").run()
    assert [page.radio(key=f"dpviz.gap.{word}").value for word in ("NA", "None")] == ["a value", "a value"]
    assert_words(
        text(page),
        "before alone predicts the label in 100.0 %",
        "read as a category. Rows with a gap are left out, unless the column has a value for gaps",
        "If it is a gap, say so.",
    )
    page.radio(key="dpviz.gap.NA").set_value("a gap").run()
    assert_words(
        text(page),
        "country has gaps in 30 of 90 rows",
        "tick “use”",  # what to do about it stands there as well
    )
    page.button(key="dpviz.make").click().run()
    mine = uploads._live[page.selectbox(key="dataset").value]
    assert "NA" in mine.spec.missing_in["country"]
    assert "outcome" not in mine.spec.missing_in
    made = mine.dataset(True)
    assert made.label_names == ("None", "ill")
    assert (made.label and made.label.guessed) == (), "the form shows which class is +1, and the person left it so"
    assert "before alone predicts" in text(page), "said of the dataset, too"


def test_the_form_asks_whose_rows_they_are_and_every_page_says_what_epsilon_is_for() -> None:
    lines = ["patient_id,age,outcome", *(f"p{k % 30},{20 + k % 50},{['ill', 'well'][(k // 3) % 2]}" for k in range(90))]
    page = give(opened(), "\n".join(lines).encode())
    assert page.selectbox(key="dpviz.person").value == "patient_id"
    assert "Guessed: it has the name of an id" in text(page)
    page.number_input(key="dpviz.person_rows").set_value(2).run()
    assert_words(
        text(page),
        "30 persons, the largest with 3 rows. Kept of each person: at most 1: 30 rows; at most 2: 60 rows",
        "With these columns 60 of 90 rows remain",
    )
    page.button(key="dpviz.make").click().run()
    made = uploads._live[page.selectbox(key="dataset").value].dataset(True)
    assert (made.n, made.person_rows) == (60, 2)
    assert not [name for name in made.feature_names if "patient" in name]
    unit = "ε is for one person, of whom at most 2 rows are kept"
    assert unit in "\n".join(str(c.value) for c in page.sidebar.caption)
    assert "30 of 90 rows were left out at random" in text(page)
