"""Sending to a reader for as long as it is there, whichever way it listens."""

import asyncio
import logging
from collections.abc import Coroutine
from typing import Any, TypeVar

from starlette.types import Receive
from starlette.websockets import WebSocketDisconnect

T = TypeVar("T")

logger = logging.getLogger("bullpen.server")


async def send_until_left(receive: Receive, sending: Coroutine[Any, Any, T]) -> T | None:
    """What the sending came to; None if the reader left before, or an error ended it, which is logged."""
    # Both are ended and awaited here.
    leaving = asyncio.create_task(_until_left(receive))
    sent = asyncio.create_task(sending)
    try:
        await asyncio.wait({leaving, sent}, return_when=asyncio.FIRST_COMPLETED)
    finally:
        has_left = leaving.done()
        leaving.cancel()
        sent.cancel()
        await asyncio.gather(leaving, sent, return_exceptions=True)
    if sent.cancelled():
        return None
    error = sent.exception()
    if error is None:
        return sent.result()
    # A send to somebody who is leaving may fail in any way.
    if not has_left and not isinstance(error, OSError | WebSocketDisconnect):
        logger.error("a stream was ended by an error: %s", error, exc_info=error)
    return None


async def _until_left(receive: Receive) -> None:
    while not (await receive())["type"].endswith(".disconnect"):
        pass
