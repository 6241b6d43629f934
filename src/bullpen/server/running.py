"""Running the server by itself, with uvicorn."""

import asyncio
import contextlib
import socket
from collections.abc import Callable, Iterator

import uvicorn

from bullpen.app import Bullpen
from bullpen.errors import BadOption
from bullpen.records.records import Records
from bullpen.server.app import create_app
from bullpen.server.settings import ServerSettings
from bullpen.server.site import Site, opened_site
from bullpen.stores.base import Store
from bullpen.worker.signals import listening

_STOP_S = 5
"""How long requests that are under way have to end."""


async def serve(
    store: Bullpen | Store | str | None,
    records: Records | str | None,
    settings: ServerSettings,
    *,
    on_ready: Callable[[str], None] = lambda _: None,
    on_open: Callable[[], None] = lambda: None,
    signals: bool = True,
) -> None:
    """Serve until a signal, or until cancelled. BadOption where that cannot be.

    `on_open` is called after `on_ready` where nobody needs to say who they are.
    """
    async with opened_site(store, records, settings) as site:
        is_open = await site.access.is_open()

        def tell(url: str) -> None:
            on_ready(url)
            if is_open:
                on_open()

        server = _Server(site, settings, tell)
        loop = asyncio.get_running_loop()
        with listening(loop, server.end) if signals else contextlib.nullcontext():
            await _run(server)


async def _run(server: "_Server") -> None:
    # Not cancelled from outside, but told to end: or its sockets would stay open.
    serving = asyncio.create_task(server.serve(), name="server")
    try:
        await asyncio.wait({serving})
    finally:
        server.end()
        await asyncio.wait({serving})
    serving.result()


class _Server(uvicorn.Server):
    def __init__(self, site: Site, settings: ServerSettings, on_ready: Callable[[str], None]) -> None:
        super().__init__(
            uvicorn.Config(
                create_app(site=site, settings=settings),
                host=settings.host,
                port=settings.port,
                log_config=None,
                access_log=False,
                lifespan="off",
                server_header=False,
                ws="websockets-sansio",
                timeout_graceful_shutdown=_STOP_S,
            )
        )
        self._site = site
        self._on_ready = on_ready

    def end(self) -> None:
        self.should_exit = True

    async def startup(self, sockets: list[socket.socket] | None = None) -> None:
        try:
            await super().startup(sockets)
        except SystemExit as error:
            # Uvicorn's way to say that it could not listen. Out of a task it would end the whole loop, silently.
            raise BadOption(f"port: cannot listen at {self.config.host}:{self.config.port}") from error
        if self.started:
            host, port = self.servers[0].sockets[0].getsockname()[:2]
            self._on_ready(f"http://[{host}]:{port}" if ":" in host else f"http://{host}:{port}")

    async def shutdown(self, sockets: list[socket.socket] | None = None) -> None:
        # Streams have no end of their own, and would be waited for; so would calls of workers that wait for jobs.
        await self._site.hub.stop()
        await self._site.lookout.stop()
        await self._site.desk.close()
        await super().shutdown(sockets)

    @contextlib.contextmanager
    def capture_signals(self) -> Iterator[None]:
        """Not uvicorn's own way, which ends the process by the signal though all went well."""
        yield
