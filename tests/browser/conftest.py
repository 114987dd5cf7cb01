"""A running app and a Chromium to look at it with."""

import os
import re
import socket
import subprocess
import sys
import urllib.error
import urllib.request
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest
from support import LIMIT, until

from dpviz.experiments.run.links import KEY, VERSION

ROOT = Path(__file__).parents[2]
CHROMIUM = Path("/usr/bin/chromium")
FLAGS = """
    --headless --no-sandbox --disable-gpu --disable-quic --no-first-run --disable-background-networking
    --disable-component-update --disable-sync
""".split()
REQUIRED = "DPVIZ_REQUIRE_BROWSER"


def _missing(reason: str) -> None:
    if os.environ.get(REQUIRED):
        pytest.fail(f"{reason}, and {REQUIRED} is set")
    pytest.skip(f"{reason}; set {REQUIRED}=1 to make this a failure")


@pytest.fixture(scope="session")
def chromium() -> Iterator[Any]:
    if not CHROMIUM.exists():
        _missing(f"{CHROMIUM} is not there")
    try:
        from playwright.sync_api import sync_playwright
    except ImportError:
        _missing("playwright is not installed")
    with sync_playwright() as playwright:
        browser = playwright.chromium.launch(executable_path=str(CHROMIUM), args=list(FLAGS))
        yield browser
        browser.close()


class Server:
    """The app, started by the command line from another folder."""

    def __init__(self, cache: Path, start: tuple[str, ...] = ("-m", "dpviz")) -> None:
        """
        Args:
            cache: folder of its own.
            start: what Python is to run.
        """
        with socket.socket() as probe:
            probe.bind(("127.0.0.1", 0))
            self._port = probe.getsockname()[1]
        self._cache, self._start = cache, start
        self.address = f"http://127.0.0.1:{self._port}"
        self.start()

    def start(self) -> None:
        """Starts it, on the same port when it is started again."""
        environment = {k: v for k, v in os.environ.items() if not k.startswith("STREAMLIT_")}
        environment |= {"PYTHONPATH": str(ROOT), "DPVIZ_CACHE": str(self._cache)}
        command = [sys.executable, *self._start, "app", "--port", str(self._port), "--no-browser"]
        self._process = subprocess.Popen(
            command, cwd=self._cache, env=environment, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL
        )
        until(self._answers, "the server's start")

    def _answers(self) -> bool:
        assert self._process.poll() is None, "the server stopped"
        try:
            urllib.request.urlopen(f"{self.address}/_stcore/health", timeout=LIMIT).close()
        except urllib.error.HTTPError:  # it answers, below a path of its own
            return True
        except OSError:
            return False
        return True

    def kill(self) -> None:
        """Ends it at once, as a crash or a power cut would."""
        self._process.kill()
        self._process.wait(LIMIT)

    def stop(self) -> None:
        self._process.terminate()
        self._process.wait(LIMIT)


@pytest.fixture(scope="session")
def cache(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The server's own cache folder, so that nothing is computed before the tests."""
    return tmp_path_factory.mktemp("cache")


@pytest.fixture(scope="session")
def server(chromium: Any, cache: Path) -> Iterator[str]:
    """The address of the app that the tests share."""
    one = Server(cache)
    try:
        yield one.address
    finally:
        one.stop()


@pytest.fixture
def own_server(chromium: Any, tmp_path: Path) -> Iterator[Server]:
    """A server that a test may kill."""
    one = Server(tmp_path)
    try:
        yield one
    finally:
        one.kill()


@pytest.fixture
def server_of(chromium: Any, tmp_path: Path) -> Iterator[Callable[[str], tuple[str, Path]]]:
    """Starts the app by a piece of Python; gives its address and the folder that it runs in."""
    servers: list[Server] = []

    def make(code: str) -> tuple[str, Path]:
        servers.append(Server(tmp_path, ("-c", code)))
        return servers[-1].address, tmp_path

    yield make
    for one in servers:
        one.kill()


#: the page's first sentence, in which some spaces break no line
SENTENCE = "document.querySelector('.st-key-headline')?.innerText.replaceAll('\u00a0', ' ').replaceAll('\u2060', '')"


class Reader:
    """One person at the app: a page, and what went wrong on it."""

    def __init__(self, browser: Any, address: str, width: int, scheme: str) -> None:
        self.context = browser.new_context(viewport={"width": width, "height": 900}, color_scheme=scheme)
        self.context.set_default_timeout(1000 * LIMIT)
        self.page = self.context.new_page()
        self.address = address
        self.errors: list[str] = []
        self.foreign: list[str] = []
        self.page.on("console", self._told)
        self.page.on("pageerror", lambda e: self.errors.append(str(e)))
        self.page.on("request", self._requested)

    def _told(self, message: Any) -> None:
        # on a link to a page Streamlit looks for its server below the page's path first, and then finds it at the root
        probing = "404" in message.text and re.search(r"/[^/]+/_stcore/(health|host-config)", message.location.get("url", ""))
        if message.type == "error" and not probing:
            self.errors.append(f"{message.text} {message.location.get('url', '')}")

    def _requested(self, request: Any) -> None:
        if not request.url.startswith((self.address, self.address.replace("http", "ws"), "data:", "blob:")):
            self.foreign.append(request.url)

    def open(self, query: str = "", path: str = "/", version: str = f"&{KEY}={VERSION}") -> Any:
        self.page.goto(f"{self.address}{path}{query}{version if query else ''}")
        self.settled()
        return self.page

    def settled(self) -> None:
        """Waits for a picture, and until the page is quiet."""
        try:
            self.page.wait_for_selector(".js-plotly-plot .main-svg, .dpviz-picture svg")
        except Exception as late:
            shown = self.page.locator("body").inner_text()[:1000]
            raise AssertionError(f"no picture; the page says {shown!r}, the console {self.errors}") from late
        self.quiet()

    def unfold(self, name: str) -> None:
        """Opens a fold by its words and waits until it is open; a browser may keep it open from the page before."""
        fold = self.page.get_by_text(name, exact=True).last
        if not fold.evaluate("words => words.closest('details')?.open ?? false"):
            fold.click()
        self.quiet()

    def quiet(self) -> None:
        """Waits for script and run to have finished, all controls and pictures to be drawn, and nothing to slide any more.

        Controls are loaded after the page that holds them, and a fold slides open for half a second: a click may begin on what
        it is meant for and end beside it.
        """
        self.page.wait_for_function(
            "() => document.querySelector('[data-testid=stApp][data-test-script-state=notRunning]')"
            " && !document.querySelector('[class*=st-key-working-] [data-testid=stProgress], [class*=st-key-first-]')"
            " && [...document.querySelectorAll('[data-testid=stPlotlyChart]')]"
            ".every(e => !e.offsetParent || e.querySelector('.main-svg'))"
            " && [...document.querySelectorAll('.dpviz-picture')].every(e => e.firstChild)"
            " && ![...document.querySelectorAll('[data-testid=stSkeleton]')].some(e => e.checkVisibility())"
            " && document.getAnimations().every(a => a.playState !== 'running' || a.effect.getTiming().iterations === Infinity)"
        )

    @property
    def sentence(self) -> str:
        return str(self.page.wait_for_function(SENTENCE).json_value())

    def waits_for(self, sentence: str) -> None:
        """Until the first sentence is this one."""
        self.page.wait_for_function(f"t => {SENTENCE} === t", arg=sentence)

    def waits_for_another(self, sentence: str) -> None:
        """Until the first sentence is another one."""
        self.page.wait_for_function(f"t => ![undefined, t].includes({SENTENCE})", arg=sentence)

    def press(self, key: str, times: int = 1) -> None:
        """Presses a key on the ε slider and waits for a new sentence."""
        slider = self.page.get_by_role("slider", name="Privacy budget ε")
        for _ in range(times):
            before = self.sentence
            slider.press(key)
            self.waits_for_another(before)
        self.settled()


@pytest.fixture
def visitor(chromium: Any) -> Callable[[str], Reader]:
    """A person at an app of which the test itself knows the address, and whom it lets leave."""
    return lambda address: Reader(chromium, address, 1280, "light")


@pytest.fixture
def reader(chromium: Any, server: str) -> Iterator[Callable[..., Reader]]:
    """Opens the app for a reader; at the end nobody may have seen an error or talked to anyone else."""
    readers: list[Reader] = []

    def make(width: int = 1280, scheme: str = "light", address: str = server) -> Reader:
        readers.append(Reader(chromium, address, width, scheme))
        return readers[-1]

    yield make
    for one in readers:
        one.context.close()
    assert not [e for one in readers for e in one.errors]
    assert not [u for one in readers for u in one.foreign]


@pytest.fixture
def one(reader: Callable[..., Reader]) -> Reader:
    """A reader with a window of the usual size."""
    return reader()
