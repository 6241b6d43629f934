"""Steps that are done, and work that is done to its end, whoever is cancelled meanwhile."""

import asyncio
from collections.abc import Awaitable, Callable, Coroutine, Sequence
from typing import Any, NamedTuple

from sqlalchemy.ext.asyncio import AsyncConnection

from bullpen.job.entries import JournalEntry
from bullpen.records.runs.words import NewProgress

Also = Callable[[AsyncConnection], Awaitable[object]]
"""What else is to be true, or not, with what is put on record."""


class Finished(NamedTuple):
    """A step that is done, and not on record yet."""

    entry: JournalEntry
    before: JournalEntry | None
    """As it was on record until then."""
    price: int
    told: Sequence[NewProgress]
    also: Also | None
    memo: str
    """What its bookings say."""


def take_back(finished: list[Finished], entries: dict[int, JournalEntry]) -> None:
    """What was to be on record with something that cannot be is not done: else the run's end would fail of it too."""
    for one in [one for one in finished if one.also is not None]:
        finished.remove(one)
        del entries[one.entry.place]
        if one.before is not None:
            entries[one.entry.place] = one.before


async def to_its_end(work: Coroutine[Any, Any, None]) -> bool:
    """Do all of it; whether who asked was cancelled meanwhile."""
    doing = asyncio.ensure_future(work)
    try:
        await asyncio.shield(doing)
    except asyncio.CancelledError:
        await asyncio.wait([doing])
        doing.result()
        return True
    return False
