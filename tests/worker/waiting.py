"""Waiting for a fact, bounded: for what has no event to wait on."""

import asyncio
from collections.abc import Awaitable, Callable
from typing import TypeVar

T = TypeVar("T")


async def until(look: Callable[[], Awaitable[T]], enough: Callable[[T], bool], limit_s: float = 60) -> T:
    """Look until it is so; the last look is returned. Fails after the limit."""
    async with asyncio.timeout(limit_s):
        while True:
            seen = await look()
            if enough(seen):
                return seen
            await asyncio.sleep(0.01)  # between two looks, not instead of one
