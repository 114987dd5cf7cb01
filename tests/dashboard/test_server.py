"""The server's start."""

import asyncio
import contextlib
import gc
import threading
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import pytest
from support import LIMIT

from dpviz.common import threads
from dpviz.common.validate import InvalidInput
from dpviz.dashboard.frame import server
from dpviz.dashboard.jobs import cached_runs
from tests.models.tables import needs_kernels

ROOT = Path(__file__).parents[2]


@pytest.fixture(autouse=True)
def not_forever(monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    """What a server holds until it ends is let go of after each test."""
    with contextlib.ExitStack() as held:
        monkeypatch.setattr(server, "_forever", held)
        yield


def test_libraries_are_left_out_of_the_collections_after_every_run_of_a_page(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(cached_runs, "outcome", lambda spec: (_ for _ in ()).throw(OSError("no data")))
    before = gc.get_freeze_count()
    try:
        server._warm()
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
    server._warm()
    gc.unfreeze()
    assert happened == ["one thread", "first model"]
    server._forever.close()
    assert happened[2:] == ["as before"]


@needs_kernels
def test_a_kernel_that_cannot_be_compiled_does_not_keep_the_server_from_starting_anew(monkeypatch: pytest.MonkeyPatch) -> None:
    from dpviz.models.kernels import products

    def broken(loss: object) -> Iterator[object]:
        yield "a kernel"
        raise RuntimeError("gradient cannot be compiled")

    happened: list[str] = []
    monkeypatch.setattr(products, "compiled_ahead", broken)
    monkeypatch.setattr(server, "LATER", 0.0)
    monkeypatch.setattr(server, "_warm", lambda: None)
    monkeypatch.setattr(server.private, "load_icons", lambda: happened.append("icons"))
    monkeypatch.setattr(server.renewal, "started", lambda: happened.append("renewal"))
    server._start()
    assert happened == ["icons", "renewal"]


def test_the_process_is_set_up_once_whichever_command_started_it(monkeypatch: pytest.MonkeyPatch) -> None:
    started: list[str] = []
    monkeypatch.setattr(server, "_guard", None)
    monkeypatch.setattr(server, "_start", lambda: started.append("warm"))
    monkeypatch.setattr(server.memory, "c_library", lambda name, *numbers: started.append(f"{name} {numbers}"))
    monkeypatch.setattr(server.private, "stay_inside", lambda: started.append("inside"))
    monkeypatch.setattr(server.private, "look_keys_up", lambda: started.append("keys"))
    monkeypatch.setattr(server.private, "send_to_the_present_client", lambda: started.append("client"))
    for _ in range(3):
        server.middleware()
    for thread in threading.enumerate():
        if thread.name == "dpviz-warm":
            thread.join(LIMIT)
    assert sorted(started) == ["client", "inside", "keys", "mallopt (-8, 1)", "warm"]


def test_the_address_is_printed_and_opened_where_a_person_sits_here(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    async def start() -> None:
        async with server.lifespan(None):
            pass

    opened: list[str] = []
    headless = [False]
    monkeypatch.setattr(server.private, "open_browser", opened.append)
    monkeypatch.setattr(server.private, "addresses", lambda: ["http://a:1", "http://b:1"])
    monkeypatch.setattr(server.private, "get_option", lambda name: headless[0])
    for headless[0] in (False, True):
        with ThreadPoolExecutor(1) as apart:
            apart.submit(lambda: asyncio.run(start())).result()
    assert capsys.readouterr().out == "dpviz: http://a:1 or http://b:1\n" * 2
    assert opened == ["http://a:1"]


def test_every_page_begins_with_its_frame() -> None:
    for path in [ROOT / "app.py", *(ROOT / "pages").glob("*.py")]:
        assert "page.start(" in path.read_text(), path.name


def test_pages_have_numbers_of_their_own_which_give_their_order() -> None:
    names = sorted(path.stem for path in (ROOT / "pages").glob("*.py"))
    assert [name.partition("_")[0] for name in names] == [str(k) for k in range(len(names))]


def test_the_address_is_printed_as_a_code(capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch) -> None:
    pytest.importorskip("segno")
    monkeypatch.setattr(server, "_code", None)
    server._check_code("", "0.0.0.0")
    assert server._code == ""
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
