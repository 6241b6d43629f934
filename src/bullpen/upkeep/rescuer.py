"""Taking back the jobs of dead workers, now and then."""

import asyncio
import logging
import random
from collections.abc import Awaitable, Callable, Sequence

from bullpen.clock import Clock
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
    lease_ms: int,
    every_ms: int,
    on_failed: Callable[[JobRef], Awaitable[None]],
    on_rescued: Callable[[Rescued], None],
) -> None:
    """Rescue until cancelled, at times that differ between workers so that they do not come as a crowd."""
    trust = _Trust(store.clock, lease_ms)
    pause_ms = 0.0
    while True:
        expired_are_lost = trust.after_pause(pause_ms)
        try:
            rescued = await _sweep(store, queues if expired_are_lost else (), limits)
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
        pause_ms = every_ms * random.uniform(0.8, 1.2)  # noqa: S311 - to spread, not to hide
        await asyncio.sleep(pause_ms / 1000)


async def _sweep(store: Workplace, queues: Sequence[str], limits: CrashLimits) -> Rescued:
    """Without queues: what dead processes held, where the store knows of them by other means than leases."""
    if not queues and not store.facts.detects_dead_processes:
        return Rescued()
    return await store.rescue(queues, limits=limits)


class _Trust:
    """In leases: where one has run out, its holder is dead, unless time leapt for all of us.

    The machine slept, or its clock was set: then the living renew their leases within the time of one.
    """

    def __init__(self, clock: Clock, lease_ms: int) -> None:
        self._clock = clock
        self._lease_ms = lease_ms
        self._looked_ms = clock.now_ms()
        self._again_from_mono_ms = 0

    def after_pause(self, pause_ms: float) -> bool:
        now_ms, mono_ms = self._clock.now_ms(), self._clock.mono_ms()
        if now_ms - self._looked_ms > pause_ms + self._lease_ms / 2:
            logger.warning("time leapt: for as long as a lease, none counts as run out")
            self._again_from_mono_ms = mono_ms + self._lease_ms
        self._looked_ms = now_ms
        return mono_ms >= self._again_from_mono_ms
