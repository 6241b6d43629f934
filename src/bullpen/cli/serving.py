"""The server beside something else in one process: what `bullpen dev` shows in the browser."""

import asyncio
import contextlib
import logging
from collections.abc import AsyncIterator
from pathlib import Path
from typing import Any

from bullpen.app import Bullpen
from bullpen.errors import BadOption

_HOST = "127.0.0.1"
_USUAL_PORT, _ANY_PORT = 8787, 0
_FIELDS = ("to", "month", "order", "picture", "card")
"""Of the payloads, those that the jobs' lists show."""
_SUFFIXES = ("", "-wal", "-shm", ".lock")


@contextlib.asynccontextmanager
async def dashboard_of(pen: Bullpen, records: Path, port: int | None) -> AsyncIterator[str | None]:
    """Serve this application's store for the time of a block; the address, or None without the server's packages.

    The records are begun anew. BadOption if the port is given and taken; if the usual one is taken,
    a free one serves as well.
    """
    try:
        import bullpen.server.running  # noqa: F401
    except ImportError:
        yield None
        return
    for name in ("alembic", "uvicorn", "uvicorn.error"):
        logging.getLogger(name).setLevel(logging.CRITICAL)
    try:
        serving, url = await _started(pen, records, _USUAL_PORT if port is None else port)
    except BadOption:
        if port is not None:
            raise
        serving, url = await _started(pen, records, _ANY_PORT)
    try:
        yield url
    finally:
        serving.cancel()
        await asyncio.gather(serving, return_exceptions=True)


async def _started(pen: Bullpen, records: Path, port: int) -> tuple[asyncio.Task[None], str]:
    from bullpen.server.running import serve
    from bullpen.server.settings import ServerSettings

    _forget(records)
    ready: asyncio.Future[str] = asyncio.get_running_loop().create_future()
    settings = ServerSettings(host=_HOST, port=port, fields=_FIELDS)
    serving = asyncio.create_task(
        serve(pen, f"sqlite:{records}", settings, on_ready=ready.set_result, signals=False), name="server"
    )
    try:
        either: set[asyncio.Future[Any]] = {ready, serving}
        await asyncio.wait(either, return_when=asyncio.FIRST_COMPLETED)
    except asyncio.CancelledError:
        serving.cancel()
        raise
    if serving.done():
        serving.result()  # it could not begin: the error says why
    return serving, await ready


def _forget(records: Path) -> None:
    records.parent.mkdir(parents=True, exist_ok=True)
    for suffix in _SUFFIXES:
        records.with_name(records.name + suffix).unlink(missing_ok=True)
