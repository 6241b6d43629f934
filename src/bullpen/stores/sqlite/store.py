"""The SQLite store: the contract's verbs, each handed to the writer or to a reader."""

import asyncio
from collections.abc import Awaitable, Callable, Mapping, Sequence
from pathlib import Path
from typing import TypeVar, cast

from bullpen.clock import SYSTEM_CLOCK, Clock
from bullpen.errors import StoreNotOpen
from bullpen.job.entries import JournalEntry, JournalPage
from bullpen.job.limits import GroupInfo, GroupLimits, GroupPage, QueueLimits, QueueStanding
from bullpen.job.record import CrashKind, CrashLimits, JobRecord, JobRef, Lease
from bullpen.job.schedule import Schedule, ScheduleRecord, tick_of
from bullpen.job.spec import NewJob
from bullpen.job.state import State
from bullpen.job.trees import check_children, check_trees
from bullpen.job.verdicts import Settlement
from bullpen.stores.base import (
    Added,
    Cancellation,
    ChildPage,
    Claimed,
    Counts,
    Delivery,
    EventPage,
    Exchanged,
    JobPage,
    LogPage,
    Notice,
    Renewal,
    Rescued,
    ScheduleOutcome,
    SettleOutcome,
    StoreFacts,
    TickStart,
    WorkerInfo,
)
from bullpen.stores.moving import Cargo, MemoryPage, Move, SavedJob
from bullpen.stores.sqlite import (
    adding,
    claiming,
    exporting,
    journaling,
    leasing,
    limiting,
    looking,
    rescuing,
    restoring,
    scheduling,
    steering,
)
from bullpen.stores.sqlite.connection import Sync
from bullpen.stores.sqlite.exchanging import exchange
from bullpen.stores.sqlite.file import SharedFile, Waiter, acquire, release
from bullpen.stores.sqlite.requests import answer_add, answer_exchange, answer_signal
from bullpen.stores.sqlite.transaction import News, Transaction

T = TypeVar("T")


class SqliteStore:
    """Jobs in one file, shared by all processes of this machine."""

    facts = StoreFacts(name="sqlite", exchanges_in_flight=1, detects_dead_processes=True)

    def __init__(self, path: str | Path, *, sync: Sync = "full", clock: Clock = SYSTEM_CLOCK) -> None:
        self._path = Path(path).absolute()
        self._sync = sync
        self._clock = clock
        self._opened: SharedFile | None = None

    @property
    def clock(self) -> Clock:
        return self._clock

    @property
    def place(self) -> str:
        return f"sqlite:{self._path}"

    async def open(self) -> None:
        if self._opened is not None:
            return
        file = await asyncio.to_thread(acquire, self._path, self._sync, self._clock)
        if self._opened is None:
            self._opened = file
        else:  # someone else opened us meanwhile
            await asyncio.to_thread(release, file)

    async def close(self) -> None:
        if (file := self._opened) is not None:
            self._opened = None
            await asyncio.to_thread(release, file)

    def another(self) -> "SqliteStore":
        return SqliteStore(self._path, sync=self._sync, clock=self._clock)

    @property
    def _file(self) -> SharedFile:
        if self._opened is None:
            raise StoreNotOpen(f"{self._path}: the store is not open")
        return self._opened

    async def _write(self, do: Callable[[Transaction], T]) -> T:
        return cast(T, await self._file.writer.submit(do))

    # ── producing and working ────────────────────────────────────────────────────────────

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
    ) -> Claimed:
        token = self._file.next_claim(held_elsewhere=held_elsewhere)
        claimant = claiming.Claimant(worker, lease_ms, token)
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

    # ── waiting ──────────────────────────────────────────────────────────────────────────

    async def wait(self, queues: Sequence[str], *, timeout_ms: int) -> bool:
        wanted = frozenset(queues)
        file = self._file
        waiter = Waiter(lambda news: not wanted.isdisjoint(news.runnable))
        # Joined before the look: what is committed in between wakes us.
        file.join(waiter)
        try:
            now_ms = self._clock.now_ms()
            due_ms = await file.read(lambda db: looking.runnable_from_ms(db, queues, now_ms))
            if due_ms is not None and due_ms <= now_ms:
                return True
            until_due = timeout_ms if due_ms is None else min(due_ms - now_ms, timeout_ms)
            return await waiter.sleep(until_due / 1000) or until_due < timeout_ms
        finally:
            file.leave(waiter)

    async def notices(self, worker: str, *, timeout_ms: int) -> Sequence[Notice]:
        return await self._look_until(
            timeout_ms,
            concerns=lambda news: news.cancelling,
            look=lambda: self._file.read(lambda db: looking.notices(db, worker)),
            enough=bool,
        )

    async def events(self, queue: str, *, after: str | None, limit: int, timeout_ms: int) -> EventPage:
        return await self._look_until(
            timeout_ms if after is not None else 0,
            concerns=lambda news: queue in news.told,
            look=lambda: self._file.read(lambda db: looking.events(db, queue, after, limit)),
            enough=lambda page: bool(page.events or page.gap),
        )

    async def _look_until(
        self,
        timeout_ms: int,
        *,
        concerns: Callable[[News], bool],
        look: Callable[[], Awaitable[T]],
        enough: Callable[[T], bool],
    ) -> T:
        """Look, and look again at each news that concerns us, until there is enough or no time left."""
        file = self._file
        waiter = Waiter(concerns)
        deadline_ms = self._clock.mono_ms() + timeout_ms
        file.join(waiter)
        try:
            while True:
                found = await look()
                left_ms = deadline_ms - self._clock.mono_ms()
                if enough(found) or left_ms <= 0 or not await waiter.sleep(left_ms / 1000):
                    return found
        finally:
            file.leave(waiter)

    # ── steering ─────────────────────────────────────────────────────────────────────────

    async def cancel(self, ref: JobRef, *, reason: str) -> Cancellation:
        return await self._write(lambda tx: steering.cancel(tx, ref, reason))

    async def retry(self, ref: JobRef) -> None:
        await self._write(lambda tx: steering.retry(tx, ref))

    async def retry_all(self, queue: str, state: State, *, limit: int) -> int:
        return await self._in_portions(limit, lambda tx, n: steering.retry_all(tx, queue, state, n))

    async def promote(self, ref: JobRef) -> None:
        await self._write(lambda tx: steering.promote(tx, ref))

    async def change_delay(self, ref: JobRef, delay_ms: int) -> None:
        await self._write(lambda tx: steering.change_delay(tx, ref, delay_ms))

    async def change_priority(self, ref: JobRef, priority: int) -> None:
        await self._write(lambda tx: steering.change_priority(tx, ref, priority))

    async def remove(self, ref: JobRef) -> None:
        await self._write(lambda tx: steering.remove(tx, ref))

    async def update_data(self, ref: JobRef, data: bytes) -> None:
        await self._write(lambda tx: steering.update_data(tx, ref, data))

    async def set_progress(self, ref: JobRef, progress: bytes) -> None:
        await self._write(lambda tx: steering.set_progress(tx, ref, progress))

    async def add_log(self, ref: JobRef, lines: Sequence[str]) -> int:
        return await self._write(lambda tx: steering.log(tx, ref, lines))

    # ── durable steps ────────────────────────────────────────────────────────────────────

    async def append_journal(
        self, ref: JobRef, entries: Sequence[JournalEntry], *, epoch: int
    ) -> Sequence[JournalEntry]:
        return await self._write(lambda tx: journaling.append(tx, ref, entries, epoch))

    async def read_journal(self, ref: JobRef, *, start: int = 0, limit: int = 1_000) -> JournalPage:
        return await self._file.read(lambda db: journaling.read(db, ref, start, limit))

    async def receive(self, ref: JobRef, entry: JournalEntry, *, epoch: int) -> JournalEntry | None:
        return await self._write(lambda tx: journaling.receive(tx, ref, entry, epoch))

    async def fork_journal(self, ref: JobRef, at: int, to: JobRef) -> int:
        return await self._write(lambda tx: journaling.fork(tx, ref, at, to))

    async def forget_journal(self, ref: JobRef) -> None:
        await self._write(lambda tx: journaling.forget(tx, ref))

    async def signal(self, ref: JobRef, name: str, payload: bytes, *, request: str) -> Delivery:
        return await self._write(
            lambda tx: answer_signal(tx, request, lambda: journaling.signal(tx, ref, name, payload))
        )

    # ── steering a queue ─────────────────────────────────────────────────────────────────

    async def pause(self, queue: str) -> None:
        await self._write(lambda tx: steering.pause(tx, queue))

    async def resume(self, queue: str) -> None:
        await self._write(lambda tx: steering.resume(tx, queue))

    async def drain(self, queue: str, *, delayed: bool) -> int:
        return await self._in_portions(None, lambda tx, _: steering.drain(tx, queue, delayed=delayed))

    async def clean(self, queue: str, state: State, *, older_than_ms: int, limit: int) -> int:
        return await self._in_portions(limit, lambda tx, n: steering.clean(tx, queue, state, older_than_ms, n))

    async def obliterate(self, queue: str, *, force: bool) -> None:
        while not await self._write(lambda tx: steering.obliterate(tx, queue, force=force)):
            pass

    async def _in_portions(self, limit: int | None, move: Callable[[Transaction, int], int]) -> int:
        """Move many jobs in commits of bounded size, so that others get their turn in between."""
        moved = 0
        while limit is None or moved < limit:
            portion = steering.BULK if limit is None else min(steering.BULK, limit - moved)
            some = await self._write(lambda tx, portion=portion: move(tx, portion))  # type: ignore[misc]
            moved += some
            if some < portion:
                break
        return moved

    # ── limits and groups ────────────────────────────────────────────────────────────────

    async def set_limits(self, queue: str, limits: QueueLimits) -> None:
        await self._write(lambda tx: limiting.set_limits(tx, queue, limits))

    async def limits(self, queue: str) -> QueueStanding:
        now_ms = self._clock.now_ms()
        return await self._file.read(lambda db: limiting.standing(db, looking.existing_queue(db, queue), now_ms))

    async def set_group(self, queue: str, group: str, limits: GroupLimits | None) -> None:
        await self._write(lambda tx: limiting.set_group(tx, queue, group, limits))

    async def set_group_default(self, queue: str, limits: GroupLimits) -> None:
        await self._write(lambda tx: limiting.set_group_default(tx, queue, limits))

    async def pause_group(self, queue: str, group: str) -> None:
        await self._write(lambda tx: limiting.pause_group(tx, queue, group))

    async def resume_group(self, queue: str, group: str) -> None:
        await self._write(lambda tx: limiting.resume_group(tx, queue, group))

    async def group(self, queue: str, group: str) -> GroupInfo:
        now_ms = self._clock.now_ms()
        return await self._file.read(lambda db: limiting.group(db, looking.existing_queue(db, queue), group, now_ms))

    async def groups(self, queue: str, *, limit: int, cursor: str | None = None) -> GroupPage:
        now_ms = self._clock.now_ms()
        return await self._file.read(
            lambda db: limiting.groups(db, looking.existing_queue(db, queue), limit, cursor, now_ms)
        )

    # ── schedules ────────────────────────────────────────────────────────────────────────

    async def put_schedule(
        self, schedule: Schedule, *, next_ms: int | None, seen_ms: int | None, count: int = 1, paused: bool = False
    ) -> ScheduleOutcome:
        return await self._write(lambda tx: scheduling.put(tx, schedule, next_ms, seen_ms, count=count, paused=paused))

    async def start_tick(self, lease: Lease) -> TickStart:
        return await self._write(lambda tx: scheduling.start_tick(tx, lease, tick_of(lease.ref.id)))

    async def advance_schedule(self, queue: str, schedule_id: str, *, tick_ms: int, next_ms: int | None) -> bool:
        return await self._write(lambda tx: scheduling.advance(tx, queue, schedule_id, tick_ms, next_ms))

    async def remove_schedule(self, queue: str, schedule_id: str) -> None:
        await self._write(lambda tx: scheduling.remove(tx, queue, schedule_id))

    async def schedule(self, queue: str, schedule_id: str) -> ScheduleRecord:
        return await self._file.read(lambda db: scheduling.one(db, queue, schedule_id))

    async def schedules(self, queue: str) -> Sequence[ScheduleRecord]:
        return await self._file.read(lambda db: scheduling.all_of(db, queue))

    async def idle_schedules(self, queues: Sequence[str]) -> Sequence[ScheduleRecord]:
        return await self._file.read(lambda db: scheduling.idle(db, queues, self._clock.now_ms()))

    # ── looking ──────────────────────────────────────────────────────────────────────────

    async def job(self, ref: JobRef) -> JobRecord:
        return await self._file.read(lambda db: looking.job(db, ref))

    async def look(self, queue: str, ids: Sequence[str]) -> Sequence[JobRecord | None]:
        return await self._file.read(lambda db: looking.look(db, queue, ids))

    async def jobs(
        self, queue: str, state: State, *, limit: int, cursor: str | None = None, newest_first: bool = False
    ) -> JobPage:
        return await self._file.read(
            lambda db: looking.jobs(db, queue, state, limit, cursor, newest_first=newest_first)
        )

    async def children(self, ref: JobRef, *, limit: int = 1_000, cursor: str | None = None) -> ChildPage:
        return await self._file.read(lambda db: looking.children(db, ref, limit, cursor))

    async def logs(self, ref: JobRef, *, start: int = 0, limit: int = 1_000) -> LogPage:
        return await self._file.read(lambda db: looking.logs(db, ref, start, limit))

    async def counts(self, queue: str) -> Counts:
        return await self._file.read(lambda db: looking.counts(db, queue))

    async def queues(self) -> Sequence[str]:
        return await self._file.read(looking.queues)

    async def oldest_waiting_ms(self, queue: str) -> int | None:
        return await self._file.read(lambda db: looking.oldest_waiting_ms(db, queue))

    # ── workers ──────────────────────────────────────────────────────────────────────────

    async def beat(self, info: WorkerInfo, *, ttl_ms: int) -> None:
        await self._write(lambda tx: leasing.beat(tx, info, ttl_ms))

    async def workers(self) -> Sequence[WorkerInfo]:
        return await self._file.read(lambda db: looking.workers(db, self._clock.now_ms()))

    # ── moving ───────────────────────────────────────────────────────────────────────────

    async def export_jobs(self, queue: str, state: State, *, limit: int) -> Sequence[SavedJob]:
        return await self._file.read(lambda db: exporting.export_jobs(db, queue, state, limit))

    async def export_memory(self, queue: str, *, limit: int, cursor: str | None = None) -> MemoryPage:
        now_ms = self._clock.now_ms()
        return await self._file.read(lambda db: exporting.export_memory(db, queue, limit, cursor, now_ms))

    async def depart(self, queue: str, ids: Sequence[str]) -> Sequence[str]:
        return await self._write(lambda tx: exporting.depart(tx, queue, ids))

    async def begin_move(self, queue: str, move: Move) -> None:
        await self._write(lambda tx: restoring.begin_move(tx, queue, move))

    async def restore(self, queue: str, cargo: Cargo, *, run: str) -> int:
        return await self._write(lambda tx: restoring.restore(tx, queue, cargo, run))
