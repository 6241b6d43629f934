"""The operations whose cost is watched as a queue grows: each is asked of the store itself, without a worker."""

import itertools
from collections.abc import Awaitable, Callable
from typing import Any

import msgspec

from bullpen import JobOptions, NewJob, Queue, keep
from bullpen.job.record import ClaimedJob, CrashLimits, JobRef
from bullpen.job.schedule import Schedule, ScheduleRecord, Timing, tick_of
from bullpen.job.state import State
from bullpen.job.verdicts import Completed, Settlement
from bullpen.stores.base import Store
from bullpen.testing import ManualClock

QUEUE = "growing"
TICK_EVERY_MS = 1_000
"""Two schedules are due that far apart, so that each tick is claimed alone."""
BATCHES = (1, 50)
MEETS_MANY = {
    "exchange of 1",
    "page of 20 groups",
    *(f"{verb} of 50" for verb in ("add", "claim", "exchange", "settle")),
}
"""Operations that meet several groups where there are several, and one where there is one."""
LEASE_MS = 3_600_000
_PAGE = 20
_TICKS = ("claim a due tick", "start a tick", "add the next tick", "settle a tick")
_LOOKS = (
    "counts",
    "oldest waiting",
    "wait, with work there",
    "rescue, with nothing lost",
    "look for idle schedules",
    "page of 20 waiting",
    "page of 20 completed",
    "page of 20 groups",
    "one job",
    "remove a job",
)

Ask = Callable[[str, Callable[[], Awaitable[Any]]], Awaitable[Any]]
"""Does an operation under a name: timed, counted, or plainly."""


class Line:
    """A queue on a store whose clock we move, and how its jobs are made."""

    def __init__(self, store: Store, clock: ManualClock, *, kept: int | None) -> None:
        self.store = store
        self.clock = clock
        self._queue = Queue(store, QUEUE, defaults=JobOptions(keep_completed=keep(kept)), clock=clock)
        self._requests = (f"request-{n}" for n in itertools.count())
        self._groups = 0
        self._turn = itertools.count()

    def next_request(self) -> str:
        return next(self._requests)

    def keep(self, completed: int) -> None:
        """From now on, jobs that complete leave that many behind."""
        self._queue = Queue(self.store, QUEUE, defaults=JobOptions(keep_completed=keep(completed)), clock=self.clock)

    def spread_over(self, groups: int) -> None:
        self._groups = groups

    def new(self, count: int) -> list[NewJob]:
        """Jobs of 200 bytes, of one group after the other."""
        job = self._queue.prepare("noop", {"pad": "x" * 190})
        if not self._groups:
            return [job] * count
        names = (f"tenant-{next(self._turn) % self._groups}" for _ in range(count))
        return [msgspec.structs.replace(job, spec=msgspec.structs.replace(job.spec, group=name)) for name in names]

    async def add(self, count: int) -> None:
        await self.store.add(self.new(count), request=self.next_request())

    async def claim(self, count: int) -> tuple[ClaimedJob, ...]:
        claimed = await self.store.claim({QUEUE: count}, worker="w", lease_ms=LEASE_MS, request=self.next_request())
        return claimed.jobs

    async def settle(self, jobs: tuple[ClaimedJob, ...]) -> None:
        await self.store.settle(_completed(jobs), request=self.next_request())

    async def exchange(self, jobs: tuple[ClaimedJob, ...]) -> tuple[ClaimedJob, ...]:
        answer = await self.store.exchange(
            _completed(jobs), {QUEUE: len(jobs)}, worker="w", lease_ms=LEASE_MS, request=self.next_request()
        )
        return answer.claimed.jobs

    async def put_schedule(self, number: int, next_ms: int) -> None:
        timing = Timing(every_ms=60_000)
        schedule = Schedule(queue=QUEUE, id=f"schedule-{number}", name="tick", timing=timing)
        await self.store.put_schedule(schedule, next_ms=next_ms, seen_ms=None)


def _completed(jobs: tuple[ClaimedJob, ...]) -> list[Settlement]:
    return [Settlement(job.lease, Completed(b"true")) for job in jobs]


def names_of(dimension: str) -> list[str]:
    """The operations that are made along a dimension, in their order."""
    lives = [f"{verb} of {batch}" for batch in BATCHES for verb in ("add", "claim", "exchange", "settle")]
    return [*(_TICKS if dimension == "schedules" else ()), *lives, *_LOOKS]


async def life(line: Line, ask: Ask, batch: int) -> None:
    """Each operation once; as many jobs wait afterwards as before."""
    of = f"of {batch}"
    await ask(f"add {of}", lambda: line.add(batch))
    jobs = await ask(f"claim {of}", lambda: line.claim(batch))
    await line.add(batch)
    jobs = await ask(f"exchange {of}", lambda: line.exchange(jobs))
    await ask(f"settle {of}", lambda: line.settle(jobs))


async def looks(line: Line, ask: Ask) -> None:
    """What workers and those who watch ask again and again; one job is there that can be taken."""
    store = line.store
    (added,) = await store.add(line.new(1), request=line.next_request())
    ref = JobRef(QUEUE, added.id)
    await ask("counts", lambda: store.counts(QUEUE))
    await ask("oldest waiting", lambda: store.oldest_waiting_ms(QUEUE))
    await ask("wait, with work there", lambda: store.wait([QUEUE], timeout_ms=1_000))
    await ask("rescue, with nothing lost", lambda: store.rescue([QUEUE], limits=CrashLimits()))
    await ask("look for idle schedules", lambda: store.idle_schedules([QUEUE]))
    await ask("page of 20 waiting", lambda: store.jobs(QUEUE, State.WAITING, limit=_PAGE))
    await ask("page of 20 completed", lambda: store.jobs(QUEUE, State.COMPLETED, limit=_PAGE))
    await ask("page of 20 groups", lambda: store.groups(QUEUE, limit=_PAGE))
    await ask("one job", lambda: store.job(ref))
    await ask("remove a job", lambda: store.remove(ref))


async def tick(line: Line, ask: Ask, schedules: int) -> None:
    """A schedule's tick is due: its claimant adds the next one. Nothing else waits in this queue."""
    line.clock.advance(TICK_EVERY_MS)
    (job,) = await ask("claim a due tick", lambda: line.claim(1))
    due = tick_of(job.job.id)
    assert due is not None
    record: ScheduleRecord = (await ask("start a tick", lambda: line.store.start_tick(job.lease))).record
    next_ms = record.last_ms + schedules * TICK_EVERY_MS
    await ask(
        "add the next tick",
        lambda: line.store.advance_schedule(QUEUE, due.schedule, tick_ms=due.at_ms, next_ms=next_ms),
    )
    await ask("settle a tick", lambda: line.settle((job,)))
