"""A network that stops carrying anything without telling either side: a half-open connection."""

import asyncio
import contextlib
from collections.abc import AsyncIterator


class SilentProxy:
    """`silence` makes the present connections dumb, for ever; `cut` ends them. Later ones work."""

    def __init__(self, server_port: int) -> None:
        self._server_port = server_port
        self._pipes: dict[asyncio.Task[None], asyncio.Event] = {}
        """With the event that makes each dumb. Owned by this proxy; ended by `stop`."""
        self._listener: asyncio.Server | None = None
        self.url = ""

    async def start(self) -> None:
        self._listener = await asyncio.start_server(self._accept, "127.0.0.1", 0)
        self.url = f"redis://127.0.0.1:{self._listener.sockets[0].getsockname()[1]}/0"

    def silence(self) -> None:
        for is_dumb in self._pipes.values():
            is_dumb.set()

    async def cut(self) -> None:
        pipes = list(self._pipes)
        for pipe in pipes:
            pipe.cancel()
        await asyncio.gather(*pipes, return_exceptions=True)

    async def stop(self) -> None:
        assert self._listener is not None
        self._listener.close()
        await self.cut()

    async def _accept(self, client_in: asyncio.StreamReader, client_out: asyncio.StreamWriter) -> None:
        try:
            server_in, server_out = await asyncio.open_connection("127.0.0.1", self._server_port)
        except OSError:
            client_out.close()
            return
        is_dumb = asyncio.Event()
        pipe = asyncio.create_task(self._connect(client_in, client_out, server_in, server_out, is_dumb))
        self._pipes[pipe] = is_dumb
        pipe.add_done_callback(self._pipes.pop)

    async def _connect(
        self,
        client_in: asyncio.StreamReader,
        client_out: asyncio.StreamWriter,
        server_in: asyncio.StreamReader,
        server_out: asyncio.StreamWriter,
        is_dumb: asyncio.Event,
    ) -> None:
        try:
            async with asyncio.TaskGroup() as both_ways:
                both_ways.create_task(_carry(client_in, server_out, is_dumb))
                both_ways.create_task(_carry(server_in, client_out, is_dumb))
        except* (_Ended, OSError):
            pass  # one side hung up: the connection is over
        finally:
            client_out.close()
            server_out.close()


async def _carry(source: asyncio.StreamReader, target: asyncio.StreamWriter, is_dumb: asyncio.Event) -> None:
    while data := await source.read(65_536):
        if is_dumb.is_set():
            continue
        target.write(data)
        await target.drain()
    raise _Ended


class _Ended(Exception):
    """No error: it ends the other direction too."""


@contextlib.asynccontextmanager
async def silent_proxy(server_port: int) -> AsyncIterator[SilentProxy]:
    proxy = SilentProxy(server_port)
    await proxy.start()
    try:
        yield proxy
    finally:
        await proxy.stop()
