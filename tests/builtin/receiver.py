"""A real receiver of deliveries on this machine: it keeps what it gets, and answers as it is told."""

import asyncio
import contextlib
import ssl
from collections.abc import AsyncIterator

import msgspec

HANG = -1
"""Takes the request and never answers."""
DRIP = -2
"""Answers byte by byte, without an end."""


class Received(msgspec.Struct, frozen=True):
    path: str
    headers: dict[str, str]
    """Their names in small letters."""
    body: bytes

    @property
    def json(self) -> dict[str, object]:
        found: dict[str, object] = msgspec.json.decode(self.body)
        return found


class Receiver:
    def __init__(self) -> None:
        self.port = 0
        self.received: list[Received] = []
        self.answers: list[int] = []
        """The next ones; then 200."""
        self.headers = ""
        self.body = b"thank you"
        self.connections = 0

    @property
    def url(self) -> str:
        return f"http://127.0.0.1:{self.port}/hook"

    async def until(self, count: int) -> list[Received]:
        """That many requests."""
        async with asyncio.timeout(60):
            while len(self.received) < count:
                await asyncio.sleep(0.02)
        return self.received

    async def take(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        self.connections += 1
        try:
            head = (await reader.readuntil(b"\r\n\r\n")).decode("latin-1").split("\r\n")
            headers = {name.lower(): value.strip() for name, _, value in (line.partition(":") for line in head[1:])}
            body = await reader.readexactly(int(headers.get("content-length", "0")))
            self.received.append(Received(head[0].split(" ")[1], headers, body))
            await self._answer(reader, writer, self.answers.pop(0) if self.answers else 200)
        except (ConnectionError, asyncio.IncompleteReadError, ssl.SSLError):
            pass  # the caller left
        finally:
            writer.close()
            with contextlib.suppress(ConnectionError, ssl.SSLError):
                await writer.wait_closed()

    async def _answer(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter, status: int) -> None:
        if status == HANG:
            await reader.read()  # until the caller has enough
            return
        length = 10_000 if status == DRIP else len(self.body)
        code = 200 if status == DRIP else status
        writer.write(f"HTTP/1.1 {code} So\r\nContent-Length: {length}\r\n{self.headers}\r\n".encode())
        while status == DRIP and not reader.at_eof():
            writer.write(b".")
            await writer.drain()
            await asyncio.sleep(0.05)
        writer.write(self.body)
        await writer.drain()


@contextlib.asynccontextmanager
async def receiving(tls: ssl.SSLContext | None = None) -> AsyncIterator[Receiver]:
    receiver = Receiver()
    running: set[asyncio.Task[None]] = set()

    def taken(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        task = asyncio.get_running_loop().create_task(receiver.take(reader, writer))
        running.add(task)
        task.add_done_callback(running.discard)

    server = await asyncio.start_server(taken, "127.0.0.1", 0, ssl=tls)
    receiver.port = server.sockets[0].getsockname()[1]
    try:
        yield receiver
    finally:
        server.close()
        for task in running:
            task.cancel()
        await asyncio.gather(*running, return_exceptions=True)
