"""Jobs on a Redis server, in BullMQ's own layout: Node and Python share one queue.

Each verb is one script, so each batch is atomic. What a store must know beyond BullMQ stands
in extra fields and keys that BullMQ passes over.
"""

import itertools
import uuid
from collections.abc import Mapping, Sequence

from bullpen.clock import SYSTEM_CLOCK, Clock
from bullpen.errors import JobMissing, QueueMissing
from bullpen.job.record import JobRecord, JobRef, Lease
from bullpen.job.spec import NewJob
from bullpen.job.state import State
from bullpen.job.verdicts import Settlement
from bullpen.stores.base import (
    Added,
    Claimed,
    Counts,
    EventPage,
    Exchanged,
    Renewal,
    SettleOutcome,
    StoreFacts,
)
from bullpen.stores.redis.asking import LeaseTerms, ask_abandon, ask_add, ask_exchange, ask_renew
from bullpen.stores.redis.connection import Connection
from bullpen.stores.redis.eventlog import read_events
from bullpen.stores.redis.keys import Keys
from bullpen.stores.redis.pending import VerbsToCome
from bullpen.stores.redis.reading import read_added, read_exchanged, read_record
from bullpen.stores.redis.scripts import ABANDON, ADD, COUNTS, EXCHANGE, JOB, PAUSE, RENEW, RESUME
from bullpen.stores.redis.waiting import wait_for_work

_FACTS = StoreFacts(name="redis", exchanges_in_flight=2)
_SCAN_COUNT = "1000"


class RedisStore(VerbsToCome):
    def __init__(self, url: str, *, prefix: str = "bull", clock: Clock = SYSTEM_CLOCK) -> None:
        self._url = url
        self._prefix = prefix
        self._connection = Connection(url)
        self._keys = Keys(prefix)
        self._clock = clock
        self._instance = uuid.uuid4().hex
        self._claims = itertools.count(1)

    @property
    def facts(self) -> StoreFacts:
        return _FACTS

    @property
    def clock(self) -> Clock:
        return self._clock

    async def open(self) -> None:
        await self._connection.open()

    async def close(self) -> None:
        await self._connection.close()

    def another(self) -> "RedisStore":
        return RedisStore(self._url, prefix=self._prefix, clock=self._clock)

    # ── producing and working ────────────────────────────────────────────────────────────

    async def add(self, jobs: Sequence[NewJob], *, request: str) -> Sequence[Added]:
        message = ask_add(self._keys, jobs, self._clock.now_ms())
        return read_added(await self._connection.run(ADD, self._keys.request(request), message))

    async def claim(self, wants: Mapping[str, int], *, worker: str, lease_ms: int, request: str) -> Claimed:
        exchanged = await self.exchange((), wants, worker=worker, lease_ms=lease_ms, request=request)
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
    ) -> Exchanged:
        terms = LeaseTerms(f"{self._instance}:{next(self._claims)}", worker, lease_ms)
        message = ask_exchange(self._keys, settlements, wants, terms, self._clock.now_ms())
        answer = await self._connection.run(EXCHANGE, self._keys.request(request), message)
        return read_exchanged(answer, self._keys)

    async def renew(self, leases: Sequence[Lease], *, lease_ms: int) -> Sequence[Renewal]:
        if not leases:
            return []
        message = ask_renew(self._keys, leases, lease_ms)
        words = await self._connection.run(RENEW, self._keys.meta(leases[0].ref.queue), message)
        return [Renewal(word.decode()) for word in words]

    async def abandon(self, request: str) -> int:
        return int(await self._connection.run(ABANDON, self._keys.request(request), ask_abandon()))

    async def wait(self, queues: Sequence[str], *, timeout_ms: int) -> bool:
        return await wait_for_work(self._connection, self._keys, self._clock, queues, timeout_ms)

    # ── steering a queue ─────────────────────────────────────────────────────────────────

    async def pause(self, queue: str) -> None:
        await self._connection.run(PAUSE, self._keys.meta(queue), self._keys.base(queue))

    async def resume(self, queue: str) -> None:
        word = await self._connection.run(RESUME, self._keys.meta(queue), self._keys.base(queue))
        if word == b"missing":
            raise QueueMissing(f"no queue named {queue!r}")

    # ── looking ──────────────────────────────────────────────────────────────────────────

    async def job(self, ref: JobRef) -> JobRecord:
        found = await self._connection.run(JOB, self._keys.meta(ref.queue), self._keys.base(ref.queue), ref.id)
        if not found:
            raise JobMissing(f"no job {ref.id!r} in queue {ref.queue!r}")
        state, run_at_ms, fields = found
        return read_record(ref, State(state.decode()), run_at_ms if isinstance(run_at_ms, int) else None, fields)

    async def counts(self, queue: str) -> Counts:
        found = await self._connection.run(COUNTS, self._keys.meta(queue), self._keys.base(queue))
        if not found:
            raise QueueMissing(f"no queue named {queue!r}")
        waiting, prioritized, delayed, active, waiting_children, completed, failed, word = found
        return Counts(
            waiting=waiting,
            prioritized=prioritized,
            delayed=delayed,
            active=active,
            waiting_children=waiting_children,
            completed=completed,
            failed=failed,
            paused=word == b"paused",
        )

    async def queues(self) -> Sequence[str]:
        # BullMQ keeps no list of queues, and Node may have made some that we never touched.
        found: list[bytes] = []
        cursor = b"0"
        while True:
            cursor, keys = await self._connection.command(
                "SCAN", cursor, "MATCH", self._keys.any_meta, "COUNT", _SCAN_COUNT
            )
            found += keys
            if int(cursor) == 0:
                return self._keys.queue_names(found)
            cursor = str(int(cursor)).encode()

    async def events(self, queue: str, *, after: str | None, limit: int, timeout_ms: int) -> EventPage:
        return await read_events(self._connection, self._keys.events(queue), after, limit, timeout_ms)
