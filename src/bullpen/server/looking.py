"""Jobs as the store has them now."""

from collections.abc import Iterable

from bullpen.job.record import JobRecord, JobRef
from bullpen.stores.base import Store


async def look_up(store: Store, refs: Iterable[JobRef]) -> dict[JobRef, JobRecord]:
    """Those that are there, in one trip for each queue."""
    by_queue: dict[str, set[str]] = {}
    for ref in refs:
        by_queue.setdefault(ref.queue, set()).add(ref.id)
    found = [job for queue, ids in by_queue.items() for job in await store.look(queue, sorted(ids))]
    return {job.ref: job for job in found if job is not None}
