"""Ending what runs in the background between two transactions, not within one.

A task that is cancelled while SQLite begins its transaction leaves a connection that holds the write
lock, though nobody will ever end that transaction; everyone else waits for it in vain.
"""

import asyncio

_PATIENCE_S = 5.0


async def end(running: asyncio.Task[None], stopping: asyncio.Event) -> None:
    """Ask it to stop, and wait until it does; cancel it only if that takes too long."""
    stopping.set()
    _, late = await asyncio.wait({running}, timeout=_PATIENCE_S)
    for task in late:
        task.cancel()
    await asyncio.gather(running, return_exceptions=True)


async def wait_for_any(*events: asyncio.Event, seconds: float) -> None:
    """Wait until one of these is set, or the time is over."""
    # Owned here: ended and awaited before this returns.
    waiting = {asyncio.ensure_future(event.wait()) for event in events}
    try:
        await asyncio.wait(waiting, timeout=seconds, return_when=asyncio.FIRST_COMPLETED)
    finally:
        for task in waiting:
            task.cancel()
        await asyncio.gather(*waiting, return_exceptions=True)
