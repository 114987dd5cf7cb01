"""The server's start."""

import asyncio
import contextlib
import gc
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import pytest

from dpviz.common import threads
from dpviz.common.validate import InvalidInput
from dpviz.dashboard.frame import links, server
from dpviz.dashboard.jobs import cached_runs

ROOT = Path(__file__).parents[2]


@pytest.fixture(autouse=True)
def not_forever(monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    """What a server holds until it ends is let go of after each test."""
    with contextlib.ExitStack() as held:
        monkeypatch.setattr(server, "_forever", held)
        monkeypatch.setattr(server, "LATER", 0.0)
        monkeypatch.setattr(server, "_load_other_pages", lambda: None)
        yield


def test_libraries_are_left_out_of_the_collections_after_every_run_of_a_page(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(cached_runs, "outcome", lambda spec: (_ for _ in ()).throw(OSError("no data")))
    before = gc.get_freeze_count()
    try:
        server._load()
        assert gc.get_freeze_count() > before
        assert len(gc.get_objects()) < gc.get_freeze_count() / 10, "what is collected is little beside what is not"
    finally:
        gc.unfreeze()


def test_a_server_has_one_thread_for_matrix_products_until_it_ends(monkeypatch: pytest.MonkeyPatch) -> None:
    """The number itself belongs to the process, in which the work of other tests may change it at any time."""
    happened: list[str] = []

    @contextlib.contextmanager
    def one_thread() -> Iterator[None]:
        happened.append("one thread")
        yield
        happened.append("as before")

    def outcome(spec: object) -> None:
        happened.append("first model")
        raise OSError("no data")

    monkeypatch.setattr(threads, "thread_settings", one_thread)
    monkeypatch.setattr(cached_runs, "outcome", outcome)
    server._load()
    gc.unfreeze()
    assert happened == ["one thread", "first model"]
    server._forever.close()
    assert happened[2:] == ["as before"]


@pytest.mark.parametrize(
    ("host", "expected"),
    [
        ("127.0.0.1", ["http://127.0.0.1:8501/dpviz"]),
        ("::1", ["http://[::1]:8501/dpviz"]),
        ("0.0.0.0", ["http://localhost:8501/dpviz", "http://10.0.0.7:8501/dpviz"]),
    ],
)
def test_the_address_is_printed_and_opened_where_a_person_sits_here(
    host: str, expected: list[str], monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    async def start() -> None:
        async with server.settings()["lifespan"](None):
            pass

    opened: list[str] = []
    options = {"server.address": host, "server.port": 8501, "server.baseUrlPath": "/dpviz/", "server.headless": False}
    monkeypatch.setattr(server, "_load", lambda: None)
    monkeypatch.setattr(server.webbrowser, "open", opened.append)
    monkeypatch.setattr(server, "_network_address", lambda: "10.0.0.7")
    monkeypatch.setattr(server.st, "get_option", options.get)
    for options["server.headless"] in (False, True):
        with ThreadPoolExecutor(1) as apart:
            apart.submit(lambda: asyncio.run(start())).result()
    assert capsys.readouterr().out == f"dpviz: {' or '.join(expected)}\n" * 2
    assert opened == expected[:1]


def test_every_page_begins_with_its_frame() -> None:
    for path in [ROOT / "app.py", *(ROOT / "pages").glob("*.py")]:
        assert "page.start(" in path.read_text(), path.name


def test_every_page_stands_in_one_group_of_the_navigation() -> None:
    titles = [links.title(path.stem) for path in (ROOT / "pages").glob("*.py")]
    assert sorted([links.FIRST, *titles]) == sorted(title for group in links.GROUPS.values() for title in group)


def test_the_address_is_printed_as_a_code(capsys: pytest.CaptureFixture[str]) -> None:
    pytest.importorskip("segno")
    server._check_code("", "0.0.0.0")
    server._print_code("http://10.0.0.7:8501/dpviz")
    lines = capsys.readouterr().out.splitlines()
    assert lines[0] == "http://10.0.0.7:8501/dpviz"
    assert len(lines) > 10


@pytest.mark.parametrize(
    ("address", "host", "said"), [("", None, "0.0.0.0"), ("", "127.0.0.1", "0.0.0.0"), ("javascript:x", "0.0.0.0", "no address")]
)
def test_no_code_leads_nowhere(address: str, host: str | None, said: str) -> None:
    with pytest.raises(InvalidInput, match=said):
        server._check_code(address, host)
