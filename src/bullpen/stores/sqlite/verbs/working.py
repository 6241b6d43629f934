"""Adding jobs, and running them."""

import asyncio
import contextlib
from collections.abc import Mapping, Sequence

from bullpen.errors import StoreError
from bullpen.job.record import CrashKind, CrashLimits, Lease
from bullpen.job.spec import NewJob
from bullpen.job.trees import check_children, check_trees
from bullpen.job.verdicts import Settlement
from bullpen.stores.base import Added, Claimed, Exchanged, Notice, Renewal, Rescued, SettleOutcome, WorkerInfo
from bullpen.stores.sqlite import adding, claiming, leasing, looking, rescuing
from bullpen.stores.sqlite.exchanging import exchange
from bullpen.stores.sqlite.file import Waiter
from bullpen.stores.sqlite.opened import OpenFile
from bullpen.stores.sqlite.requests import answer_add, answer_exchange
from bullpen.stores.sqlite.transaction import CANCELS, WORK


class Working(OpenFile):
    async def add(self, jobs: Sequence[NewJob], *, request: str) -> Sequence[Added]:
        check_trees(jobs)
        return await self._write(lambda tx: answer_add(tx, request, lambda: adding.add_checked(tx, jobs)))

    async def add_children(self, lease: Lease, jobs: Sequence[NewJob], *, request: str) -> Sequence[Added]:
        check_children(jobs)
        return await self._write(lambda tx: answer_add(tx, request, lambda: adding.add_children(tx, lease, jobs)))

    async def claim(
        self,
        wants: Mapping[str, int],
        *,
        worker: str,
        lease_ms: int,
        request: str,
        at_most: int | None = None,
        held_elsewhere: bool = False,
        group: str | None = None,
    ) -> Claimed:
        token = self._file.next_claim(held_elsewhere=held_elsewhere)
        claimant = claiming.Claimant(worker, lease_ms, token, group)
        return (await self._exchange((), wants, claimant, request, at_most)).claimed

    async def settle(self, settlements: Sequence[Settlement], *, request: str) -> Sequence[SettleOutcome]:
        return (await self.exchange(settlements, {}, worker="", lease_ms=0, request=request)).settled

    async def exchange(
        self,
        settlements: Sequence[Settlement],
        wants: Mapping[str, int],
        *,
        worker: str,
        lease_ms: int,
        request: str,
        at_most: int | None = None,
    ) -> Exchanged:
        claimant = claiming.Claimant(worker, lease_ms, self._file.next_claim())
        return await self._exchange(settlements, wants, claimant, request, at_most)

    async def _exchange(
        self,
        settlements: Sequence[Settlement],
        wants: Mapping[str, int],
        claimant: claiming.Claimant,
        request: str,
        at_most: int | None,
    ) -> Exchanged:
        file = self._file
        answer = await self._write(
            lambda tx: answer_exchange(
                tx,
                request,
                claimant.lease_ms,
                claimant.token.text,
                lambda may: exchange(tx, settlements, wants if may else {}, claimant, at_most),
            )
        )
        file.presence.mark_received(claimant.token.number)
        return answer

    async def renew(self, leases: Sequence[Lease], *, lease_ms: int) -> Sequence[Renewal]:
        return await self._write(lambda tx: leasing.renew(tx, leases, lease_ms)) if leases else []

    async def abandon(self, request: str) -> int:
        return await self._write(lambda tx: rescuing.abandon(tx, request))

    async def rescue(self, queues: Sequence[str], *, limits: CrashLimits) -> Rescued:
        return await self._write(lambda tx: rescuing.rescue(tx, queues, limits, self._file.find_dead()))

    async def report_crash(self, worker: str, kind: CrashKind, *, limits: CrashLimits) -> Rescued:
        return await self._write(lambda tx: rescuing.report_crash(tx, worker, kind, limits))

    async def wait(self, queues: Sequence[str], *, timeout_ms: int) -> bool:
        wanted = frozenset(queues)
        file = self._file
        waiter = Waiter(WORK, lambda news: not wanted.isdisjoint(news.runnable))
        deadline_ms = self._clock.mono_ms() + timeout_ms
        # Joined before the look: what is committed in between wakes us.
        file.join(waiter)
        try:
            while not waiter.knows:
                due_in_ms = await self._runnable_in_ms(queues)
                if due_in_ms is not None and due_in_ms <= 0:
                    return True
                left_ms = max(0, deadline_ms - self._clock.mono_ms())
                sleep_ms = left_ms if due_in_ms is None else min(due_in_ms, left_ms)
                # A neighbour with news does not say for which queue, so we look again: an idle worker
                # that claimed each time would write as often as all its neighbours together.
                if not await waiter.sleep(sleep_ms / 1000):
                    return sleep_ms < left_ms
            return True
        finally:
            file.leave(waiter)

    async def _runnable_in_ms(self, queues: Sequence[str]) -> int | None:
        now_ms = self._clock.now_ms()
        due_ms = await self._file.read(lambda db: looking.runnable_from_ms(db, queues, now_ms))
        return None if due_ms is None else due_ms - now_ms

    async def wait_and_claim(
        self,
        wants: Mapping[str, int],
        *,
        worker: str,
        lease_ms: int,
        request: str,
        timeout_ms: int,
        at_most: int | None = None,
    ) -> Exchanged:
        if not await self.wait(tuple(wants), timeout_ms=timeout_ms):
            return Exchanged()  # idle, so nothing is written
        try:
            return await self.exchange((), wants, worker=worker, lease_ms=lease_ms, request=request, at_most=at_most)
        except asyncio.CancelledError:
            # It may be under way, and is carried out though nobody listens.
            with contextlib.suppress(StoreError):
                await self.abandon(request)
            raise

    async def notices(self, worker: str, *, timeout_ms: int) -> Sequence[Notice]:
        return await self._look_until(
            timeout_ms,
            topic=CANCELS,
            concerns=lambda news: news.cancelling,
            look=lambda: self._file.read(lambda db: looking.notices(db, worker)),
            enough=bool,
        )

    async def beat(self, info: WorkerInfo, *, ttl_ms: int) -> None:
        await self._write(lambda tx: leasing.beat(tx, info, ttl_ms))

    async def workers(self) -> Sequence[WorkerInfo]:
        return await self._file.read(lambda db: looking.workers(db, self._clock.now_ms()))
