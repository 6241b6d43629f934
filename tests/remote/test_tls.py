"""Over TLS a worker speaks only with a server whose certificate is good."""

import asyncio
import contextlib
import ssl
from collections.abc import AsyncIterator
from pathlib import Path

import pytest

from bullpen.errors import RemoteRefused
from bullpen.job.state import State
from bullpen.remote.worker import RemoteWorker
from bullpen.worker.context import Context
from tests.remote.serving import QUEUE, Served
from tests.support.places import only_on_sqlite
from tests.support.redis_tls import Certificates
from tests.worker.waiting import until

pytestmark = only_on_sqlite


@contextlib.asynccontextmanager
async def behind_tls(served: Served, certificates: Certificates) -> AsyncIterator[str]:
    """The server's address behind a front that speaks TLS, as a proxy does."""
    context = ssl.create_default_context(ssl.Purpose.CLIENT_AUTH)
    context.load_cert_chain(certificates.cert, certificates.key)
    port = int(served.url.rpartition(":")[2])
    calls: set[asyncio.Task[None]] = set()

    async def pipe(source: asyncio.StreamReader, target: asyncio.StreamWriter) -> None:
        with contextlib.suppress(OSError):
            while data := await source.read(65_536):
                target.write(data)
                await target.drain()
        target.close()

    async def accept(client_in: asyncio.StreamReader, client_out: asyncio.StreamWriter) -> None:
        server_in, server_out = await asyncio.open_connection("127.0.0.1", port)
        for one in (pipe(client_in, server_out), pipe(server_in, client_out)):
            call = asyncio.create_task(one)
            calls.add(call)
            call.add_done_callback(calls.discard)

    front = await asyncio.start_server(accept, "127.0.0.1", 0, ssl=context)
    try:
        yield f"https://127.0.0.1:{front.sockets[0].getsockname()[1]}"
    finally:
        front.close()
        await asyncio.gather(*calls, return_exceptions=True)


async def build(_: Context) -> str:
    return "built"


async def test_a_server_whose_authority_is_named_is_worked_for(served: Served, tmp_path: Path) -> None:
    certificates = Certificates(tmp_path, "IP:127.0.0.1")
    ref = await served.add()
    async with behind_tls(served, certificates) as url:
        worker = RemoteWorker(url, {QUEUE: build}, token=await served.key(), ca=certificates.ca)
        running = asyncio.create_task(worker.run())
        await until(lambda: served.store.job(ref), lambda job: job.state == State.COMPLETED)
        worker.stop()
        await running


@pytest.mark.parametrize("why", ["unknown authority", "stranger", "another host"])
async def test_any_other_is_refused_and_gets_no_token(served: Served, tmp_path: Path, why: str) -> None:
    """Asking again cannot help: whoever runs the worker is to know."""
    certificates = Certificates(tmp_path, "DNS:example.com" if why == "another host" else "IP:127.0.0.1")
    trusted = {"unknown authority": None, "stranger": certificates.stranger, "another host": certificates.ca}[why]
    async with behind_tls(served, certificates) as url:
        worker = RemoteWorker(url, {QUEUE: build}, token=await served.key(), ca=trusted)
        with pytest.raises(RemoteRefused, match="not one to trust"):
            await worker.run()
