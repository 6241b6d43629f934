"""What every answer has: an id to find it in the log by, and headers that keep browsers from harm."""

import re
import uuid
from collections.abc import MutableMapping
from typing import Any
from urllib.parse import quote, unquote

from starlette.datastructures import MutableHeaders
from starlette.requests import HTTPConnection
from starlette.types import ASGIApp, Message, Receive, Scope, Send

from bullpen.observing import RequestAtWork
from bullpen.server.problems import answer_to
from bullpen.server.site import Site

SLASH = "\ue000"
"""What stands in a path for a slash that was escaped, so that it does not end a part of the path."""
_ESCAPED_SLASH = re.compile("%2f", re.IGNORECASE)
REQUEST_ID = "X-Request-Id"
_MAX_ID = 100
_HTTPS_ONLY = "max-age=31536000"
_HEADERS = {
    "X-Content-Type-Options": "nosniff",
    "X-Frame-Options": "DENY",
    "Referrer-Policy": "no-referrer",
    "Cross-Origin-Opener-Policy": "same-origin",
    "Content-Security-Policy": "default-src 'self'; frame-ancestors 'none'; base-uri 'none'; form-action 'self'",
}


def is_https(connection: HTTPConnection) -> bool:
    """Whether the caller came by HTTPS, to us or to a proxy before us. Who lies about it harms itself only."""
    said = connection.headers.get("x-forwarded-proto", "").partition(",")[0].strip().lower()
    return connection.scope["scheme"] in ("https", "wss") or said == "https"


class Envelope:
    """The outermost: also turns what nobody caught into an answer of the one shape."""

    def __init__(self, app: ASGIApp) -> None:
        self._app = app

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        if scope["type"] != "http":
            await self._app(scope, receive, send)
            return
        scope["path"] = _path_of(scope)
        connection = HTTPConnection(scope)
        request_id = _given_id(connection) or uuid.uuid4().hex
        state: MutableMapping[str, Any] = scope.setdefault("state", {})
        state["request_id"] = request_id
        has_begun = False

        async def sending(message: Message) -> None:
            nonlocal has_begun
            if message["type"] == "http.response.start":
                has_begun = True
                headers = MutableHeaders(scope=message)
                headers[REQUEST_ID] = request_id
                for name, value in _HEADERS.items():
                    headers.setdefault(name, value)
                if is_https(connection):
                    headers.setdefault("Strict-Transport-Security", _HTTPS_ONLY)
                if scope["path"].startswith("/v1/"):
                    headers.setdefault("Cache-Control", "no-store")
            await send(message)

        try:
            await self._observed(scope, receive, sending)
        except Exception as error:
            if has_begun:
                raise
            await answer_to(error, connection)(scope, receive, sending)

    async def _observed(self, scope: Scope, receive: Receive, send: Send) -> None:
        site: Site | None = scope["app"].state.site
        if site is None or not site.observers or not scope["path"].startswith("/v1/"):
            await self._app(scope, receive, send)
            return
        request = RequestAtWork(scope["method"], HTTPConnection(scope).headers)

        async def sending(message: Message) -> None:
            if message["type"] == "http.response.start":
                request.status = message["status"]
                request.route = getattr(scope.get("route"), "path", None)
            await send(message)

        with site.observers.requesting(request):
            await self._app(scope, receive, sending)


def _path_of(scope: Scope) -> str:
    """The path with escaped slashes kept apart: an id may have one, and a route must not end there."""
    raw: bytes | None = scope.get("raw_path")
    if raw is None or b"%2" not in raw:
        return str(scope["path"])
    return unquote(_ESCAPED_SLASH.sub(quote(SLASH), raw.partition(b"?")[0].decode("ascii")))


def _given_id(connection: HTTPConnection) -> str | None:
    """The caller's own, if it is fit for a log."""
    given = connection.headers.get(REQUEST_ID)
    is_fit = given is not None and 0 < len(given) <= _MAX_ID and given.isascii() and given.isprintable()
    return given if is_fit else None
