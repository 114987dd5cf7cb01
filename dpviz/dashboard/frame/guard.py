"""A guard of the server: it answers to names that it was started for, and to pages that it has sent itself.

A page of another site may point its own name at this machine (DNS rebinding) and then read what a browser here can reach. It
cannot change the Host header, which holds that name, and the Origin header, which names the site.
"""

import ipaddress
import os
import socket
from collections.abc import Awaitable, Callable, Iterable, MutableMapping
from typing import Any
from urllib.parse import urlsplit

from starlette.middleware import Middleware

from dpviz.dashboard.frame import private, renewal

LOCAL = ("localhost", "127.0.0.1", "::1")
EVERYWHERE = ("0.0.0.0", "::")
#: where an operator has said more, Streamlit checks names itself
SAID = "STREAMLIT_SERVER_ALLOWED_HOSTS"


def headers(ancestors: Iterable[str] | None = ()) -> tuple[tuple[bytes, bytes], ...]:
    """Headers of every answer.

    Args:
        ancestors: origins of the sites that may show the app in a frame; no site may where there is none, every site for None.
    """
    sites = "*" if ancestors is None else " ".join(ancestors)
    policy = f"frame-ancestors {sites or chr(39) + 'none' + chr(39)}; object-src 'none'; base-uri 'self'"
    frames = () if sites else ((b"x-frame-options", b"DENY"),)
    return (*frames, (b"content-security-policy", policy.encode()), (b"x-content-type-options", b"nosniff"))


Message = MutableMapping[str, Any]
Receive = Callable[[], Awaitable[Message]]
Send = Callable[[Message], Awaitable[None]]
App = Callable[[Message, Receive, Send], Awaitable[None]]


def names_of(host: str | None, more: Iterable[str] = ()) -> frozenset[str]:
    """Names that a server is started for.

    Args:
        host: address that it listens on; None for this machine only.
        more: names that a person has allowed.
    """
    names = {*LOCAL, *map(_plain, more)}
    if host is not None and host not in LOCAL:
        here = socket.gethostname()
        names |= {here, f"{here}.local"} | (set() if host in EVERYWHERE else {host})
    return frozenset(map(_plain, names))


def made(names: frozenset[str] | None = None, *, addresses: bool = False, ancestors: Iterable[str] | None = None) -> Middleware:
    """A guard for a server; without arguments that of `streamlit run`.

    Args:
        names: allowed names; None leaves them to Streamlit's own list, `server.allowedHosts`.
        addresses: whether addresses in digits are allowed too; they cannot be pointed elsewhere.
        ancestors: origins of the sites that may show the app in a frame, every site for None.
    """
    return Middleware(Guard, names=names, addresses=addresses, answered=headers(ancestors))


class Guard:
    """Refuses requests under another name and sockets of other sites; answers may not be shown inside other pages."""

    def __init__(
        self, app: App, *, names: frozenset[str] | None, addresses: bool, answered: tuple[tuple[bytes, bytes], ...] = headers()
    ) -> None:
        self._app, self._names, self._addresses, self._answered = app, names, addresses, answered

    async def __call__(self, scope: Message, receive: Receive, send: Send) -> None:
        """One request, as ASGI has it."""
        if scope["type"] not in ("http", "websocket"):
            await self._app(scope, receive, send)
            return
        if not scope.get("path", "").endswith("/_stcore/health"):  # which machines ask for
            renewal.asked()
        headers = {name.lower(): value.decode("latin-1") for name, value in scope["headers"]}
        allowed = self._host(headers.get(b"host", ""))
        if scope["type"] == "websocket":
            if allowed and _same(headers.get(b"origin"), headers.get(b"host", "")):
                await self._app(scope, receive, send)
            else:
                await receive()
                await send({"type": "websocket.close", "code": 1008})
            return
        if not allowed:
            text = b"This server was not started for this name. The operator can allow it with --allow-host (dpviz app) or " + (
                b"server.allowedHosts (streamlit run)."
            )
            answered = [(b"content-type", b"text/plain"), *self._answered]
            await send({"type": "http.response.start", "status": 421, "headers": answered})
            await send({"type": "http.response.body", "body": text})
            return

        async def with_headers(message: Message) -> None:
            if message["type"] == "http.response.start":
                message["headers"] = [*message.get("headers", ()), *self._answered]
            await send(message)

        await self._app(scope, receive, with_headers)

    def _host(self, header: str) -> bool:
        """True where a Host header is allowed; its port does not matter."""
        if self._names is None:
            return private.host_allowed(header)
        try:
            name = _plain(urlsplit(f"//{header}").hostname or "")
        except ValueError:
            return False
        return name in self._names or (self._addresses and _is_address(name))


def _same(origin: str | None, host: str) -> bool:
    """True where a page comes from the server itself. Browsers always send an origin with a socket."""
    if origin is None:
        return False
    try:
        return urlsplit(origin).netloc.lower() == host.lower()
    except ValueError:
        return False


def _is_address(name: str) -> bool:
    try:
        ipaddress.ip_address(name)
    except ValueError:
        return False
    return True


def _plain(name: str) -> str:
    return name.strip().strip("[]").lower().rstrip(".")


def left_to_streamlit() -> bool:
    """True where an operator has set Streamlit's own list of names."""
    return SAID in os.environ
