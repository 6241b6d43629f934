"""Taking back the jobs of dead workers, now and then."""

import asyncio
import logging
import random
from collections.abc import Awaitable, Callable, Sequence

from bullpen.errors import StoreError
from bullpen.job.record import CrashLimits, JobRef
from bullpen.stores.base import Rescued
from bullpen.stores.workplace import Workplace

logger = logging.getLogger("bullpen.upkeep")


async def keep_rescuing(
    store: Workplace,
    queues: Sequence[str],
    limits: CrashLimits,
    *,
    every_ms: int,
    on_failed: Callable[[JobRef], Awaitable[None]],
    on_rescued: Callable[[Rescued], None],
) -> None:
    """Rescue until cancelled, at times that differ between workers so that they do not come as a crowd."""
    while True:
        try:
            rescued = await store.rescue(queues, limits=limits)
        except StoreError as error:
            logger.warning("cannot look for stalled jobs: %s", error)
        else:
            if rescued.recovered or rescued.failed:
                on_rescued(rescued)
            for ref in rescued.recovered:
                logger.warning("job %s lost its worker and waits again", ref)
            for ref in rescued.failed:
                logger.error("job %s lost its worker too often and failed", ref)
                await on_failed(ref)
        await asyncio.sleep(every_ms / 1000 * random.uniform(0.8, 1.2))  # noqa: S311 - to spread, not to hide
