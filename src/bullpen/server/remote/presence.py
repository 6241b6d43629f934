"""Whether the caller is still there: a worker that waits in a call may be killed meanwhile."""

import asyncio
from collections.abc import Awaitable
from typing import Self, TypeVar

from starlette.requests import Request

T = TypeVar("T")


class Presence:
    """Watches one call for its caller's end; for the time of a block."""

    def __init__(self, request: Request, present: "set[Presence]") -> None:
        self._request = request
        self._present = present
        """All who are; we are one of them for the time of the block."""
        self._watching: asyncio.Task[None] | None = None
        self.is_superseded = False
        """The same call was made again, and that one gets the answer."""

    async def __aenter__(self) -> Self:
        # The server gives nothing after the body but the news that the caller has hung up.
        await self._request.body()
        self._watching = asyncio.create_task(self._until_gone(), name="presence")
        self._present.add(self)
        return self

    async def __aexit__(self, *_: object) -> None:
        self._present.discard(self)
        self.end()

    def end(self) -> None:
        """The server stops: as if the caller were gone."""
        assert self._watching is not None
        self._watching.cancel()

    @property
    def is_gone(self) -> bool:
        return self._watching is not None and self._watching.done()

    async def has_left(self) -> bool:
        """The same, after giving the news a chance to arrive."""
        await asyncio.sleep(0)
        return self.is_gone

    async def or_gone(self, wait: Awaitable[T]) -> T | None:
        """What comes of the wait; None if the caller goes first."""
        assert self._watching is not None
        waiting = asyncio.ensure_future(wait)
        try:
            await asyncio.wait([waiting, self._watching], return_when=asyncio.FIRST_COMPLETED)
            return waiting.result() if waiting.done() else None
        finally:
            waiting.cancel()

    async def _until_gone(self) -> None:
        while (await self._request.receive())["type"] != "http.disconnect":
            pass
