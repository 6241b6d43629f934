"""Promises of requests: the same call again does nothing and gets the first answer."""

import asyncio

from bullpen.errors import BullpenError
from bullpen.job.record import CrashLimits
from bullpen.job.spec import JobSpec, NewJob
from bullpen.job.verdicts import Completed, Failed, Settlement
from bullpen.stores.base import (
    REQUEST_MEMORY_MS,
    AddOutcome,
    Claimed,
    Counts,
    Exchanged,
    SettleOutcome,
    Store,
)
from bullpen.testing.conformance.moves import (
    BOOM,
    LEASE_MS,
    MAIL,
    ROUNDS,
    WORKER,
    add_many,
    add_one,
    claim_one,
    fresh_request,
    race,
)
from bullpen.testing.harness import Harness


async def _claim(store: Store, request: str, *, count: int = 1, lease_ms: int = LEASE_MS) -> Claimed:
    return await store.claim({MAIL: count}, worker=WORKER, lease_ms=lease_ms, request=request)


async def _exchange(store: Store, settlements: list[Settlement], request: str) -> Exchanged:
    return await store.exchange(settlements, {MAIL: 1}, worker=WORKER, lease_ms=LEASE_MS, request=request)


async def test_the_same_request_adds_once(store: Store) -> None:
    """A producer that lost the answer asks again with the same request and gets the same jobs."""
    jobs = [NewJob(MAIL, "welcome"), NewJob(MAIL, "welcome", id="user-1")]
    first = await store.add(jobs, request="r1")
    again = await store.add(jobs, request="r1")
    assert list(again) == list(first)
    assert [one.outcome for one in again] == [AddOutcome.ADDED] * 2
    assert await store.counts(MAIL) == Counts(waiting=2)


async def test_the_same_request_claims_once(store: Store) -> None:
    """A worker that lost the answer to a claim gets the same jobs under the same leases."""
    await add_many(store, 3)
    first = await _claim(store, "c1", count=2)
    again = await _claim(store, "c1", count=2)
    assert again == first
    assert await store.counts(MAIL) == Counts(waiting=1, active=2)


async def test_the_same_request_settles_once(store: Store) -> None:
    """A worker that lost the answer to a settle is told that it was settled, and nothing is done twice."""
    await add_many(store, 2)
    batch = [Settlement((await claim_one(store)).lease, Completed(then=(NewJob("next", "n"),))) for _ in range(2)]
    first = await store.settle(batch, request="s1")
    again = await store.settle(batch, request="s1")
    assert list(first) == list(again) == [SettleOutcome.SETTLED] * 2
    assert await store.counts("next") == Counts(waiting=2)


async def test_the_same_request_exchanges_once(store: Store) -> None:
    """A worker that lost the answer to an exchange gets both halves of it again."""
    await add_many(store, 3)
    batch = [Settlement((await claim_one(store)).lease, Completed())]
    first = await _exchange(store, batch, "e1")
    assert await _exchange(store, batch, "e1") == first
    assert await store.counts(MAIL) == Counts(completed=1, active=1, waiting=1)


async def test_the_same_request_names_what_failed_again(harness: Harness, store: Store) -> None:
    """Who tells of jobs that failed on a trip, under no handler's eyes, hears of them though the answer was lost."""
    late = await add_one(store, spec=JobSpec(start_by_ms=harness.clock.now_ms() + 1_000))
    await harness.advance(1_001)
    first = await _exchange(store, [], "e1")
    assert (first.claimed.jobs, first.failed) == ((), (late,))
    assert (await _exchange(store, [], "e1")).failed == (late,)


async def test_an_empty_answer_is_an_answer(store: Store) -> None:
    """A claim that got nothing gets nothing again, though there is a job by now."""
    await add_one(store)
    held = await claim_one(store)
    assert (await _claim(store, "c1")).jobs == ()
    await add_one(store)
    assert (await _claim(store, "c1")).jobs == ()
    assert (await store.counts(MAIL)).waiting == 1
    assert held.job.queue == MAIL


async def test_another_request_is_another_call(store: Store) -> None:
    """Equal calls with different requests are all carried out."""
    for request in ("r1", "r2"):
        await store.add([NewJob(MAIL, "welcome")], request=request)
    assert await store.counts(MAIL) == Counts(waiting=2)


async def test_an_answer_is_remembered_a_minute(harness: Harness, store: Store) -> None:
    """Add and settle can be asked again for a minute at least."""
    first = await store.add([NewJob(MAIL, "welcome")], request="r1")
    settlement = Settlement((await claim_one(store)).lease, Completed())
    await store.settle([settlement], request="s1")
    await harness.advance(REQUEST_MEMORY_MS - 5_000)
    assert list(await store.add([NewJob(MAIL, "welcome")], request="r1")) == list(first)
    assert list(await store.settle([settlement], request="s1")) == [SettleOutcome.SETTLED]


async def test_a_claim_is_remembered_for_its_lease(harness: Harness, store: Store) -> None:
    """A claim can be asked again as long as its leases hold."""
    await add_one(store)
    first = await _claim(store, "c1", lease_ms=600_000)
    await harness.advance(590_000)
    assert await _claim(store, "c1", lease_ms=600_000) == first


async def test_a_repeated_claim_leaves_out_what_was_settled(store: Store) -> None:
    """The first answer again holds only jobs that its leases still hold: no job is run a second time."""
    await add_many(store, 2)
    first = await _claim(store, "c1", count=2)
    await store.settle([Settlement(first.jobs[0].lease, Completed())], request=fresh_request())
    assert (await _claim(store, "c1", count=2)).jobs == first.jobs[1:]


async def test_a_repeated_claim_leaves_out_what_another_holds(harness: Harness, store: Store) -> None:
    """A job that was rescued and claimed again is not told to its old claimant."""
    await add_one(store)
    await _claim(store, "c1")
    await harness.advance(LEASE_MS + 1)
    await store.rescue([MAIL], limits=CrashLimits())
    await claim_one(store, worker="worker-2")
    assert (await _claim(store, "c1")).jobs == ()


async def test_answers_are_remembered_by_the_place(harness: Harness, store: Store) -> None:
    """Another store of the place, also after a crash of the first, gives the same answers."""
    first = await store.add([NewJob(MAIL, "welcome")], request="r1")
    claimed = await _claim(store, "c1")
    await harness.crash(store)
    survivor = await harness.open()
    assert list(await survivor.add([NewJob(MAIL, "welcome")], request="r1")) == list(first)
    assert await _claim(survivor, "c1") == claimed


async def test_refuses_again_what_it_refused(store: Store) -> None:
    """The answer that a lease was lost is remembered as well."""
    await add_one(store)
    lease = (await claim_one(store)).lease
    await store.settle([Settlement(lease, Completed())], request="s1")
    for _ in range(2):
        assert list(await store.settle([Settlement(lease, Failed(BOOM))], request="s2")) == [SettleOutcome.LEASE_LOST]
    assert await store.counts(MAIL) == Counts(completed=1)


async def test_race_the_same_add_adds_once(harness: Harness, store: Store) -> None:
    """An add that is sent again before its answer came adds once; both get the same answer."""
    other = await harness.open()
    jobs = [NewJob(MAIL, "welcome")] * 3
    for turn in range(ROUNDS):
        request = fresh_request()
        first, second = await race(store.add(jobs, request=request), other.add(jobs, request=request), turn=turn)
        assert not isinstance(first, BullpenError)
        assert not isinstance(second, BullpenError)
        assert list(first) == list(second)
    assert await store.counts(MAIL) == Counts(waiting=3 * ROUNDS)


async def test_race_the_same_claim_claims_once(harness: Harness, store: Store) -> None:
    """A claim that is sent again before its answer came takes its jobs once."""
    await add_many(store, 5 * ROUNDS)
    other = await harness.open()
    for turn in range(ROUNDS):
        request = fresh_request()
        first, second = await race(_claim(store, request, count=2), _claim(other, request, count=2), turn=turn)
        assert not isinstance(first, BullpenError)
        assert first == second
    assert await store.counts(MAIL) == Counts(waiting=3 * ROUNDS, active=2 * ROUNDS)


async def test_race_the_same_exchange_happens_once(harness: Harness, store: Store) -> None:
    """An exchange that is sent again before its answer came settles and claims once."""
    await add_many(store, ROUNDS + 1)
    other = await harness.open()
    held = await claim_one(store)
    for turn in range(ROUNDS):
        request, batch = fresh_request(), [Settlement(held.lease, Completed())]
        first, second = await race(_exchange(store, batch, request), _exchange(other, batch, request), turn=turn)
        assert not isinstance(first, BullpenError)
        assert first == second
        (held,) = first.claimed.jobs
    assert await store.counts(MAIL) == Counts(completed=ROUNDS, active=1)


async def test_race_the_same_settle_happens_once(harness: Harness, store: Store) -> None:
    """A settle that is sent many times at once is carried out once, and all are told the same."""
    await add_one(store)
    stores = [store, await harness.open(), await harness.open()]
    batch = [Settlement((await claim_one(store)).lease, Completed(then=(NewJob("next", "n"),)))]
    async with asyncio.TaskGroup() as tasks:
        answers = [tasks.create_task(_settle(one, batch)) for one in stores]
    assert [answer.result() for answer in answers] == [[SettleOutcome.SETTLED]] * 3
    assert await store.counts("next") == Counts(waiting=1)


async def _settle(store: Store, batch: list[Settlement]) -> list[SettleOutcome]:
    return list(await store.settle(batch, request="s1"))
