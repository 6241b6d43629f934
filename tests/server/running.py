"""A server that listens, in a thread of its own: for streams and sockets, which a transport in memory cannot show."""

import asyncio
import contextlib
import threading
from collections.abc import Iterator

from bullpen.server.running import serve
from bullpen.server.settings import ServerSettings
from bullpen.stores.base import Store


@contextlib.contextmanager
def running(store: Store, records: str, settings: ServerSettings) -> Iterator[str]:
    """Its address, while it runs."""
    ready, found = threading.Event(), []
    loop = asyncio.new_event_loop()

    def tell(url: str) -> None:
        found.append(url)
        ready.set()

    async def run() -> None:
        await serve(store, records, settings, on_ready=tell, signals=False)

    task = loop.create_task(run())

    def target() -> None:
        with contextlib.suppress(asyncio.CancelledError):
            loop.run_until_complete(task)
        ready.set()

    thread = threading.Thread(target=target)
    thread.start()
    ready.wait(20)
    try:
        assert found, "the server did not start"
        yield found[0]
    finally:
        loop.call_soon_threadsafe(task.cancel)
        thread.join(20)
        assert not thread.is_alive()
        loop.close()
