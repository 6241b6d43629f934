"""Claiming for a worker that is far away: what it gets, it gets once; what does not reach it, comes back.

A call may wait for work, and looks into the store each time that it is woken. Each look is a request of its
own there, numbered from 0: an empty answer is remembered too. The same call made `again`, here or at
another replica, goes through all looks that the first may have taken, and so finds the same jobs.
"""

import asyncio
import logging
from collections.abc import Awaitable, Iterable

from bullpen.errors import BadOption, BullpenError
from bullpen.job.record import ClaimedJob
from bullpen.job.verdicts import Failed, Postponed, Released, Settlement, Verdict
from bullpen.remote.messages import ClaimAnswer, ClaimAsk, RemoteJob
from bullpen.server.access.caller import Caller
from bullpen.server.remote.bell import Bells
from bullpen.server.remote.presence import Presence
from bullpen.server.remote.scope import (
    check_count,
    check_lease_ms,
    check_queues,
    check_wait_s,
    own_request,
    worker_name,
)
from bullpen.settings import may_advance_schedules
from bullpen.stores.base import Store
from bullpen.worker.options import WorkerOptions
from bullpen.worker.ticking import HeldBack, Ticker

logger = logging.getLogger("bullpen.server")

_MOST_LOOKS = 16
"""Of one call: after that many in vain it is answered, empty."""


class Claims:
    def __init__(self, store: Store, bells: Bells, options: WorkerOptions) -> None:
        self._store = store
        self._bells = bells
        self._options = options
        self._ticker = Ticker(store, may_advance=may_advance_schedules())
        self._newest: dict[str, Presence] = {}
        """Who asks, by request: a call that is made again stands for the one before."""

    async def claim(self, caller: Caller, ask: ClaimAsk, presence: Presence) -> ClaimAnswer:
        """Jobs to run, waiting for the first one; none if the time is over or the caller is gone."""
        _check(caller, ask)
        request = own_request(caller, "claim", ask.request)
        if (older := self._newest.get(request)) is not None:
            older.is_superseded = True
        self._newest[request] = presence
        try:
            jobs = await self._wait_for_jobs(caller, ask, request, presence)
        finally:
            if self._newest[request] is presence:
                del self._newest[request]
        deadline_ms = self._store.clock.now_ms() + ask.lease_ms
        return ClaimAnswer([RemoteJob.of(job, deadline_ms) for job in jobs])

    async def _wait_for_jobs(self, caller: Caller, ask: ClaimAsk, request: str, presence: Presence) -> list[ClaimedJob]:
        loop = asyncio.get_running_loop()
        deadline = loop.time() + ask.wait_s
        bell = self._bells.of(caller.tenant)
        for look in range(_MOST_LOOKS):
            # A look that has begun is seen through: what it claims must be known to be handed back.
            jobs = await _seen_through(self._look(caller, ask, f"{request} {look}", presence))
            if jobs:
                bell.job_was_found()
                return jobs
            left_s = deadline - loop.time()
            if not ask.again and (left_s <= 0 or not await presence.or_gone(bell.wait(ask.queues, left_s))):
                break
        return []

    async def _look(self, caller: Caller, ask: ClaimAsk, request: str, presence: Presence) -> list[ClaimedJob]:
        claimed = await self._store.claim(
            ask.queues,
            worker=worker_name(caller, ask.worker),
            lease_ms=ask.lease_ms,
            request=request,
            at_most=ask.at_most,
            held_elsewhere=True,
            group=caller.tenant,
        )
        unfit = {job.lease: verdict for job in claimed.jobs if (verdict := await self._unfit(caller, job)) is not None}
        if unfit:
            await self._store.settle(
                [Settlement(lease, verdict) for lease, verdict in unfit.items()], request=f"{request} unfit"
            )
        jobs = [job for job in claimed.jobs if job.lease not in unfit]
        # Who asked again takes the answer in the new call.
        if jobs and not presence.is_superseded and await presence.has_left():
            await self._hand_back(jobs, request)
            return []
        return jobs

    async def _unfit(self, caller: Caller, claimed: ClaimedJob) -> Verdict | None:
        """What becomes of a job that is not to be run by this caller, or not now."""
        job = claimed.job
        if job.doomed is not None:
            return Failed(job.doomed)
        if not caller.sees_tenant(job.tenant):
            note = f"waits in the group of tenant {caller.tenant!r}, and is not its job"
            return Postponed(self._options.unhandled_delay_ms, note)
        if job.tick is None:
            return None
        try:
            await self._ticker.begin(claimed)
        except HeldBack as held:
            await self._store.add_log(job.ref, [held.why])
            return held.verdict
        return None

    async def _hand_back(self, jobs: Iterable[ClaimedJob], request: str) -> None:
        # Last claimed, first handed back: each goes to the head, so the old order stands again.
        back = [Settlement(job.lease, Released()) for job in reversed(list(jobs))]
        try:
            await self._store.settle(back, request=f"{request} back")
        except BullpenError:
            logger.exception("%s jobs for a worker that is gone come back when their leases end", len(back))


async def _seen_through(look: Awaitable[list[ClaimedJob]]) -> list[ClaimedJob]:
    """Its outcome, though we be cancelled meanwhile: then it goes on, and hands back what nobody takes."""
    return await asyncio.shield(look)


def _check(caller: Caller, ask: ClaimAsk) -> None:
    check_queues(caller, ask.queues)
    check_lease_ms(ask.lease_ms)
    check_wait_s(ask.wait_s)
    check_count("queues", sum(ask.queues.values()))
    if not ask.queues or min(ask.queues.values()) < 1:
        raise BadOption("queues: name at least one, and how many jobs of each, 1 or more")
    if ask.at_most is not None and ask.at_most < 1:
        raise BadOption(f"at_most: 1 or more, not {ask.at_most}")
