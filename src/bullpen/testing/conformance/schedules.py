"""Moves with schedules that promises start from."""

from bullpen.job.record import ClaimedJob, JobRef
from bullpen.job.schedule import Overlap, Schedule, Tick, Timing
from bullpen.job.spec import JobSpec
from bullpen.stores.base import ScheduleOutcome, Store
from bullpen.testing.conformance.moves import MAIL, claim_one
from bullpen.testing.harness import Harness

EVERY_MS = 60_000
SWEEP = "sweep"


def schedule_of(schedule_id: str = SWEEP, *, overlap: Overlap = Overlap.SKIP, **timing: int) -> Schedule:
    return Schedule(
        queue=MAIL,
        id=schedule_id,
        name="clean-up",
        data=b'{"deep":true}',
        spec=JobSpec(priority=3, attempts=2, tenant="acme"),
        timing=Timing(**{"every_ms": EVERY_MS, **timing}),  # type: ignore[arg-type]  # all are numbers here
        overlap=overlap,
    )


async def put_new(harness: Harness, store: Store, schedule: Schedule | None = None, *, in_ms: int = EVERY_MS) -> int:
    """A new schedule, and the time of its first tick."""
    next_ms = harness.clock.now_ms() + in_ms
    assert await store.put_schedule(schedule or schedule_of(), next_ms=next_ms, seen_ms=None) == ScheduleOutcome.DONE
    return next_ms


async def claim_tick(harness: Harness, store: Store, at_ms: int) -> ClaimedJob:
    await harness.advance(max(0, at_ms + 1 - harness.clock.now_ms()))
    claimed = await claim_one(store)
    assert claimed.job.tick == Tick(SWEEP, at_ms)
    return claimed


async def advance_to(store: Store, tick_ms: int, next_ms: int | None) -> bool:
    return await store.advance_schedule(MAIL, SWEEP, tick_ms=tick_ms, next_ms=next_ms)


def tick_ref(at_ms: int) -> JobRef:
    return JobRef(MAIL, Tick(SWEEP, at_ms).job_id)
