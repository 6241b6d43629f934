"""The connections on which scripts travel together."""

import asyncio

from bullpen.errors import JobMissing
from bullpen.job.record import JobRecord, JobRef
from bullpen.job.spec import Dedup, JobSpec, NewJob
from bullpen.stores.base import AddOutcome, Counts
from bullpen.stores.redis import RedisStore
from tests.support.redis_server import RedisServer

MANY = 200


def _connections(server: RedisServer) -> int:
    with server.client() as client:
        return len(client.client_list(_type="normal"))


async def test_many_calls_share_a_few_connections(store: RedisStore, redis_server: RedisServer) -> None:
    before = _connections(redis_server)
    adds = [store.add([NewJob("mail", "welcome")], request=f"r{n}") for n in range(MANY)]
    answers = await asyncio.gather(*adds)
    assert len({added.id for (added,) in answers}) == MANY
    assert _connections(redis_server) - before <= 4


async def test_each_call_gets_its_own_answer(store: RedisStore) -> None:
    """Though they travel on one connection, and one of them is refused."""
    await store.add([NewJob("mail", "welcome", id="first")], request="r1")
    found, missing, counts = await asyncio.gather(
        store.job(JobRef("mail", "first")),
        store.job(JobRef("mail", "nobody")),
        store.counts("mail"),
        return_exceptions=True,
    )
    assert isinstance(found, JobRecord)
    assert isinstance(missing, JobMissing)
    assert isinstance(counts, Counts)
    assert (found.name, counts.waiting) == ("welcome", 1)


async def test_who_gives_a_call_up_takes_no_other_along(store: RedisStore) -> None:
    """The answer that nobody awaits is passed over; the next ones go to those who asked."""
    first = asyncio.ensure_future(store.add([NewJob("mail", "first")], request="r1"))
    second = asyncio.ensure_future(store.add([NewJob("mail", "second")], request="r2"))
    await asyncio.sleep(0)
    first.cancel()
    (added,) = await second
    assert (await store.job(JobRef("mail", added.id))).name == "second"


async def test_plain_jobs_and_others_are_added_side_by_side(store: RedisStore) -> None:
    """Two scripts from one text: which of them is run makes no difference to the jobs."""
    plain = NewJob("mail", "plain", id="a", spec=JobSpec(priority=3, tenant="acme", start_by_ms=2**50))
    deduplicated = NewJob("mail", "other", spec=JobSpec(dedup=Dedup("subject")))
    grouped = NewJob("mail", "grouped", spec=JobSpec(group="acme"))
    for n, job in enumerate((plain, deduplicated, grouped)):
        (alone,) = await store.add([job], request=f"alone {n}")
        assert alone.outcome == AddOutcome.ADDED
    again = await store.add([plain, deduplicated, grouped], request="together")
    assert [added.outcome for added in again] == [AddOutcome.DUPLICATE, AddOutcome.DEDUPLICATED, AddOutcome.ADDED]
