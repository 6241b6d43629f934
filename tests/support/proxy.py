"""Networks that fail: a proxy stands between clients and a server, and does what a bad network does when told to.

A cutting one loses answers and connections. A silent one stops carrying anything without telling either side.
"""

import asyncio
import contextlib
from abc import ABC, abstractmethod
from collections.abc import AsyncIterator


class Proxy(ABC):
    """Of clients of the server at this port of loopback."""

    def __init__(self, server_port: int) -> None:
        self._server_port = server_port
        self._pipes: set[asyncio.Task[None]] = set()
        """Owned by this proxy; ended by `stop`."""
        self._is_open = True
        self._listener: asyncio.Server | None = None
        self.port = 0
        self.url = ""

    async def start(self) -> None:
        self._listener = await asyncio.start_server(self._accept, "127.0.0.1", 0)
        self.port = self._listener.sockets[0].getsockname()[1]
        self.url = f"redis://127.0.0.1:{self.port}/0"

    async def stop(self) -> None:
        assert self._listener is not None
        self._is_open = False
        self._listener.close()
        await self.cut()

    async def cut(self) -> None:
        """Every connection ends now, whatever is on its way. Later ones work."""
        pipes = list(self._pipes)
        for pipe in pipes:
            pipe.cancel()
        await asyncio.gather(*pipes, return_exceptions=True)

    async def _accept(self, client_in: asyncio.StreamReader, client_out: asyncio.StreamWriter) -> None:
        # The task of this connection from its first line on: what is cancelled has begun, and closes what it holds.
        pipe = asyncio.current_task()
        assert pipe is not None
        self._pipes.add(pipe)
        try:
            if self._is_open:
                server_in, server_out = await asyncio.open_connection("127.0.0.1", self._server_port)
                await self._connect(client_in, client_out, server_in, server_out)
        except OSError:
            pass  # the server is away, as it may be
        finally:
            client_out.close()
            self._pipes.discard(pipe)

    async def _connect(
        self,
        client_in: asyncio.StreamReader,
        client_out: asyncio.StreamWriter,
        server_in: asyncio.StreamReader,
        server_out: asyncio.StreamWriter,
    ) -> None:
        pipe = asyncio.current_task()
        assert pipe is not None
        try:
            async with asyncio.TaskGroup() as both_ways:
                both_ways.create_task(self._carry(pipe, client_in, server_out, is_answer=False))
                both_ways.create_task(self._carry(pipe, server_in, client_out, is_answer=True))
        except* (_Ended, OSError):
            pass  # one side hung up, or we did: the connection is over
        finally:
            server_out.close()

    async def _carry(
        self,
        pipe: asyncio.Task[None],
        source: asyncio.StreamReader,
        target: asyncio.StreamWriter,
        *,
        is_answer: bool,
    ) -> None:
        while data := await source.read(65_536):
            if self._is_lost(pipe, is_answer=is_answer):
                continue
            target.write(data)
            await target.drain()
        raise _Ended

    @abstractmethod
    def _is_lost(self, pipe: asyncio.Task[None], *, is_answer: bool) -> bool:
        """Whether what came on this connection goes no further; `_Ended` ends the connection with it."""


class CuttingProxy(Proxy):
    def __init__(self, server_port: int) -> None:
        super().__init__(server_port)
        self._armed = False

    def cut_next_answer(self) -> None:
        """The server will carry out the next request; its answer will not arrive."""
        self._armed = True

    @property
    def has_cut(self) -> bool:
        return not self._armed

    def _is_lost(self, pipe: asyncio.Task[None], *, is_answer: bool) -> bool:
        if is_answer and self._armed:
            self._armed = False
            raise _Ended
        return False


class SilentProxy(Proxy):
    def __init__(self, server_port: int) -> None:
        super().__init__(server_port)
        self._dumb: set[asyncio.Task[None]] = set()

    def silence(self) -> None:
        """The present connections are dumb from now on, for ever. Later ones work."""
        self._dumb |= self._pipes

    def _is_lost(self, pipe: asyncio.Task[None], *, is_answer: bool) -> bool:
        return pipe in self._dumb


class _Ended(Exception):
    """No error: it ends the other direction too."""


@contextlib.asynccontextmanager
async def cutting_proxy(server_port: int) -> AsyncIterator[CuttingProxy]:
    proxy = CuttingProxy(server_port)
    async with _running(proxy):
        yield proxy


@contextlib.asynccontextmanager
async def silent_proxy(server_port: int) -> AsyncIterator[SilentProxy]:
    proxy = SilentProxy(server_port)
    async with _running(proxy):
        yield proxy


@contextlib.asynccontextmanager
async def _running(proxy: Proxy) -> AsyncIterator[None]:
    await proxy.start()
    try:
        yield
    finally:
        await proxy.stop()
