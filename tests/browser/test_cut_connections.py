"""A connection or a server that is lost after a control was moved, and people who leave, of whom nothing is left."""

import json
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from streamlit.proto.BackMsg_pb2 import BackMsg
from streamlit.proto.ForwardMsg_pb2 import ForwardMsg
from support import LIMIT, until

SETTLED = "[data-testid=stApp][data-test-script-state=notRunning][data-test-connection-state=CONNECTED]"


class Line:
    """The connection between a page and its server, which breaks when it is told to.

    Attributes:
        breaks: told of every message, whether it comes from the server and its kind; True breaks the connection before it.
        loses: told the same; True loses the message.
        cuts: how often it broke.
    """

    def __init__(self, page: Any) -> None:
        self.breaks: Callable[[bool, str], bool] = lambda from_server, kind: False
        self.loses: Callable[[bool, str], bool] = lambda from_server, kind: False
        self.cuts = 0
        page.route_web_socket("**/_stcore/stream", self._connect)

    def _connect(self, browser: Any) -> None:
        server = browser.connect_to_server()
        over: list[bool] = []

        def passes(content: Any, from_server: bool) -> bool:
            kind = _kind(content, from_server)
            if not over and self.breaks(from_server, kind):
                over.append(True)
                self.cut(browser, server)
            return not over and not self.loses(from_server, kind)

        browser.on_message(lambda content: server.send(content) if passes(content, False) else None)
        server.on_message(lambda content: browser.send(content) if passes(content, True) else None)
        self._ends = (browser, server)

    def cut(self, browser: Any = None, server: Any = None) -> None:
        """Breaks it now."""
        self.cuts += 1
        for end in (browser, server) if browser is not None else self._ends:
            end.close(code=1001)  # Streamlit's browser connects again


def _kind(content: Any, from_server: bool) -> str:
    message = ForwardMsg() if from_server else BackMsg()
    message.ParseFromString(content)
    return str(message.WhichOneof("type"))


def count(wanted: Callable[[bool, str], bool], number: int) -> Callable[[bool, str], bool]:
    """Breaks at one such message, the first for 0, and never again."""
    seen: list[None] = []

    def breaks(from_server: bool, kind: str) -> bool:
        if wanted(from_server, kind):
            seen.append(None)
            return len(seen) == number + 1
        return False

    return breaks


def request(from_server: bool, kind: str) -> bool:
    return not from_server and kind == "rerun_script"


def address(from_server: bool, kind: str) -> bool:
    return from_server and kind == "page_info_changed"


def part(from_server: bool, kind: str) -> bool:
    return from_server and kind == "delta"


def ends(from_server: bool, kind: str) -> bool:
    return from_server and kind == "script_finished"


def agree(one: Any, epsilon: str) -> None:
    """Waits until sentence, address and slider are at this value, and the page is quiet."""
    one.page.wait_for_function(
        "([e, settled]) => document.querySelector(settled) &&"
        " document.querySelector('.st-key-headline')?.innerText.replaceAll('\u00a0', ' ')"
        ".includes(`at ε = ${e} `)"
        " && new URL(location).searchParams.get('epsilon') === e"
        " && document.querySelector('.st-key-budget input[type=range]')?.getAttribute('aria-valuetext') === e",
        arg=[epsilon, SETTLED],
    )


@pytest.mark.long
@pytest.mark.parametrize(
    ("what", "number"), [(request, 0), (part, 10), (ends, 0)], ids=lambda v: v.__name__ if callable(v) else str(v)
)
def test_what_was_set_just_before_a_cut_is_not_lost(one: Any, what: Any, number: int) -> None:
    line = Line(one.page)
    one.open("?dataset=teaching&seeds=2&epsilon=0.5")
    slider = one.page.get_by_role("slider", name="Privacy budget ε")
    line.breaks = count(what, number)
    slider.press("ArrowRight")
    until(lambda: bool(one.page.wait_for_timeout(20)) or line.cuts == 1, "the cut")
    agree(one, "0.56")
    assert line.cuts == 1


@pytest.mark.long
def test_what_was_typed_milliseconds_before_a_cut_is_not_lost(one: Any) -> None:
    line = Line(one.page)
    one.open("?dataset=teaching&seeds=2&epsilon=0.5")
    one.unfold("More settings, compare, report")
    box = one.page.get_by_role("textbox", name="ε, exactly")
    box.fill("0.37")
    box.press("Enter")
    one.page.wait_for_timeout(60)
    line.cut()
    agree(one, "0.37")


@pytest.mark.long
def test_what_was_set_stays_when_a_second_request_leaves_before_the_first_is_answered(one: Any) -> None:
    line = Line(one.page)
    one.open("?dataset=teaching&seeds=2&epsilon=0.5")
    line.loses = address
    one.page.get_by_role("slider", name="Privacy budget ε").press("ArrowRight")
    one.page.wait_for_function("() => /at ε.=.0\\.56 /.test(document.querySelector('.st-key-headline')?.innerText)")
    one.quiet()
    line.loses = lambda from_server, kind: False
    one.page.evaluate("() => document.querySelector('.st-key-draw-again button').click()")
    agree(one, "0.56")


@pytest.mark.long
def test_a_page_of_which_only_the_end_arrived_is_drawn_when_the_connection_is_back(one: Any) -> None:
    line = Line(one.page)
    one.open("?dataset=teaching&seeds=2&epsilon=0.5")
    line.loses = part
    one.page.get_by_role("slider", name="Privacy budget ε").press("ArrowRight")
    one.page.wait_for_selector(".st-key-headline", state="detached")
    line.loses = lambda from_server, kind: False
    line.cut()
    agree(one, "0.56")


@pytest.mark.long
def test_a_server_that_is_killed_and_comes_back_finds_an_open_page_where_it_was(
    own_server: Any, visitor: Callable[[str], Any]
) -> None:
    one = visitor(own_server.address)
    one.open("?dataset=teaching&seeds=2&epsilon=0.5")
    one.page.get_by_role("slider", name="Privacy budget ε").press("ArrowRight")
    agree(one, "0.56")
    own_server.kill()
    one.page.wait_for_selector(SETTLED, state="detached")
    own_server.start()
    agree(one, "0.56")


ROWS = 1013  # numbers of rows that nothing else has: all, training, test
MARK = "zebra4711"  # a text that is in the files only

#: the app with a short patience, which tells what it holds when it is asked
WATCHED = """
import gc, json, os, threading, time
import numpy as np, pandas as pd
from pathlib import Path
from dpviz.dashboard.frame import session
session.LINGER = 4.0
LENGTHS, MARK = {1013, 810, 203}, "".join(("zebra", "4711"))  # this code is in memory too

def holding():
    gc.unfreeze()
    gc.collect()
    rows, texts = {}, {}
    for thing in gc.get_objects():
        for part in gc.get_referents(thing):
            shape = part.shape if isinstance(part, (np.ndarray, pd.DataFrame, pd.Series, pd.Index)) else ()
            if LENGTHS & set(shape):
                rows[id(part)] = f"{type(part).__name__} {shape} in {type(thing).__name__}"
            elif type(part) is bytes and MARK.encode() in part or type(part) is str and MARK in part and part != MARK:
                texts[id(part)] = f"{type(part).__name__} {len(part)} in {type(thing).__name__} {str(thing)[:80]!r}"
    return sorted(rows.values()), sorted(texts.values())

def tell():
    while True:
        time.sleep(0.1)
        if Path("ask").exists():
            os.unlink("ask")
            state = {"files": len(os.listdir("/proc/self/fd")), "threads": sorted(t.name for t in threading.enumerate())}
            # another process looks at a copy: a tuple that a page is just making fails when somebody else holds it (CPython 3.11)
            if not (looking := os.fork()):
                rows, texts = holding()
                Path("told.part").write_text(json.dumps(state | {"rows": rows, "texts": texts}))
                os.rename("told.part", "told")
                os._exit(0)
            os.waitpid(looking, 0)

threading.Thread(target=tell, name="telling", daemon=True).start()
from dpviz.cli.start import main
raise SystemExit(main())
"""


class Watched:
    """A server that says what it holds."""

    def __init__(self, address: str, folder: Path) -> None:
        self.address, self._cache = address, folder

    def told(self) -> dict[str, Any]:
        (self._cache / "told").unlink(missing_ok=True)
        (self._cache / "ask").touch()
        until((self._cache / "told").exists, "an answer")
        state: dict[str, Any] = json.loads((self._cache / "told").read_text())
        return state

    def until(self, true: Callable[[dict[str, Any]], bool]) -> dict[str, Any]:
        end = time.monotonic() + LIMIT
        while True:
            state = self.told()
            if true(state):
                return state
            assert time.monotonic() < end, json.dumps(state, indent=1)[:6000]
            time.sleep(0.5)


@pytest.fixture
def watched(server_of: Callable[[str], tuple[str, Path]]) -> Watched:
    return Watched(*server_of(WATCHED))


def csv() -> bytes:
    rng = np.random.default_rng(5)
    lines = ["age,wage,word,label"]
    lines += [
        f"{age},{wage:.3f},{MARK if wage > 0.5 else ('other', 'third')[age % 2]},{'yes' if age + 20 * wage > 60 else 'no'}"
        for age, wage in zip(rng.integers(18, 90, ROWS), rng.random(ROWS), strict=True)
    ]
    return "\n".join(lines).encode()


def give(reader: Any, content: bytes, name: str) -> None:
    reader.page.goto(f"{reader.address}/Data?dataset=teaching")
    reader.page.locator("input[type=file]").set_input_files({"name": name, "mimeType": "text/csv", "buffer": content})


def made_mine(owner: Any) -> None:
    """Makes the upload the dataset and looks it up; a tab that is clicked before the page is drawn anew is left again."""
    owner.page.get_by_role("button", name="Make it my dataset").click()
    owner.page.wait_for_function("location.search.includes('upload-')")
    owner.settled()
    owner.page.get_by_role("tab", name="All datasets").click()
    owner.page.get_by_text("your upload").wait_for()


@pytest.mark.long
@pytest.mark.skipif(not Path("/proc/self/fd").exists(), reason="open files are counted in /proc")
def test_nothing_is_left_of_people_who_left(visitor: Callable[[str], Any], watched: Watched) -> None:
    first = visitor(watched.address)
    first.open("?dataset=teaching&seeds=2")
    first.context.close()
    start = watched.told()
    assert (start["rows"], start["texts"]) == ([], [])

    owner, refused, other = (visitor(watched.address) for _ in range(3))
    other.open("?dataset=teaching&seeds=2")
    give(refused, b"\x89PNG" + MARK.encode() * 500_000, "picture.csv")
    refused.page.get_by_text("picture, not text").wait_for()
    give(owner, csv(), "people.csv")
    made_mine(owner)
    for page in ("Person", "Trade-off"):
        owner.page.get_by_role("link", name=page).first.click()
        owner.page.wait_for_function("path => location.pathname.includes(path)", arg=page.replace(" ", "_"))
        owner.settled()
    full = watched.until(lambda state: len(state["rows"]) > 10)  # more than the table: models and influence hold rows too
    assert full["texts"]

    refused.context.close()
    owner.context.close()
    other.page.reload()  # Streamlit's loop keeps the last session that was closed until another one connects
    watched.until(lambda state: not state["rows"] and not state["texts"])
    other.settled()
    other.context.close()
    watched.until(lambda state: state["files"] <= start["files"] and len(state["threads"]) <= len(start["threads"]))
