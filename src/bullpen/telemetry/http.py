"""A small HTTP/1.1 server in a thread of its own, for probes and scrapes: GET, one answer, done.

In a thread with a loop of its own, so that it answers also when the program's own loop is held up;
an answer may then say just that.
"""

import asyncio
import contextlib
import logging
import threading
from collections.abc import Awaitable, Callable, Mapping
from http import HTTPStatus
from pathlib import Path

import msgspec

from bullpen.errors import BadOption

logger = logging.getLogger("bullpen.telemetry")

_REQUEST_S = 5.0
_MAX_HEAD = 16_384


class Answer(msgspec.Struct, frozen=True):
    body: str
    status: int = 200
    content_type: str = "text/plain; charset=utf-8"


def json_answer(value: object, *, ok: bool) -> Answer:
    body = msgspec.json.format(msgspec.json.encode(value)).decode() + "\n"
    return Answer(body, 200 if ok else 503, "application/json")


Page = Callable[[], Awaitable[Answer]]


class Place(msgspec.Struct, frozen=True):
    """Where a server listens: at a port of an address, or at a socket in the file system."""

    port: int = 0
    host: str = "127.0.0.1"
    socket: str = ""

    def __str__(self) -> str:
        return self.socket or f"http://{self.host}:{self.port}"


class HttpServer:
    """Serves pages by path, from `start` to `stop`; both block, and are not for an event loop."""

    def __init__(self, place: Place, pages: Mapping[str, Page]) -> None:
        self.place = place
        self._pages = pages
        self._thread = threading.Thread(target=self._run, name="bullpen-health", daemon=True)
        self._started = threading.Event()
        self._loop: asyncio.AbstractEventLoop | None = None
        self._stopping: asyncio.Event | None = None
        self._failure: OSError | None = None
        self._prepare: Callable[[], Awaitable[None]] | None = None
        self._finish: Callable[[], Awaitable[None]] | None = None

    def around(self, prepare: Callable[[], Awaitable[None]], finish: Callable[[], Awaitable[None]]) -> None:
        """What is to happen in the server's own loop before the first request and after the last."""
        self._prepare, self._finish = prepare, finish

    def start(self) -> None:
        """Listen; BadOption where that cannot be."""
        self._thread.start()
        self._started.wait()
        if self._failure is not None:
            raise BadOption(f"health: cannot listen at {self.place}: {self._failure.strerror or self._failure}")

    def stop(self) -> None:
        """Safe to call twice."""
        if self._loop is not None and self._stopping is not None and self._thread.is_alive():
            with contextlib.suppress(RuntimeError):  # it ended meanwhile
                self._loop.call_soon_threadsafe(self._stopping.set)
            self._thread.join()

    # ── in the thread ────────────────────────────────────────────────────────────────────

    def _run(self) -> None:
        try:
            asyncio.run(self._serve())
        except OSError as error:
            self._failure = error
        except Exception:
            logger.exception("the health server failed")
        finally:
            if self.place.socket:
                Path(self.place.socket).unlink(missing_ok=True)
            self._started.set()

    async def _serve(self) -> None:
        self._loop = asyncio.get_running_loop()
        self._stopping = asyncio.Event()
        server = await self._listen()
        try:
            if self._prepare is not None:
                await self._prepare()
            logger.info("health at %s", self.place)
            self._started.set()
            await self._stopping.wait()
        finally:
            server.close()
            if self._finish is not None:
                await self._finish()

    async def _listen(self) -> asyncio.Server:
        if self.place.socket:
            return await asyncio.start_unix_server(self._answer_one, self.place.socket, limit=_MAX_HEAD)
        server = await asyncio.start_server(self._answer_one, self.place.host, self.place.port, limit=_MAX_HEAD)
        self.place = msgspec.structs.replace(self.place, port=server.sockets[0].getsockname()[1])
        return server

    async def _answer_one(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        try:
            async with asyncio.timeout(_REQUEST_S):
                head = (await reader.readuntil(b"\r\n\r\n")).decode("latin-1")
                method, _, rest = head.partition(" ")
                answer = await self._answer(method, rest.partition(" ")[0].partition("?")[0])
                writer.write(_encode(answer, with_body=method != "HEAD"))
                await writer.drain()
        except (OSError, TimeoutError, asyncio.IncompleteReadError, asyncio.LimitOverrunError):
            pass  # whoever asked has left, or never spoke
        finally:
            writer.close()

    async def _answer(self, method: str, path: str) -> Answer:
        if method not in ("GET", "HEAD"):
            return Answer("only GET is answered here\n", 405)
        page = self._pages.get(path)
        if page is None:
            return Answer(f"one of {', '.join(self._pages)}\n", 404)
        try:
            return await page()
        except Exception:
            logger.exception("health: %s failed", path)
            return Answer("failed; the log says why\n", 500)


def _encode(answer: Answer, *, with_body: bool) -> bytes:
    body = answer.body.encode()
    head = (
        f"HTTP/1.1 {answer.status} {HTTPStatus(answer.status).phrase}\r\n"
        f"Content-Type: {answer.content_type}\r\nContent-Length: {len(body)}\r\n"
        "Cache-Control: no-store\r\nConnection: close\r\n\r\n"
    )
    return head.encode() + (body if with_body else b"")
