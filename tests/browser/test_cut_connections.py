"""A connection or a server lost just after a control was moved: page, address and control agree then, on what was set last."""

from collections.abc import Callable
from typing import Any

import pytest
from streamlit.proto.BackMsg_pb2 import BackMsg
from streamlit.proto.ForwardMsg_pb2 import ForwardMsg
from support import until

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
