"""Calling the application itself, for streams that have no end."""

import asyncio
import contextlib
from collections.abc import AsyncIterator, Mapping
from typing import Any
from urllib.parse import urlencode

from fastapi import FastAPI

_LIMIT_S = 60


class Heard:
    """What an open stream has said so far."""

    def __init__(self) -> None:
        self.status = 0
        self.text = ""
        self._changed = asyncio.Event()

    def add(self, message: Mapping[str, Any]) -> None:
        match message["type"]:
            case "http.response.start" | "websocket.http.response.start":
                self.status = message["status"]
            case "websocket.accept":
                self.status = 101
            case "http.response.body" | "websocket.http.response.body":
                self.text += message.get("body", b"").decode()
            case "websocket.send":
                self.text += message["text"] + "\n"
        self._changed.set()

    async def until(self, words: str) -> str:
        """Wait for these words; all that was said up to then."""
        async with asyncio.timeout(_LIMIT_S):
            while words not in self.text:
                self._changed.clear()
                await self._changed.wait()
        return self.text

    async def more(self) -> None:
        """Wait until something else is said."""
        async with asyncio.timeout(_LIMIT_S):
            self._changed.clear()
            await self._changed.wait()

    async def begun(self) -> int:
        """Wait for the status."""
        async with asyncio.timeout(_LIMIT_S):
            while not self.status:
                self._changed.clear()
                await self._changed.wait()
        return self.status


@contextlib.asynccontextmanager
async def stream(
    app: FastAPI, path: str, headers: Mapping[str, str], query: Mapping[str, str] | None = None, *, socket: bool = False
) -> AsyncIterator[Heard]:
    """Open a stream by server-sent events, or by WebSocket; it is left at the end of the block."""
    heard, left = Heard(), asyncio.Event()
    sent = [(name.lower().encode(), value.encode()) for name, value in {"host": "127.0.0.1", **headers}.items()]
    kind = "websocket" if socket else "http"
    scope: dict[str, Any] = {
        "type": kind,
        "method": "GET",
        "scheme": "ws" if socket else "http",
        "path": path,
        "raw_path": path.encode(),
        "query_string": urlencode(query or {}).encode(),
        "headers": sent,
        "server": ("127.0.0.1", 8787),
        "client": ("127.0.0.1", 1),
        "subprotocols": [],
        "extensions": {"websocket.http.response": {}},
    }
    first = True

    async def receive() -> dict[str, Any]:
        nonlocal first
        if first:
            first = False
            return (
                {"type": "websocket.connect"} if socket else {"type": "http.request", "body": b"", "more_body": False}
            )
        await left.wait()
        return {"type": f"{kind}.disconnect", "code": 1000}

    async def send(message: Mapping[str, Any]) -> None:
        heard.add(message)

    running = asyncio.create_task(app(scope, receive, send))
    try:
        yield heard
    finally:
        left.set()
        async with asyncio.timeout(_LIMIT_S):
            await running
