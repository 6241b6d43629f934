"""A connection to a server of the Model Context Protocol, held by a task of its own.

The protocol's package wants a connection to be opened and closed by the same task; calls come from many.
"""

import asyncio
import contextlib
from collections.abc import AsyncIterator, Awaitable
from typing import TYPE_CHECKING, Any, Self, TypeVar

from bullpen.errors import ToolError

if TYPE_CHECKING:
    from mcp import Client

    from bullpen.agents.tools.mcp import McpServer

T = TypeVar("T")

_CLOSE_S = 10.0


class Connection:
    def __init__(self, server: "McpServer") -> None:
        self._server = server
        self._over = asyncio.Event()
        self._ready: asyncio.Future[Client] = asyncio.get_running_loop().create_future()
        self._holding: asyncio.Task[None] | None = None

    @property
    def client(self) -> "Client":
        return self._ready.result()

    async def open(self) -> None:
        """Whatever the package raises where there is no server; TimeoutError."""
        # Owned by this connection, and ended by `close`.
        self._holding = asyncio.create_task(self._hold(), name=f"mcp {self._server.name}")
        try:
            async with asyncio.timeout(self._server.connect_s):
                await self.ask(self._ready)
        except BaseException:
            await self.close()
            raise

    async def ask(self, asking: Awaitable[T]) -> T:
        """An answer, or the error by which the connection ended before it came."""
        assert self._holding is not None
        task = asyncio.ensure_future(asking)
        task.add_done_callback(_hear)
        try:
            await asyncio.wait([task, self._holding], return_when=asyncio.FIRST_COMPLETED)
            if task.done():
                return task.result()
            self._holding.result()
            raise ConnectionError("the server is gone")
        finally:
            task.cancel()

    def is_open(self) -> bool:
        return self._holding is not None and not self._holding.done() and not self._over.is_set()

    async def close(self) -> None:
        """Safe to call twice."""
        self._over.set()
        if self._holding is None:
            return
        if self._ready.cancelled() or not self._ready.done():
            self._holding.cancel()  # it still waits for the server
        await asyncio.wait([self._holding], timeout=_CLOSE_S)
        self._holding.cancel()
        # How it ended was told to whoever asked last.
        await asyncio.gather(self._holding, return_exceptions=True)

    async def _hold(self) -> None:
        async with _client(self._server, self._over) as client:
            self._ready.set_result(client)
            await self._over.wait()


def _hear(task: "asyncio.Future[Any]") -> None:
    """Of a call that was given up nobody asks how it ended."""
    if not task.cancelled():
        task.exception()


@contextlib.asynccontextmanager
async def _client(server: "McpServer", over: asyncio.Event) -> "AsyncIterator[Client]":
    try:
        import httpx2
        from mcp import Client, StdioServerParameters, stdio_client
        from mcp.client.streamable_http import streamable_http_client
    except ImportError:
        raise ToolError("servers of tools need the package mcp: pip install 'bullpen[mcp-tools]'") from None
    if server.url:
        waits = httpx2.Timeout(server.connect_s, read=server.timeout_s)
        async with httpx2.AsyncClient(headers=dict(server.headers), timeout=waits, trust_env=False) as http:
            async with Client(streamable_http_client(server.url, http_client=http)) as client:
                yield client
    else:
        program, *arguments = server.command
        started = StdioServerParameters(command=program, args=arguments, env=dict(server.env), cwd=server.cwd)
        async with Client(_watched(stdio_client(started), over)) as client:
            yield client


@contextlib.asynccontextmanager
async def _watched(transport: Any, over: asyncio.Event) -> AsyncIterator[Any]:
    """The same, noticing when a program ends while nobody asks it anything: the next call then starts another."""
    async with transport as (reading, writing):
        yield _Watched(reading, over), writing


class _Watched:
    """A stream to read from that tells when it is over."""

    def __init__(self, stream: Any, over: asyncio.Event) -> None:
        self._stream = stream
        self._over = over

    def __getattr__(self, name: str) -> Any:
        return getattr(self._stream, name)

    def __aiter__(self) -> "_Watched":
        return self

    async def __anext__(self) -> Any:
        try:
            return await self._stream.__anext__()
        except BaseException:
            self._over.set()
            raise

    async def __aenter__(self) -> Self:
        await self._stream.__aenter__()
        return self

    async def __aexit__(self, *error: object) -> Any:
        return await self._stream.__aexit__(*error)
