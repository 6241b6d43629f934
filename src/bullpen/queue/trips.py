"""Trips to the store that are made again when no answer came."""

import asyncio
import uuid
from collections.abc import Awaitable, Callable, Sequence
from typing import TypeVar

from bullpen.errors import StoreNotOpen, StoreUnavailable
from bullpen.job.spec import NewJob
from bullpen.queue.buffer import Buffer
from bullpen.scheduling.pauses import Pauses
from bullpen.stores.base import Added, Store

Producer = Store | Buffer
T = TypeVar("T")

_FIRST_PAUSE_S = 0.05
_LONGEST_PAUSE_S = 1.0
_PATIENCE_S = 3.0
"""A connection that broke is back by then; a store that is away is the caller's to know of."""


def new_pauses() -> Pauses:
    return Pauses(_FIRST_PAUSE_S, _LONGEST_PAUSE_S)


async def add_jobs(producer: Producer, jobs: Sequence[NewJob]) -> Sequence[Added]:
    """Add these; a lost answer is asked for again, with the same request, so that nothing is added twice."""
    request = uuid.uuid4().hex
    return await until_answered(lambda: producer.add(jobs, request=request))


async def until_answered(ask: Callable[[], Awaitable[T]]) -> T:
    """Ask again and again, for a while, what may be asked twice."""
    loop = asyncio.get_running_loop()
    deadline = loop.time() + _PATIENCE_S
    pauses = new_pauses()
    while True:
        try:
            return await ask()
        except StoreNotOpen:
            raise
        except StoreUnavailable:
            pause_s = pauses.next_s()
            if loop.time() + pause_s > deadline:
                raise
            await asyncio.sleep(pause_s)
