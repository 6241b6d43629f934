"""A server on loopback that answers as it is told, byte by byte, and can fail in each way that a network can."""

import asyncio
import contextlib
import dataclasses
import socket
from collections.abc import AsyncIterator, Iterable, Sequence
from enum import Enum
from http import HTTPStatus
from typing import Any

import msgspec


class Ending(Enum):
    """What happens after the last chunk."""

    GOOD = "good"
    CUT = "cut"
    """The connection is closed in the midst of the body."""
    SILENT = "silent"
    """Nothing more comes, and the connection stays."""


@dataclasses.dataclass(frozen=True, kw_only=True)
class Answer:
    chunks: Sequence[bytes] = ()
    status: int = 200
    kind: str = "text/event-stream"
    headers: dict[str, str] = dataclasses.field(default_factory=dict)
    ending: Ending = Ending.GOOD


HANG = Answer(status=0)
"""Not even a status comes."""
HANG_UP = Answer(status=-1)
"""The connection is closed without a word."""


@dataclasses.dataclass(frozen=True)
class Asked:
    method: str
    path: str
    headers: dict[str, str]
    body: Any


class WireServer:
    """Gives its answers in order, the last one again and again."""

    def __init__(self, url: str, answers: Iterable[Answer]) -> None:
        self.url = url
        self.answers = list(answers)
        self.asked: list[Asked] = []
        self.connections = 0
        self._serving: list[asyncio.Task[None]] = []
        """One for each connection from the moment that it is let in; ended by `close`."""
        self._writers: list[asyncio.StreamWriter] = []
        self._is_open = True
        self.hung_up = asyncio.Event()
        """Set when a caller closes a connection on which an answer was under way."""

    def let_in(self, listening: socket.socket) -> None:
        connection, _ = listening.accept()
        self.connections += 1
        self._serving.append(asyncio.create_task(self._serve(connection)))

    async def _serve(self, connection: socket.socket) -> None:
        reader, writer = await asyncio.open_connection(sock=connection)
        self._writers.append(writer)
        try:
            if not self._is_open:
                return
            while (asked := await _read(reader)) is not None:
                self.asked.append(asked)
                answer = self.answers.pop(0) if len(self.answers) > 1 else self.answers[0]
                if not await self._give(answer, reader, writer):
                    return
        except ConnectionError:
            self.hung_up.set()
        finally:
            writer.close()

    async def close(self) -> None:
        self._is_open = False
        for writer in self._writers:
            writer.transport.abort()
        await asyncio.gather(*self._serving, return_exceptions=True)

    async def _give(self, answer: Answer, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> bool:
        if answer.status < 0:
            return False
        if answer.status > 0:
            writer.write(_head(answer))
            for chunk in answer.chunks:
                writer.write(b"%x\r\n%b\r\n" % (len(chunk), chunk))
                await writer.drain()
        if answer.status == 0 or answer.ending == Ending.SILENT:
            await reader.read()  # ends when the caller goes
            self.hung_up.set()
            return False
        if answer.ending == Ending.CUT:
            return False
        writer.write(b"0\r\n\r\n")
        await writer.drain()
        return True


def _head(answer: Answer) -> bytes:
    phrase = HTTPStatus(answer.status).phrase if answer.status in set(HTTPStatus) else "Odd"
    headers = {"content-type": answer.kind, "transfer-encoding": "chunked", **answer.headers}
    lines = [f"HTTP/1.1 {answer.status} {phrase}", *(f"{name}: {value}" for name, value in headers.items()), "", ""]
    return "\r\n".join(lines).encode()


async def _read(reader: asyncio.StreamReader) -> Asked | None:
    try:
        head = (await reader.readuntil(b"\r\n\r\n")).decode()
    except asyncio.IncompleteReadError:
        return None
    first, *lines = head.split("\r\n")
    headers = {name.lower(): value.strip() for name, _, value in (line.partition(":") for line in lines) if name}
    body = await reader.readexactly(int(headers.get("content-length", "0")))
    method, path, _ = first.split(" ")
    return Asked(method, path, headers, msgspec.json.decode(body) if body else None)


@contextlib.asynccontextmanager
async def serving(*answers: Answer) -> AsyncIterator[WireServer]:
    loop = asyncio.get_running_loop()
    with socket.create_server(("127.0.0.1", 0)) as listening:
        listening.setblocking(False)
        server = WireServer(f"http://127.0.0.1:{listening.getsockname()[1]}/v1", answers)
        loop.add_reader(listening, server.let_in, listening)
        try:
            yield server
        finally:
            loop.remove_reader(listening)
            await server.close()
