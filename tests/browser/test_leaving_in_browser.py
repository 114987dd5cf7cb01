"""People who leave: nothing of their files is left in the server, and it goes back to the files and threads of its start."""

import json
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from support import LIMIT, until

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
            rows, texts = holding()
            threads = sorted(t.name for t in threading.enumerate())
            state = {"rows": rows, "texts": texts, "files": len(os.listdir("/proc/self/fd")), "threads": threads}
            Path("told.part").write_text(json.dumps(state))
            os.rename("told.part", "told")

threading.Thread(target=tell, name="telling", daemon=True).start()
from dpviz.cli.start import main
raise SystemExit(main())
"""

pytestmark = pytest.mark.skipif(not Path("/proc/self/fd").exists(), reason="open files are counted in /proc")


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
