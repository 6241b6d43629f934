"""Limits that a program declares for its queues."""

import logging
from collections.abc import Mapping

from bullpen.errors import QueueMissing
from bullpen.job.limits import NO_LIMITS, QueueLimits
from bullpen.stores.workplace import Workplace

logger = logging.getLogger("bullpen.worker")


async def declare_limits(store: Workplace, declared: Mapping[str, QueueLimits]) -> None:
    """Put them into the store; what an operator set there stands, since a restart must not undo it."""
    for queue, limits in declared.items():
        try:
            standing = (await store.limits(queue)).limits
        except QueueMissing:
            standing = NO_LIMITS
        if standing == NO_LIMITS:
            await store.set_limits(queue, limits)
        elif standing != limits:
            logger.warning(
                "queue %s keeps its limits, %s; the program declares %s: `bullpen limits %s` changes them",
                queue, standing, limits, queue,
            )  # fmt: skip
