"""Adding the next tick of a schedule: by whoever claimed the one before, and else by anyone.

There is no owner who could die. A claimant that is killed before it added the next tick leaves
a schedule with nothing pending; every worker of the queue looks for such, and the store sees
to it that only the first of them adds a tick.
"""

import asyncio
import logging
import random
from collections.abc import Sequence

from bullpen.errors import StoreError, UsageError
from bullpen.job.schedule import ScheduleRecord
from bullpen.scheduling.timing import next_of
from bullpen.stores.workplace import Workplace

logger = logging.getLogger("bullpen.upkeep")

LOOK_S = 1.0
"""How often a worker looks; `docs/how-to/schedules.md` states the recovery time that follows from it."""


async def advance(store: Workplace, record: ScheduleRecord) -> bool:
    """Add the tick after the newest one, if nobody did; whether it was us."""
    try:
        next_ms = next_of(record, store.clock.now_ms())
    except UsageError as error:
        # Another program may know expressions that we cannot read; its own workers go on with them.
        logger.warning("schedule %s of queue %s is left to others: %s", record.id, record.queue, error)
        return False
    return await store.advance_schedule(record.queue, record.id, tick_ms=record.last_ms, next_ms=next_ms)


async def keep_advancing(store: Workplace, queues: Sequence[str]) -> None:
    """Advance what nobody did until cancelled, at times that differ between workers."""
    while True:
        await asyncio.sleep(LOOK_S * random.uniform(0.8, 1.2))  # noqa: S311 - to spread, not to hide
        try:
            for record in await store.idle_schedules(queues):
                if await advance(store, record):
                    logger.info("schedule %s of queue %s had nothing pending and goes on", record.id, record.queue)
        except StoreError as error:
            logger.warning("cannot look after schedules: %s", error)
