"""A guard in front of the app: it answers to the names that it was started for, and to pages that it has sent itself.

A page of another site may point its own name at this machine (DNS rebinding) and then read what a browser here can reach. It
cannot change the Host header, which holds that name, and the Origin header, which names the site. An address in digits as Host
is no such name. Each browser gets a secret cookie; Streamlit gives a session and its place for uploads to that browser alone.
"""

import fnmatch
import ipaddress
import re
import secrets
import socket
from collections.abc import Iterable
from contextlib import suppress
from urllib.parse import urlsplit

import streamlit as st
from starlette.datastructures import MutableHeaders
from starlette.requests import HTTPConnection
from starlette.responses import PlainTextResponse
from starlette.types import ASGIApp, Message, Receive, Scope, Send

from dpviz.common.limits import demo
from dpviz.dashboard.frame import session

LOCAL = ("localhost", "127.0.0.1", "::1")
EVERYWHERE = ("0.0.0.0", "::")
#: where an operator has set it, it is the list of names
HOSTS_VARIABLE = "STREAMLIT_SERVER_ALLOWED_HOSTS"
#: the header of `server.trustedUserHeaders` (config.toml): a session belongs to who has sent the same one
BROWSER_HEADER = b"x-dpviz-browser"

_UPLOAD = re.compile(r"/_stcore/upload_file/([^/]+)/")


def headers(ancestors: Iterable[str] | None = ()) -> dict[str, str]:
    """Headers of every answer.

    Args:
        ancestors: origins of the sites that may show the app in a frame; no site may where there is none, every site for None.
    """
    sites = "*" if ancestors is None else " ".join(ancestors)
    policy = f"frame-ancestors {sites or chr(39) + 'none' + chr(39)}; object-src 'none'; base-uri 'self'"
    frames = {} if sites else {"x-frame-options": "DENY"}
    return frames | {"content-security-policy": policy, "x-content-type-options": "nosniff"}


def names_of(host: str | None, more: Iterable[str] = ()) -> list[str]:
    """Names that a server is started for.

    Args:
        host: address that it listens on; None for this machine only.
        more: names that a person has allowed.
    """
    here = socket.gethostname()
    own = [] if host is None or host in LOCAL else [host, here, f"{here}.local"]
    return [name.strip().lower().rstrip(".") for name in ("localhost", *own, *more)]


class Guard:
    """Middleware that refuses requests under another name, of other sites and, in a demonstration, uploads; adds headers."""

    def __init__(self, app: ASGIApp, names: list[str] | None = None, ancestors: Iterable[str] | None = None) -> None:
        """
        Args:
            names: those that are allowed; None for Streamlit's own list, `server.allowedHosts`.
            ancestors: see `headers`.
        """
        self._app, self._names, self._headers = app, names, headers(ancestors)

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """One request, as ASGI has it."""
        if scope["type"] not in ("http", "websocket"):
            await self._app(scope, receive, send)
            return
        connection = HTTPConnection(scope)
        refusal = self._refusal(connection)
        if refusal is not None:
            refusal.headers.update(self._headers)
            await refusal(scope, receive, send)
            return
        known = connection.cookies.get(session.COOKIE)
        others = [pair for pair in scope["headers"] if pair[0].lower() != BROWSER_HEADER]
        scope = {**scope, "headers": [*others, (BROWSER_HEADER, (known or "").encode())]}

        async def send_with_headers(message: Message) -> None:
            if message["type"] == "http.response.start":
                answer = MutableHeaders(scope=message)
                answer.update(self._headers)
                if not known:
                    cookie = f"{session.COOKIE}={secrets.token_urlsafe()}; Path=/; HttpOnly; SameSite=Lax"
                    answer.append("set-cookie", cookie)
            await send(message)

        await self._app(scope, receive, send_with_headers)

    def _refusal(self, connection: HTTPConnection) -> PlainTextResponse | None:
        """The answer to a request that goes no further."""
        host, origin = connection.headers.get("host", ""), connection.headers.get("origin")
        if not self._answers_to(host):
            text = "This server was not started for this name. The operator can allow it with --allow-host (dpviz app) or "
            return PlainTextResponse(f"{text}server.allowedHosts (streamlit run).", 421)
        socket_of_nobody = origin is None and connection.scope["type"] == "websocket"  # browsers always send an origin with it
        if socket_of_nobody or (origin is not None and origin.lower().partition("://")[2] != host.lower()):
            return PlainTextResponse("This page is for its own site only.", 403)
        if connection.scope["path"].endswith("/_stcore/metrics"):
            return PlainTextResponse("What this server holds is not told.", 404)
        upload = _UPLOAD.search(connection.scope["path"])
        if upload is not None and connection.scope.get("method") in ("PUT", "DELETE"):
            if demo():
                return PlainTextResponse("This server is a demonstration and takes no files.", 403)
            if not session.belongs(upload[1], connection.cookies.get(session.COOKIE, "")):
                return PlainTextResponse("This session belongs to another browser.", 403)
        return None

    def _answers_to(self, host: str) -> bool:
        """True where a Host header is allowed; its port does not matter."""
        with suppress(ValueError):
            name = (urlsplit(f"//{host}").hostname or "").rstrip(".")
            with suppress(ValueError):
                return bool(ipaddress.ip_address(name))
            names = st.get_option("server.allowedHosts") if self._names is None else self._names
            return any(fnmatch.fnmatchcase(name, pattern) for pattern in names)
        return False
