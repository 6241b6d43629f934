"""A network that loses answers: it stands between a client and a server, and cuts when told to."""

import asyncio
import contextlib
from collections.abc import AsyncIterator


class CuttingProxy:
    def __init__(self, server_port: int) -> None:
        self._server_port = server_port
        self._armed = False
        self._pipes: set[asyncio.Task[None]] = set()
        """Owned by this proxy; ended by `stop`."""
        self._listener: asyncio.Server | None = None
        self.url = ""

    async def start(self) -> None:
        self._listener = await asyncio.start_server(self._accept, "127.0.0.1", 0)
        port = self._listener.sockets[0].getsockname()[1]
        self.url = f"redis://127.0.0.1:{port}/0"

    def cut_next_answer(self) -> None:
        """The server will carry out the next request; its answer will not arrive."""
        self._armed = True

    @property
    def has_cut(self) -> bool:
        return not self._armed

    async def _accept(self, client_in: asyncio.StreamReader, client_out: asyncio.StreamWriter) -> None:
        server_in, server_out = await asyncio.open_connection("127.0.0.1", self._server_port)
        pipe = asyncio.create_task(self._connect(client_in, client_out, server_in, server_out))
        self._pipes.add(pipe)
        pipe.add_done_callback(self._pipes.discard)

    async def _connect(
        self,
        client_in: asyncio.StreamReader,
        client_out: asyncio.StreamWriter,
        server_in: asyncio.StreamReader,
        server_out: asyncio.StreamWriter,
    ) -> None:
        try:
            async with asyncio.TaskGroup() as both_ways:
                both_ways.create_task(self._requests(client_in, server_out))
                both_ways.create_task(self._answers(server_in, client_out))
        except* (_Ended, OSError):
            pass  # one side hung up, or we did: the connection is over
        finally:
            client_out.close()
            server_out.close()

    async def _requests(self, client: asyncio.StreamReader, server: asyncio.StreamWriter) -> None:
        while data := await client.read(65_536):
            server.write(data)
            await server.drain()
        raise _Ended

    async def _answers(self, server: asyncio.StreamReader, client: asyncio.StreamWriter) -> None:
        while data := await server.read(65_536):
            if self._armed:
                self._armed = False
                break
            client.write(data)
            await client.drain()
        raise _Ended

    async def stop(self) -> None:
        assert self._listener is not None
        self._listener.close()
        for pipe in list(self._pipes):
            pipe.cancel()
        await asyncio.gather(*self._pipes, return_exceptions=True)


class _Ended(Exception):
    """No error: it ends the other direction too."""


@contextlib.asynccontextmanager
async def cutting_proxy(server_port: int) -> AsyncIterator[CuttingProxy]:
    proxy = CuttingProxy(server_port)
    await proxy.start()
    try:
        yield proxy
    finally:
        await proxy.stop()
