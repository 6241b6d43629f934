"""Promises of `wait_and_claim`: what comes while a worker waits is claimed, and nothing that it gives up."""

import asyncio
from collections.abc import Awaitable

from bullpen.job.spec import JobSpec
from bullpen.job.state import State
from bullpen.job.verdicts import Completed
from bullpen.stores.base import Counts, Exchanged, SettleOutcome, Store
from bullpen.testing.conformance.moves import (
    LEASE_MS,
    MAIL,
    PATIENCE_S,
    ROUNDS,
    WORKER,
    add_many,
    add_one,
    claim_ids,
    claim_one,
    fresh_request,
    settle_one,
)
from bullpen.testing.harness import Harness

_LONG_MS = 600_000


async def _expect(
    store: Store, wants: dict[str, int] | None = None, *, timeout_ms: int = _LONG_MS, request: str = ""
) -> Exchanged:
    return await store.wait_and_claim(
        wants or {MAIL: 1},
        worker=WORKER,
        lease_ms=LEASE_MS,
        request=request or fresh_request(),
        timeout_ms=timeout_ms,
    )


async def _brings(store: Store, move: Awaitable[object], wants: dict[str, int] | None = None) -> Exchanged:
    """Begin to wait, make the move, and claim what it made runnable; a false alarm before that is allowed."""
    async with asyncio.timeout(PATIENCE_S), asyncio.TaskGroup() as tasks:
        expecting = tasks.create_task(_until_it_comes(store, wants))
        await asyncio.sleep(0)
        await move
    return expecting.result()


async def _until_it_comes(store: Store, wants: dict[str, int] | None = None) -> Exchanged:
    while True:
        answer = await _expect(store, wants)
        if answer.claimed.jobs or answer.failed:
            return answer


async def test_what_is_there_is_claimed_at_once(store: Store) -> None:
    """Jobs that wait already need no waiting, and are claimed up to what is wanted."""
    refs = await add_many(store, 3)
    async with asyncio.timeout(PATIENCE_S):
        answer = await _expect(store, {MAIL: 2})
    assert [claimed.job.ref for claimed in answer.claimed.jobs] == refs[:2]


async def test_what_comes_is_claimed(harness: Harness, store: Store) -> None:
    """A job that is added meanwhile is held under a lease that settles it, as from any other claim."""
    other = await harness.open()
    (claimed,) = (await _brings(store, add_one(other))).claimed.jobs
    assert (claimed.job.state, claimed.job.worker, claimed.job.epoch) == (State.ACTIVE, WORKER, 1)
    assert claimed.job.started_ms is not None
    assert claimed.job.started_ms >= claimed.job.added_ms
    assert await settle_one(store, claimed.lease, Completed()) == SettleOutcome.SETTLED


async def test_what_came_is_settled_after_its_lease_time_too(harness: Harness, store: Store) -> None:
    """As with any claim, a lease that ran out stands until somebody takes the job away."""
    (claimed,) = (await _brings(store, add_one(await harness.open()))).claimed.jobs
    await harness.advance(LEASE_MS + 1)
    assert await settle_one(store, claimed.lease, Completed()) == SettleOutcome.SETTLED


async def test_what_comes_to_any_of_the_queues_is_claimed(harness: Harness, store: Store) -> None:
    """One wait is for all queues of a worker."""
    move = add_one(await harness.open(), "third")
    answer = await _brings(store, move, {MAIL: 1, "second": 1, "third": 2})
    assert [claimed.job.ref.queue for claimed in answer.claimed.jobs] == ["third"]


async def test_what_becomes_due_is_claimed(harness: Harness, store: Store) -> None:
    """A delayed job is claimed at its due time, with no other sign."""
    ref = await add_one(store, spec=JobSpec(delay_ms=50))
    (claimed,) = (await _brings(store, harness.advance(51))).claimed.jobs
    assert claimed.job.ref == ref


async def test_what_fails_on_the_way_is_told(harness: Harness, store: Store) -> None:
    """A job that is past its start-by time fails in the claim, which says so."""
    ref = await add_one(store, spec=JobSpec(delay_ms=50, start_by_ms=harness.clock.now_ms() + 60))
    answer = await _brings(store, harness.advance(_LONG_MS))
    assert (answer.claimed.jobs, answer.failed) == ((), (ref,))


async def test_no_more_than_at_most_is_claimed(store: Store) -> None:
    """`at_most` bounds what comes of all queues together."""
    await add_many(store, 2)
    await add_many(store, 2, "calls")
    async with asyncio.timeout(PATIENCE_S):
        answer = await store.wait_and_claim(
            {MAIL: 2, "calls": 2},
            worker=WORKER,
            lease_ms=LEASE_MS,
            request=fresh_request(),
            timeout_ms=_LONG_MS,
            at_most=3,
        )
    assert [claimed.job.ref.queue for claimed in answer.claimed.jobs] == [MAIL, MAIL, "calls"]


async def test_with_nothing_to_claim_the_deadline_is_kept(store: Store) -> None:
    """At the deadline nothing is claimed, and what comes later waits for the next claim."""
    async with asyncio.timeout(PATIENCE_S):
        assert await _expect(store, timeout_ms=30) == Exchanged()
        assert await _expect(store, timeout_ms=0) == Exchanged()
    await add_one(store)
    assert await store.counts(MAIL) == Counts(waiting=1)


async def test_the_same_request_claims_what_comes_once(harness: Harness, store: Store) -> None:
    """A worker that lost the answer asks again, and gets the same jobs under the same leases."""
    request = fresh_request()
    await add_many(store, 2)
    async with asyncio.timeout(PATIENCE_S):
        first = await _expect(store, request=request)
        again = await _expect(store, request=request)
    assert again.claimed.jobs == first.claimed.jobs
    assert await store.counts(MAIL) == Counts(waiting=1, active=1)


async def test_a_claim_after_a_lost_connection_gets_what_the_wait_took(harness: Harness, store: Store) -> None:
    """The request may be asked again as a plain exchange."""
    request = fresh_request()
    first = await _brings_with(store, request, add_one(await harness.open()))
    again = await store.exchange((), {MAIL: 1}, worker=WORKER, lease_ms=LEASE_MS, request=request)
    assert again.claimed.jobs == first.claimed.jobs


async def _brings_with(store: Store, request: str, move: Awaitable[object]) -> Exchanged:
    async with asyncio.timeout(PATIENCE_S), asyncio.TaskGroup() as tasks:
        expecting = tasks.create_task(_expect(store, request=request))
        await asyncio.sleep(0)
        await move
    return expecting.result()


async def test_who_gives_up_takes_nothing(harness: Harness, store: Store) -> None:
    """A wait that is given up ends at once, and jobs that come later go to others."""
    for asleep_s in (0, 0.05):
        expecting = asyncio.ensure_future(_expect(store))
        await asyncio.wait([expecting], timeout=asleep_s)
        expecting.cancel()
        ended, _ = await asyncio.wait([expecting], timeout=PATIENCE_S)
        assert ended == {expecting}
    ref = await add_one(await harness.open())
    assert await claim_ids(store) == [ref.id]


async def test_race_what_comes_as_one_gives_up_is_not_lost(harness: Harness, store: Store) -> None:
    """Either the wait brought the job, or it waits as before: with no attempt and no crash, and not held."""
    other = await harness.open()
    for turn in range(ROUNDS * 2):
        queue = f"mail-{turn}"
        expecting = asyncio.ensure_future(_expect(store, {queue: 1}))
        await asyncio.wait([expecting], timeout=0.01 if turn % 2 else 0)
        adding = asyncio.ensure_future(add_one(other, queue))
        for _ in range(turn % ROUNDS):
            await asyncio.sleep(0)
        expecting.cancel()
        await asyncio.wait([expecting, adding], timeout=PATIENCE_S)
        ref = adding.result()
        if expecting.cancelled():
            claimed = await claim_one(other, queue)
            assert (claimed.job.attempts_made, claimed.job.stalls) == (0, 0)
        else:
            (claimed,) = expecting.result().claimed.jobs
        assert claimed.job.ref == ref


async def test_race_all_who_wait_to_claim_get_one(harness: Harness, store: Store) -> None:
    """Jobs for all of them reach all of them, each once: nobody sleeps while a job waits."""
    stores = [store, *[await harness.open() for _ in range(3)]]
    async with asyncio.timeout(PATIENCE_S), asyncio.TaskGroup() as tasks:
        expecting = [tasks.create_task(_until_it_comes(one)) for one in stores]
        refs = await add_many(store, 4)
    taken = [claimed.job.id for one in expecting for claimed in one.result().claimed.jobs]
    assert sorted(taken) == sorted(ref.id for ref in refs)
