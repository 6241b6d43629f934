"""The only way out for a browser that an agent drives: a proxy that looks at each address before it connects.

A browser resolves names, follows redirects and loads what pages name, all by itself; watching its requests misses
some of that. Here every connection is made by us, to an address that was looked at: a name that leads elsewhere a
moment later gains nothing.

    browser ── GET http://name/path ──▶ proxy ── looks at all addresses of the name ──▶ connects to one of them
            ── CONNECT name:443 ─────▶       (TLS and WebSockets go through as they are)
"""

import asyncio
import contextlib
from collections.abc import Coroutine
from typing import Any, NamedTuple
from urllib.parse import urlsplit

from bullpen.builtin.addresses import Allowed, literal
from bullpen.builtin.outgoing import Resolve, ask_the_system
from bullpen.errors import AddressRefused

_MOST_HEAD = 65_536
_CONNECT_S = 15.0
_MOST_REFUSED = 100
_HOP = frozenset({b"connection", b"proxy-connection", b"keep-alive", b"proxy-authorization"})


class _Asked(NamedTuple):
    host: str
    port: int
    onward: bytes | None
    """The head as the server is to see it; None for a tunnel."""


class GuardedProxy:
    """Listens at a free port of this machine's loopback from `start` until `close`."""

    def __init__(self, allowed: Allowed, resolve: Resolve | None = None) -> None:
        self._allowed = allowed
        self._resolve = resolve or ask_the_system
        self._server: asyncio.Server | None = None
        self._serving: set[asyncio.Task[None]] = set()
        self.refused: dict[str, str] = {}
        """The hosts that were not called, and why; the last hundred."""

    @property
    def url(self) -> str:
        assert self._server is not None
        return f"http://127.0.0.1:{self._server.sockets[0].getsockname()[1]}"

    async def start(self) -> None:
        """Safe to call twice."""
        if self._server is None:
            self._server = await asyncio.start_server(self._accept, "127.0.0.1", 0, limit=_MOST_HEAD)

    async def close(self) -> None:
        """End all connections. Safe to call twice."""
        if self._server is not None:
            self._server.close()
        serving = list(self._serving)
        for task in serving:
            task.cancel()
        await asyncio.gather(*serving, return_exceptions=True)

    async def check(self, host: str, port: int) -> list[str]:
        """The addresses of a host, all of which may be called; AddressRefused or OSError."""
        address = literal(host)
        found = [address] if address is not None else await self._resolve(host, port)
        try:
            return [str(one) for one in self._allowed.check(host, found)]
        except AddressRefused as error:
            while len(self.refused) >= _MOST_REFUSED:
                self.refused.pop(next(iter(self.refused)))
            self.refused[host] = str(error)
            raise

    def _accept(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        # Owned by this proxy, and ended by `close`.
        task = asyncio.create_task(self._serve(reader, writer))
        self._serving.add(task)
        task.add_done_callback(self._serving.discard)

    async def _serve(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        try:
            await self._pass_on(reader, writer)
        except AddressRefused as error:
            writer.write(_answer("403 Forbidden", str(error)))
        except (ValueError, UnicodeError, asyncio.LimitOverrunError) as error:
            writer.write(_answer("400 Bad Request", str(error)))
        except (OSError, EOFError, TimeoutError) as error:
            writer.write(_answer("502 Bad Gateway", f"it cannot be reached: {type(error).__name__}"))
        finally:
            await _shut(writer)

    async def _pass_on(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        asked = _read_head(await reader.readuntil(b"\r\n\r\n"))
        async with asyncio.timeout(_CONNECT_S):
            far_reader, far_writer = await self._connect(asked.host, asked.port)
        try:
            if asked.onward is None:
                writer.write(b"HTTP/1.1 200 Connection established\r\n\r\n")
            else:
                far_writer.write(asked.onward)
            there = _copy(reader, far_writer)
            back = _copy(far_reader, writer) if asked.onward is None else _copy_answer(far_reader, writer)
            await _until_one_ends(there, back)
        finally:
            await _shut(far_writer)

    async def _connect(self, host: str, port: int) -> tuple[asyncio.StreamReader, asyncio.StreamWriter]:
        failed: OSError | None = None
        for address in await self.check(host, port):
            try:
                return await asyncio.open_connection(address, port, limit=_MOST_HEAD)
            except OSError as error:
                failed = error
        raise failed or OSError(f"{host} is not known")


def _read_head(head: bytes) -> _Asked:
    first, *lines = head[:-4].split(b"\r\n")
    method, target, version = first.decode("ascii").split(" ")
    parts = urlsplit(f"//{target}" if method == "CONNECT" else target)
    if not parts.hostname or (method != "CONNECT" and parts.scheme != "http"):
        raise ValueError("this is a proxy for http and for tunnels")
    if method == "CONNECT":
        return _Asked(parts.hostname, parts.port or 443, None)
    kept = [line for line in lines if line.partition(b":")[0].strip().lower() not in _HOP]
    path = f"{parts.path or '/'}{'?' + parts.query if parts.query else ''}"
    # Each connection serves one host: on the next request it is looked at anew.
    onward = [f"{method} {path} {version}".encode("ascii"), *kept, b"Connection: close", b"", b""]
    return _Asked(parts.hostname, parts.port or 80, b"\r\n".join(onward))


async def _until_one_ends(*copying: Coroutine[Any, Any, None]) -> None:
    """A browser that is gone needs no answer, and a server that is done takes no more."""
    tasks = [asyncio.create_task(one) for one in copying]  # owned by this call
    try:
        await asyncio.wait(tasks, return_when=asyncio.FIRST_COMPLETED)
    finally:
        for task in tasks:
            task.cancel()
        await asyncio.gather(*tasks, return_exceptions=True)


async def _copy_answer(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
    """With heads that say that the connection ends with it, whatever the server says."""
    preliminary = True
    while preliminary:
        first, *lines = (await reader.readuntil(b"\r\n\r\n"))[:-4].split(b"\r\n")
        preliminary = first.partition(b" ")[2].startswith(b"1")
        kept = [line for line in lines if line.partition(b":")[0].strip().lower() not in _HOP]
        ending = [] if preliminary else [b"Connection: close"]
        writer.write(b"\r\n".join([first, *kept, *ending, b"", b""]))
    await _copy(reader, writer)


async def _copy(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
    while data := await reader.read(_MOST_HEAD):
        writer.write(data)
        await writer.drain()


def _answer(status: str, text: str) -> bytes:
    body = text.encode()
    head = f"HTTP/1.1 {status}\r\nContent-Type: text/plain; charset=utf-8\r\nContent-Length: {len(body)}"
    return f"{head}\r\nConnection: close\r\n\r\n".encode() + body


async def _shut(writer: asyncio.StreamWriter) -> None:
    with contextlib.suppress(OSError):
        writer.close()
        await writer.wait_closed()
