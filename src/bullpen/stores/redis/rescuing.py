"""Taking jobs back from workers that are gone, and telling workers which of theirs are to stop."""

import asyncio
from collections.abc import Sequence
from typing import Any

from bullpen.job.record import CrashKind, CrashLimits, JobRef, Lease
from bullpen.stores.base import Notice, Rescued
from bullpen.stores.redis.asking import ask_rescue
from bullpen.stores.redis.connection import LONGEST_BLOCK_MS
from bullpen.stores.redis.reading import read_refs
from bullpen.stores.redis.scripts import NOTICES, RESCUE
from bullpen.stores.redis.site import Site


async def rescue(site: Site, queues: Sequence[str], limits: CrashLimits) -> Rescued:
    return await _take_back(site, queues, limits, CrashKind.LOST_HEARTBEAT, None)


async def report_crash(site: Site, worker: str, kind: CrashKind, limits: CrashLimits) -> Rescued:
    keys = site.keys
    # It is dead and claims no more, so the queues that it is known by now are all of them.
    bases = await site.connection.command("SMEMBERS", keys.worker_queues(worker))
    rescued = await _take_back(site, sorted(map(keys.queue_of, bases)), limits, kind, worker)
    await forget_worker(site, worker)
    return rescued


async def forget_worker(site: Site, worker: str) -> None:
    keys = site.keys
    await site.connection.command("ZREM", keys.workers, worker)
    await site.connection.command("HDEL", keys.worker_infos, worker)
    await site.connection.command(
        "DEL", keys.worker_queues(worker), keys.worker_stops(worker), keys.worker_bell(worker)
    )


async def _take_back(
    site: Site, queues: Sequence[str], limits: CrashLimits, crash: CrashKind, worker: str | None
) -> Rescued:
    if not queues:
        return Rescued()
    message = ask_rescue(site.keys, queues, limits, crash, worker, site.clock.now_ms())
    recovered, failed = await site.connection.run(RESCUE, site.keys.meta(queues[0]), message)
    return Rescued(read_refs(recovered, site.keys), read_refs(failed, site.keys))


async def notices(site: Site, worker: str, timeout_ms: int) -> list[Notice]:
    """Look, and sleep on the worker's bell until it rings or the time is over."""
    loop = asyncio.get_running_loop()
    deadline = loop.time() + timeout_ms / 1000
    while True:
        found = await site.connection.run(NOTICES, site.keys.worker_stops(worker), worker)
        left_ms = (deadline - loop.time()) * 1000
        if found or left_ms <= 0:
            return [_read_notice(site, *notice) for notice in found]
        block_s = max(min(left_ms, LONGEST_BLOCK_MS), 1) / 1000
        await site.connection.block("BLPOP", site.keys.worker_bell(worker), f"{block_s:.3f}")


def _read_notice(site: Site, base: bytes, job_id: bytes, token: bytes, epoch: Any, reason: bytes) -> Notice:
    ref = JobRef(site.keys.queue_of(base), job_id.decode())
    return Notice(Lease(ref, token.decode(), int(epoch)), reason.decode(errors="replace"))
