"""Moves of queues that promises start from: MAIL goes to POST, another queue of the same place."""

from collections.abc import Sequence

import msgspec

from bullpen.job.record import CrashKind
from bullpen.job.spec import Backoff, Dedup, JobSpec, Keep
from bullpen.job.state import State
from bullpen.job.verdicts import Failed, Postponed, Released, Retry, Verdict
from bullpen.stores.base import Store
from bullpen.stores.moving import Cargo, MemoryPage, Move, SavedJob
from bullpen.testing.conformance.moves import (
    BOOM,
    MAIL,
    add_one,
    claim,
    complete_one,
    run_one,
    settle_one,
)

POST = "post"
LAST_ID = 1_000
"""No source of these tests gives out more. Both sides may number by one counter here, so it is not asked for."""
STATES = (State.WAITING, State.PRIORITIZED, State.DELAYED, State.FAILED, State.COMPLETED)
_RICH = JobSpec(
    priority=3,
    attempts=7,
    backoff=Backoff("exponential", 500, 0.5, 60_000),
    timeout_ms=9_000,
    tenant="acme",
    workspace="research",
    tags=("a", "b"),
    headers={"trace": "1"},
    keep_completed=Keep(count=5, age_ms=1_500),
    keep_failed=Keep(count=3),
    keep_logs=3,
    keep_stacks=2,
)


async def begin(store: Store, *, run: str = "run", origin: str = MAIL, paused: bool = False) -> None:
    await store.begin_move(POST, Move(origin=origin, run=run, last_id=LAST_ID, paused=paused))


async def restore(store: Store, *jobs: SavedJob, run: str = "run", departed: Sequence[str] = ()) -> int:
    return await store.restore(POST, Cargo(jobs=jobs, departed=tuple(departed)), run=run)


async def depart(store: Store, *jobs: SavedJob) -> list[str]:
    """Let these go from MAIL, as they were exported."""
    return list(await store.depart(MAIL, [job.id for job in jobs], signals={job.id: len(job.signals) for job in jobs}))


async def export_all(store: Store) -> list[SavedJob]:
    return [job for state in STATES for job in await store.export_jobs(MAIL, state, limit=100)]


async def move_all(store: Store) -> None:
    """All jobs and memories of MAIL, with POST begun already."""
    for page in await memory_of(store):
        await store.restore(POST, Cargo(ids=page.ids, subjects=page.subjects), run="run")
    jobs = await export_all(store)
    await restore(store, *jobs)
    await depart(store, *jobs)


async def memory_of(store: Store, queue: str = MAIL, limit: int = 100) -> list[MemoryPage]:
    pages = [await store.export_memory(queue, limit=limit)]
    while (cursor := pages[-1].next_cursor) is not None:
        pages.append(await store.export_memory(queue, limit=limit, cursor=cursor))
    return pages


async def fill(store: Store) -> None:
    """Something of everything, each job with a past."""
    waiting = await add_one(store, name="first", data='{"ü":"…"}'.encode())
    await add_one(store, own_id="own-1", spec=msgspec.structs.replace(_RICH, priority=0, start_by_ms=10**14))
    failed = await add_one(store, name="failing", spec=_RICH)
    await store.add_log(waiting, ["one", "two"])
    await store.set_progress(waiting, b'{"done":1}')
    await run_one(store, Released(CrashKind.KILLED))
    held = await claim(store, 3)
    verdicts: dict[str, Verdict] = {
        waiting.id: Retry(BOOM),
        "own-1": Postponed(90_000, "the rate limit"),
        failed.id: Failed(BOOM),
    }
    for one in held:
        await settle_one(store, one.lease, verdicts[one.job.id])
    await store.add_log(failed, ["a", "b", "c", "d"])
    await complete_one(store)
    await add_one(store, spec=_RICH)
    await add_one(store, spec=JobSpec(delay_ms=60_000, dedup=Dedup("subject")))
    await add_one(store, own_id="acme:1:x")
