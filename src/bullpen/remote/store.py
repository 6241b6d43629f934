"""The workplace of a remote worker: the verbs by which jobs are run, each a call to the server.

What a worker beside the store does for all others (rescuing, advancing schedules) the server does here.
"""

import uuid
from collections.abc import Mapping, Sequence
from typing import NoReturn

from bullpen.clock import SYSTEM_CLOCK
from bullpen.errors import LeaseLost, UsageError
from bullpen.job.entries import JournalEntry, JournalPage
from bullpen.job.limits import QueueLimits, QueueStanding
from bullpen.job.record import CrashKind, CrashLimits, JobRecord, JobRef, Lease
from bullpen.job.schedule import ScheduleRecord
from bullpen.job.spec import NewJob
from bullpen.job.verdicts import Settlement
from bullpen.remote import messages
from bullpen.remote.address import ServerAddress
from bullpen.remote.connection import Connection
from bullpen.remote.messages import LONGEST_WAIT_S, Entry, HeldLease
from bullpen.remote.parts import LONGEST_LINE, in_parts
from bullpen.remote.settling import SettleAnswer, SettleAsk, told
from bullpen.stores.base import (
    Added,
    ChildPage,
    Claimed,
    Delivery,
    Exchanged,
    Notice,
    Renewal,
    Rescued,
    SettleOutcome,
    StoreFacts,
    TickStart,
    WorkerInfo,
)

_WORDS_PATIENCE_S = 5.0
"""How long a job's words may take to arrive before they are given up."""
_STEP_PATIENCE_S = 20.0
"""How long a step waits for a server that is away, before its attempt fails of that."""
_ENTRANCE_PATIENCE_S = 60.0
_NOTICES_WAIT_S = 10.0
_FACTS = StoreFacts(name="remote", exchanges_in_flight=2, atomic_across_queues=False, only_works=True)


class ServerClock:
    """The server's time, as far as it is known: a job's sleep must not depend on how this machine's clock is set."""

    def __init__(self) -> None:
        self._ahead_ms = 0

    def now_ms(self) -> int:
        return SYSTEM_CLOCK.now_ms() + self._ahead_ms

    def mono_ms(self) -> int:
        return SYSTEM_CLOCK.mono_ms()

    def set(self, now_ms: int) -> None:
        if now_ms:
            self._ahead_ms = now_ms - SYSTEM_CLOCK.now_ms()


class RemoteStore:
    """A store as a worker sees it, through a server."""

    def __init__(
        self, address: ServerAddress, *, clock: ServerClock | None = None, held: dict[JobRef, Lease] | None = None
    ) -> None:
        self._address = address
        self._connection = Connection(address)
        self._clock = clock or ServerClock()
        self._held: dict[JobRef, Lease] = {} if held is None else held
        """The leases by which we speak of jobs; shared with the lease thread, which only reads."""
        self._lease_ms = messages.DEFAULT_LEASE_MS
        self._has_beaten = False

    @property
    def facts(self) -> StoreFacts:
        return _FACTS

    @property
    def clock(self) -> ServerClock:
        return self._clock

    @property
    def place(self) -> str:
        return self._address.url

    async def open(self) -> None:
        """Wait until the server is there; RemoteRefused if it does not take our token."""
        try:
            answer = await self._connection.call(
                "heartbeat", messages.HeartbeatAsk(), messages.HeartbeatAnswer, patience_s=None
            )
        except BaseException:
            await self.close()
            raise
        self._clock.set(answer.now_ms)

    async def close(self) -> None:
        await self._connection.close()

    def another(self) -> "RemoteStore":
        return RemoteStore(self._address, clock=self._clock, held=self._held)

    # ── working ──────────────────────────────────────────────────────────────────────────

    async def claim(
        self,
        wants: Mapping[str, int],
        *,
        worker: str,
        lease_ms: int,
        request: str,
        at_most: int | None = None,
        held_elsewhere: bool = True,  # noqa: ARG002 - every lease of ours is
        group: str | None = None,
    ) -> Claimed:
        if group is not None:
            _refuse("a group is chosen by the token's tenant, not by the worker")
        self._lease_ms = lease_ms
        ask = messages.ClaimAsk(
            worker=worker, queues=dict(wants), request=request, lease_ms=lease_ms, at_most=at_most
        )  # fmt: skip
        answer = await self._connection.call("claim", ask, messages.ClaimAnswer)
        claimed = tuple(job.claimed() for job in answer.jobs)
        self._held.update((one.lease.ref, one.lease) for one in claimed)
        return Claimed(claimed)

    async def settle(self, settlements: Sequence[Settlement], *, request: str) -> Sequence[SettleOutcome]:
        outcomes: list[SettleOutcome] = []
        for number, part in enumerate(in_parts([told(one) for one in settlements])):
            ask = SettleAsk(settlements=part, request=f"{request}.{number}")
            outcomes += (await self._connection.call("settle", ask, SettleAnswer)).outcomes
        for settlement in settlements:
            self._forget(settlement.lease)
        return outcomes

    def _forget(self, lease: Lease) -> None:
        # The same job may be ours again by now, under another lease.
        if self._held.get(lease.ref) == lease:
            del self._held[lease.ref]

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
        """Two calls: if the second fails, the whole is asked for again, and the first is not done twice."""
        settled = await self.settle(settlements, request=request) if settlements else ()
        if not wants:
            return Exchanged(tuple(settled))
        claimed = await self.claim(wants, worker=worker, lease_ms=lease_ms, request=request, at_most=at_most)
        return Exchanged(tuple(settled), claimed)

    async def renew(self, leases: Sequence[Lease], *, lease_ms: int) -> Sequence[Renewal]:
        if not leases:
            return []
        ask = messages.HeartbeatAsk(leases=[HeldLease.of(lease) for lease in leases], lease_ms=lease_ms)
        answer = await self._connection.call("heartbeat", ask, messages.HeartbeatAnswer, patience_s=lease_ms / 3000)
        self._clock.set(answer.now_ms)
        return [one.state for one in answer.leases]

    async def wait(self, queues: Sequence[str], *, timeout_ms: int) -> bool:
        wait_s = min(timeout_ms / 1000, LONGEST_WAIT_S)
        ask = messages.WaitAsk(queues=list(queues), wait_s=wait_s)
        return (await self._connection.call("wait", ask, messages.WaitAnswer, waits_s=wait_s)).woken

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
        """Two calls. Given up, what the second took comes back when its leases run out."""
        await self.wait(tuple(wants), timeout_ms=timeout_ms)
        return await self.exchange((), wants, worker=worker, lease_ms=lease_ms, request=request, at_most=at_most)

    async def notices(self, worker: str, *, timeout_ms: int) -> Sequence[Notice]:
        """Waits for longer than asked: one long call in place of many short ones."""
        wait_s = max(timeout_ms / 1000, _NOTICES_WAIT_S)
        ask = messages.NoticesAsk(worker=worker, wait_s=wait_s)
        answer = await self._connection.call("notices", ask, messages.NoticesAnswer, waits_s=wait_s)
        return [one.notice for one in answer.cancelling]

    async def beat(self, info: WorkerInfo, *, ttl_ms: int) -> None:  # noqa: ARG002 - the server says how long
        # The first one is the worker's entrance, and ends it if it fails; any other comes again soon.
        patience_s = 0 if self._has_beaten else _ENTRANCE_PATIENCE_S
        ask = messages.HeartbeatAsk(info=info)
        await self._connection.call("heartbeat", ask, messages.HeartbeatAnswer, patience_s=patience_s)
        self._has_beaten = True

    # ── words about a job ────────────────────────────────────────────────────────────────

    async def set_progress(self, ref: JobRef, progress: bytes) -> None:
        lease = self._lease_of(ref)
        ask = messages.ProgressAsk(lease=lease, value=messages.raw(progress), lease_ms=self._lease_ms)
        await self._connection.call("progress", ask, messages.Nothing, patience_s=_WORDS_PATIENCE_S)

    async def add_log(self, ref: JobRef, lines: Sequence[str]) -> int:
        kept = 0
        for part in in_parts(line[:LONGEST_LINE] for line in lines):
            lease, request = self._lease_of(ref), uuid.uuid4().hex
            ask = messages.LogAsk(lease=lease, lines=part, request=request, lease_ms=self._lease_ms)
            kept = (await self._connection.call("log", ask, messages.LogAnswer, patience_s=_WORDS_PATIENCE_S)).kept
        return kept

    def _lease_of(self, ref: JobRef, epoch: int | None = None) -> HeldLease:
        lease = self._held.get(ref)
        if lease is None or (epoch is not None and lease.epoch != epoch):
            raise LeaseLost(f"job {ref} is not ours any more")
        return HeldLease.of(lease)

    # ── durable steps ────────────────────────────────────────────────────────────────────

    async def append_journal(
        self, ref: JobRef, entries: Sequence[JournalEntry], *, epoch: int
    ) -> Sequence[JournalEntry]:
        lease = self._lease_of(ref, epoch)
        answer = await self._step(messages.StepAsk(lease=lease, record=[Entry.of(entry) for entry in entries]))
        return [entry.entry for entry in answer.entries]

    async def receive(self, ref: JobRef, entry: JournalEntry, *, epoch: int) -> JournalEntry | None:
        answer = await self._step(messages.StepAsk(lease=self._lease_of(ref, epoch), receive=Entry.of(entry)))
        return answer.entries[0].entry if answer.entries else None

    async def read_journal(self, ref: JobRef, *, start: int = 0, limit: int = 1_000) -> JournalPage:
        answer = await self._step(messages.StepAsk(lease=self._lease_of(ref), start=start, limit=limit))
        return JournalPage(tuple(entry.entry for entry in answer.entries), answer.next_place)

    async def _step(self, ask: messages.StepAsk) -> messages.StepAnswer:
        return await self._connection.call("step", ask, messages.StepAnswer, patience_s=_STEP_PATIENCE_S)

    # ── what the server does by itself ───────────────────────────────────────────────────

    async def start_tick(self, lease: Lease) -> TickStart:  # noqa: ARG002 - it was started before it was given to us
        return TickStart(None)

    async def idle_schedules(self, queues: Sequence[str]) -> Sequence[ScheduleRecord]:  # noqa: ARG002
        return ()

    async def rescue(self, queues: Sequence[str], *, limits: CrashLimits) -> Rescued:  # noqa: ARG002
        return Rescued()

    async def abandon(self, request: str) -> int:  # noqa: ARG002 - what nobody answers for comes back in time
        return 0

    # ── what cannot be done from afar ────────────────────────────────────────────────────

    async def add(self, jobs: Sequence[NewJob], *, request: str) -> Sequence[Added]:  # noqa: ARG002
        _refuse("jobs are added by POST /v1/queues/…/jobs, with a key of the role `producer`")

    async def add_children(self, lease: Lease, jobs: Sequence[NewJob], *, request: str) -> Sequence[Added]:  # noqa: ARG002
        _refuse("a remote worker adds no children")

    async def children(self, ref: JobRef, *, limit: int = 1_000, cursor: str | None = None) -> ChildPage:  # noqa: ARG002
        _refuse("a remote worker does not see a job's children")

    async def signal(self, ref: JobRef, name: str, payload: bytes, *, request: str) -> Delivery:  # noqa: ARG002
        _refuse("a remote worker sends no signals")

    async def job(self, ref: JobRef) -> JobRecord:  # noqa: ARG002
        _refuse("a remote worker sees the jobs that it holds, and no others")

    async def fork_journal(self, ref: JobRef, at: int, to: JobRef) -> int:  # noqa: ARG002
        _refuse("journals are forked beside the store")

    async def forget_journal(self, ref: JobRef) -> None:  # noqa: ARG002
        _refuse("journals are forgotten beside the store")

    async def report_crash(self, worker: str, kind: CrashKind, *, limits: CrashLimits) -> Rescued:  # noqa: ARG002
        _refuse("a crash is seen by its lost heartbeat")

    async def workers(self) -> Sequence[WorkerInfo]:
        _refuse("workers are listed by GET /v1/workers")

    async def advance_schedule(self, queue: str, schedule_id: str, *, tick_ms: int, next_ms: int | None) -> bool:  # noqa: ARG002
        _refuse("schedules are advanced by the server")

    async def limits(self, queue: str) -> QueueStanding:  # noqa: ARG002
        _refuse("limits are declared beside the store")

    async def set_limits(self, queue: str, limits: QueueLimits) -> None:  # noqa: ARG002
        _refuse("limits are declared beside the store")


def _refuse(why: str) -> NoReturn:
    raise UsageError(f"not over HTTP: {why}")
