"""Moves that many promises start from: a job added, claimed, settled, two verbs at once."""

import asyncio
import contextlib
import uuid
from collections.abc import Awaitable
from typing import TypeVar

from bullpen.errors import BullpenError
from bullpen.job.events import Event, EventKind
from bullpen.job.record import ClaimedJob, Failure, JobRef, Lease
from bullpen.job.spec import JobSpec, NewJob
from bullpen.job.state import State
from bullpen.job.verdicts import Completed, Failed, Settlement, Verdict
from bullpen.stores.base import Added, SettleOutcome, Store
from bullpen.testing.harness import Harness

A = TypeVar("A")
B = TypeVar("B")

MAIL = "mail"
WORKER = "worker-1"
LEASE_MS = 30_000
DAY_MS = 86_400_000
PATIENCE_S = 20
"""The longest that a test waits for what must come; never how long it takes."""
ROUNDS = 10
"""How often a race is run, with the two sides starting first in turn."""
BOOM = Failure("boom", type="ValueError", stack="Traceback: boom")


def fresh_request() -> str:
    return uuid.uuid4().hex


# ── adding ───────────────────────────────────────────────────────────────────────────────


async def add(store: Store, *jobs: NewJob) -> list[Added]:
    return list(await store.add(jobs, request=fresh_request()))


async def add_one(
    store: Store,
    queue: str = MAIL,
    *,
    name: str = "welcome",
    data: bytes = b"{}",
    own_id: str | None = None,
    spec: JobSpec | None = None,
) -> JobRef:
    (added,) = await add(store, NewJob(queue, name, data, own_id, spec or JobSpec()))
    return JobRef(queue, added.id)


async def add_many(store: Store, count: int, queue: str = MAIL, *, spec: JobSpec | None = None) -> list[JobRef]:
    added = await add(store, *[NewJob(queue, "welcome", spec=spec or JobSpec())] * count)
    return [JobRef(queue, one.id) for one in added]


# ── working ──────────────────────────────────────────────────────────────────────────────


async def claim(
    store: Store, count: int = 1, queue: str = MAIL, *, worker: str = WORKER, lease_ms: int = LEASE_MS
) -> tuple[ClaimedJob, ...]:
    claimed = await store.claim({queue: count}, worker=worker, lease_ms=lease_ms, request=fresh_request())
    return claimed.jobs


async def claim_one(store: Store, queue: str = MAIL, *, worker: str = WORKER, lease_ms: int = LEASE_MS) -> ClaimedJob:
    (claimed,) = await claim(store, 1, queue, worker=worker, lease_ms=lease_ms)
    return claimed


async def claim_ids(store: Store, count: int = 100, queue: str = MAIL) -> list[str]:
    """The ids of all that can be had, in the order in which they are given out."""
    return [claimed.job.id for claimed in await claim(store, count, queue)]


async def settle_one(store: Store, lease: Lease, verdict: Verdict) -> SettleOutcome:
    (outcome,) = await store.settle([Settlement(lease, verdict)], request=fresh_request())
    return outcome


async def run_one(store: Store, verdict: Verdict, queue: str = MAIL) -> JobRef:
    """Claim the next job and settle it so."""
    claimed = await claim_one(store, queue)
    assert await settle_one(store, claimed.lease, verdict) == SettleOutcome.SETTLED
    return claimed.lease.ref


async def complete_one(store: Store, queue: str = MAIL) -> JobRef:
    return await run_one(store, Completed(), queue)


async def fail_one(store: Store, queue: str = MAIL) -> JobRef:
    return await run_one(store, Failed(BOOM), queue)


# ── looking ──────────────────────────────────────────────────────────────────────────────


async def state_of(store: Store, ref: JobRef) -> State:
    return (await store.job(ref)).state


async def ids_in(store: Store, state: State, queue: str = MAIL) -> list[str]:
    return [job.id for job in (await store.jobs(queue, state, limit=1_000)).jobs]


async def end_of_log(store: Store, queue: str = MAIL) -> str:
    return (await store.events(queue, after=None, limit=1, timeout_ms=0)).cursor


async def events_since(store: Store, cursor: str, queue: str = MAIL) -> list[Event]:
    """All events after the cursor, none of them dropped."""
    events: list[Event] = []
    while True:
        page = await store.events(queue, after=cursor, limit=1_000, timeout_ms=0)
        assert not page.gap
        if not page.events:
            return events
        events += page.events
        cursor = page.cursor


async def kinds_since(store: Store, cursor: str, queue: str = MAIL) -> list[EventKind]:
    return [event.kind for event in await events_since(store, cursor, queue)]


# ── at once ──────────────────────────────────────────────────────────────────────────────


async def race(first: Awaitable[A], second: Awaitable[B], *, turn: int) -> tuple[A | BullpenError, B | BullpenError]:
    """Do both at once; the answer of each, or its refusal. On odd turns the second one starts."""
    async with asyncio.timeout(PATIENCE_S), asyncio.TaskGroup() as tasks:
        if turn % 2:
            later = tasks.create_task(_answer(second))
            sooner = tasks.create_task(_answer(first))
        else:
            sooner = tasks.create_task(_answer(first))
            later = tasks.create_task(_answer(second))
    return sooner.result(), later.result()


async def crash_during(harness: Harness, store: Store, verb: Awaitable[object]) -> None:
    """Kill the store's process while this verb is on its way: its answer never arrives."""
    async with asyncio.timeout(PATIENCE_S), asyncio.TaskGroup() as tasks:
        answer = tasks.create_task(_answer(verb))
        await asyncio.sleep(0)  # one step of the loop: asked, and not yet answered
        await harness.crash(store)
        answer.cancel()


async def _answer(verb: Awaitable[A]) -> A | BullpenError:
    try:
        return await verb
    except BullpenError as refusal:
        return refusal


async def leave_behind(harness: Harness, store: Store) -> Store:
    """Kill the process of this store and let its leases run out; the store of one that lives on."""
    await harness.crash(store)
    with contextlib.suppress(BullpenError):
        await store.close()
    await harness.advance(LEASE_MS + 1)
    return await harness.open()
