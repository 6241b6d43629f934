"""Jobs on a Redis server, in BullMQ's own layout: Node and Python share one queue.

Each verb is one script, so each batch is atomic. What a store must know beyond BullMQ stands
in extra fields and keys that BullMQ passes over.
"""

import itertools
import uuid
from collections.abc import Mapping, Sequence

import msgspec

from bullpen.clock import SYSTEM_CLOCK, Clock
from bullpen.job.entries import JournalEntry, JournalPage
from bullpen.job.limits import GroupInfo, GroupLimits, GroupPage, QueueLimits, QueueStanding
from bullpen.job.record import CrashKind, CrashLimits, JobRecord, JobRef, Lease
from bullpen.job.schedule import Schedule, ScheduleRecord
from bullpen.job.spec import NewJob
from bullpen.job.state import State
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
    WorkerState,
)
from bullpen.stores.moving import Cargo, MemoryPage, Move, SavedJob
from bullpen.stores.redis import (
    exporting,
    families,
    journaling,
    limiting,
    looking,
    rescuing,
    restoring,
    scheduling,
    steering,
)
from bullpen.stores.redis.address import parse_address
from bullpen.stores.redis.asking import LeaseTerms, ask_abandon, ask_exchange, ask_renew
from bullpen.stores.redis.client import Client
from bullpen.stores.redis.connection import Connection
from bullpen.stores.redis.diagnosing import greet
from bullpen.stores.redis.eventlog import read_events
from bullpen.stores.redis.keys import Keys
from bullpen.stores.redis.naming import NamedConnections, worker_name
from bullpen.stores.redis.reading import read_exchanged
from bullpen.stores.redis.scripts import ABANDON, BEAT, EXCHANGE, RENEW
from bullpen.stores.redis.site import Site
from bullpen.stores.redis.waiting import wait_for_work

_FACTS = StoreFacts(name="redis", exchanges_in_flight=2)

_encode = msgspec.json.Encoder().encode


class RedisStore:
    def __init__(self, url: str, *, prefix: str | None = None, clock: Clock = SYSTEM_CLOCK) -> None:
        self._url = url
        address = parse_address(url)
        self._prefix = address.choose_prefix(prefix)
        self._keys = Keys(self._prefix)
        self._connection = Connection(address, self._keys.canary)
        self._greeted: Client | None = None
        """Whose server was examined: whoever makes sure that an open store is open asks nothing of it."""
        self._clock = clock
        self._site = Site(self._connection, self._keys, clock)
        self._named = NamedConnections(self._connection)
        self._names: dict[str, set[str]] = {}
        """By which names BullMQ lists the workers that beat here."""
        self._instance = uuid.uuid4().hex
        self._claims = itertools.count(1)

    @property
    def facts(self) -> StoreFacts:
        return _FACTS

    @property
    def clock(self) -> Clock:
        return self._clock

    @property
    def place(self) -> str:
        address = self._connection.address
        return f"{address}, database {address.db}, prefix {self._prefix}"

    async def open(self) -> None:
        await self._connection.open()
        if self._connection.client is self._greeted:
            return
        try:
            await greet(self._connection, self._clock)
        except BaseException:
            await self.close()
            raise
        self._greeted = self._connection.client

    async def close(self) -> None:
        self._names.clear()
        await self._named.close()
        await self._connection.close()

    def another(self) -> "RedisStore":
        return RedisStore(self._url, prefix=self._prefix, clock=self._clock)

    # ── producing and working ────────────────────────────────────────────────────────────

    async def add(self, jobs: Sequence[NewJob], *, request: str) -> Sequence[Added]:
        return await families.add(self._site, jobs, request)

    async def add_children(self, lease: Lease, jobs: Sequence[NewJob], *, request: str) -> Sequence[Added]:
        return await families.add_children(self._site, lease, jobs, request)

    async def claim(
        self,
        wants: Mapping[str, int],
        *,
        worker: str,
        lease_ms: int,
        request: str,
        at_most: int | None = None,
        held_elsewhere: bool = False,  # noqa: ARG002 - as all leases here: no process is watched
    ) -> Claimed:
        exchanged = await self.exchange((), wants, worker=worker, lease_ms=lease_ms, request=request, at_most=at_most)
        return exchanged.claimed

    async def settle(self, settlements: Sequence[Settlement], *, request: str) -> Sequence[SettleOutcome]:
        exchanged = await self.exchange(settlements, {}, worker="", lease_ms=0, request=request)
        return exchanged.settled

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
        now_ms = self._clock.now_ms()
        terms = LeaseTerms(f"{self._instance}:{next(self._claims)}:{now_ms}", worker, lease_ms)
        message = ask_exchange(self._keys, settlements, wants, terms, now_ms, at_most)
        answer = await self._connection.run(EXCHANGE, self._keys.request(request), message)
        return read_exchanged(answer, self._keys)

    async def renew(self, leases: Sequence[Lease], *, lease_ms: int) -> Sequence[Renewal]:
        if not leases:
            return []
        message = ask_renew(self._keys, leases, lease_ms)
        words = await self._connection.run(RENEW, self._keys.meta(leases[0].ref.queue), message)
        return [Renewal(word.decode()) for word in words]

    async def abandon(self, request: str) -> int:
        return int(await self._connection.run(ABANDON, self._keys.request(request), ask_abandon(self._clock.now_ms())))

    async def wait(self, queues: Sequence[str], *, timeout_ms: int) -> bool:
        return await wait_for_work(self._connection, self._keys, self._clock, queues, timeout_ms)

    async def notices(self, worker: str, *, timeout_ms: int) -> Sequence[Notice]:
        return await rescuing.notices(self._site, worker, timeout_ms)

    async def rescue(self, queues: Sequence[str], *, limits: CrashLimits) -> Rescued:
        return await rescuing.rescue(self._site, queues, limits)

    async def report_crash(self, worker: str, kind: CrashKind, *, limits: CrashLimits) -> Rescued:
        return await rescuing.report_crash(self._site, worker, kind, limits)

    # ── steering ─────────────────────────────────────────────────────────────────────────

    async def cancel(self, ref: JobRef, *, reason: str) -> Cancellation:
        return await steering.cancel(self._site, ref, reason)

    async def retry(self, ref: JobRef) -> None:
        await steering.retry(self._site, ref)

    async def retry_all(self, queue: str, state: State, *, limit: int) -> int:
        return await steering.retry_all(self._site, queue, state, limit)

    async def promote(self, ref: JobRef) -> None:
        await steering.promote(self._site, ref)

    async def change_delay(self, ref: JobRef, delay_ms: int) -> None:
        await steering.change_delay(self._site, ref, delay_ms)

    async def change_priority(self, ref: JobRef, priority: int) -> None:
        await steering.change_priority(self._site, ref, priority)

    async def remove(self, ref: JobRef) -> None:
        await steering.remove(self._site, ref)

    async def update_data(self, ref: JobRef, data: bytes) -> None:
        await steering.update_data(self._site, ref, data)

    async def set_progress(self, ref: JobRef, progress: bytes) -> None:
        await steering.set_progress(self._site, ref, progress)

    async def add_log(self, ref: JobRef, lines: Sequence[str]) -> int:
        return await steering.add_log(self._site, ref, lines)

    # ── durable steps ────────────────────────────────────────────────────────────────────

    async def append_journal(
        self, ref: JobRef, entries: Sequence[JournalEntry], *, epoch: int
    ) -> Sequence[JournalEntry]:
        return await journaling.append(self._site, ref, entries, epoch)

    async def read_journal(self, ref: JobRef, *, start: int = 0, limit: int = 1_000) -> JournalPage:
        return await journaling.read(self._site, ref, start, limit)

    async def receive(self, ref: JobRef, entry: JournalEntry, *, epoch: int) -> JournalEntry | None:
        return await journaling.receive(self._site, ref, entry, epoch)

    async def fork_journal(self, ref: JobRef, at: int, to: JobRef) -> int:
        return await journaling.fork(self._site, ref, at, to)

    async def forget_journal(self, ref: JobRef) -> None:
        await journaling.forget(self._site, ref)

    async def signal(self, ref: JobRef, name: str, payload: bytes, *, request: str) -> Delivery:
        return await journaling.signal(self._site, ref, name, payload, request)

    # ── steering a queue ─────────────────────────────────────────────────────────────────

    async def pause(self, queue: str) -> None:
        await steering.pause(self._site, queue)

    async def resume(self, queue: str) -> None:
        await steering.resume(self._site, queue)

    async def drain(self, queue: str, *, delayed: bool) -> int:
        return await steering.drain(self._site, queue, delayed=delayed)

    async def clean(self, queue: str, state: State, *, older_than_ms: int, limit: int) -> int:
        return await steering.clean(self._site, queue, state, older_than_ms, limit)

    async def obliterate(self, queue: str, *, force: bool) -> None:
        await steering.obliterate(self._site, queue, force=force)

    # ── limits and groups ────────────────────────────────────────────────────────────────

    async def set_limits(self, queue: str, limits: QueueLimits) -> None:
        await limiting.set_limits(self._site, queue, limits)

    async def limits(self, queue: str) -> QueueStanding:
        return await limiting.limits(self._site, queue)

    async def set_group(self, queue: str, group: str, limits: GroupLimits | None) -> None:
        await limiting.set_group(self._site, queue, group, limits)

    async def set_group_default(self, queue: str, limits: GroupLimits) -> None:
        await limiting.set_group_default(self._site, queue, limits)

    async def pause_group(self, queue: str, group: str) -> None:
        await limiting.pause_group(self._site, queue, group, paused=True)

    async def resume_group(self, queue: str, group: str) -> None:
        await limiting.pause_group(self._site, queue, group, paused=False)

    async def group(self, queue: str, group: str) -> GroupInfo:
        return await limiting.group(self._site, queue, group)

    async def groups(self, queue: str, *, limit: int, cursor: str | None = None) -> GroupPage:
        return await limiting.groups(self._site, queue, limit, cursor)

    # ── schedules ────────────────────────────────────────────────────────────────────────

    async def put_schedule(
        self, schedule: Schedule, *, next_ms: int | None, seen_ms: int | None, count: int = 1, paused: bool = False
    ) -> ScheduleOutcome:
        return await scheduling.put(self._site, schedule, next_ms, seen_ms, count=count, paused=paused)

    async def start_tick(self, lease: Lease) -> TickStart:
        return await scheduling.start_tick(self._site, lease)

    async def advance_schedule(self, queue: str, schedule_id: str, *, tick_ms: int, next_ms: int | None) -> bool:
        return await scheduling.advance(self._site, queue, schedule_id, tick_ms, next_ms)

    async def remove_schedule(self, queue: str, schedule_id: str) -> None:
        await scheduling.remove(self._site, queue, schedule_id)

    async def schedule(self, queue: str, schedule_id: str) -> ScheduleRecord:
        return await scheduling.one(self._site, queue, schedule_id)

    async def schedules(self, queue: str) -> Sequence[ScheduleRecord]:
        return await scheduling.all_of(self._site, queue)

    async def idle_schedules(self, queues: Sequence[str]) -> Sequence[ScheduleRecord]:
        return await scheduling.idle(self._site, queues)

    # ── looking ──────────────────────────────────────────────────────────────────────────

    async def job(self, ref: JobRef) -> JobRecord:
        return await looking.job(self._site, ref)

    async def look(self, queue: str, ids: Sequence[str]) -> Sequence[JobRecord | None]:
        return await looking.look(self._site, queue, ids)

    async def jobs(
        self, queue: str, state: State, *, limit: int, cursor: str | None = None, newest_first: bool = False
    ) -> JobPage:
        return await looking.jobs(self._site, queue, state, limit, cursor, newest_first=newest_first)

    async def logs(self, ref: JobRef, *, start: int = 0, limit: int = 1_000) -> LogPage:
        return await looking.logs(self._site, ref, start, limit)

    async def children(self, ref: JobRef, *, limit: int = 1_000, cursor: str | None = None) -> ChildPage:
        return await families.children(self._site, ref, limit, cursor)

    async def counts(self, queue: str) -> Counts:
        return await looking.counts(self._site, queue)

    async def queues(self) -> Sequence[str]:
        return await looking.queues(self._site)

    async def oldest_waiting_ms(self, queue: str) -> int | None:
        return await looking.oldest_waiting_ms(self._site, queue)

    async def events(self, queue: str, *, after: str | None, limit: int, timeout_ms: int) -> EventPage:
        return await read_events(self._connection, self._keys.events(queue), after, limit, timeout_ms)

    # ── workers ──────────────────────────────────────────────────────────────────────────

    async def beat(self, info: WorkerInfo, *, ttl_ms: int) -> None:
        now_ms = self._clock.now_ms()
        words = _encode(msgspec.structs.replace(info, beat_ms=now_ms))
        keys = self._keys
        await self._connection.run(
            BEAT, keys.workers, keys.worker_infos, info.name, words, str(now_ms), str(now_ms + ttl_ms)
        )
        await self._show_names(info)

    async def _show_names(self, info: WorkerInfo) -> None:
        is_gone = info.state == WorkerState.STOPPED
        queues = () if is_gone else info.queues
        self._names[info.name] = {worker_name(self._prefix, queue, info.name) for queue in queues}
        await self._named.keep(set().union(*self._names.values()))

    async def workers(self) -> Sequence[WorkerInfo]:
        return await looking.workers(self._site)

    # ── moving ───────────────────────────────────────────────────────────────────────────

    async def export_jobs(self, queue: str, state: State, *, limit: int) -> Sequence[SavedJob]:
        return await exporting.export_jobs(self._site, queue, state, limit)

    async def export_memory(self, queue: str, *, limit: int, cursor: str | None = None) -> MemoryPage:
        return await exporting.export_memory(self._site, queue, limit, cursor)

    async def depart(self, queue: str, ids: Sequence[str]) -> Sequence[str]:
        return await exporting.depart(self._site, queue, ids)

    async def begin_move(self, queue: str, move: Move) -> None:
        await restoring.begin_move(self._site, queue, move)

    async def restore(self, queue: str, cargo: Cargo, *, run: str) -> int:
        return await restoring.restore(self._site, queue, cargo, run)
