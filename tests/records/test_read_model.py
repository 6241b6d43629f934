"""The read model: after whatever happened, it is what a full look at the store would find."""

import asyncio
import random
from collections import Counter
from typing import Any

import pytest
from sqlalchemy import select

from bullpen import BadOption, Failure, Queue, State, keep
from bullpen.job.verdicts import Completed, Failed, Retry, Settlement, Verdict
from bullpen.records.model.feeder import ModelFeeder
from bullpen.records.model.lease import HOLD_MS
from bullpen.records.model.minutes import BOUNDS_MS, percentile_ms, place_of
from bullpen.records.model.queries import JobFilter
from bullpen.records.model.words import words_of
from bullpen.records.records import Records
from bullpen.records.tables.model import job as job_table
from bullpen.records.tables.model import job_tag
from bullpen.stores.base import Store
from bullpen.testing.clock import ManualClock
from tests.support.around import StoreAround

_STATES = tuple(State)


@pytest.fixture
def queue(store: Store, clock: ManualClock) -> Queue:
    return Queue(store, "mail", clock=clock)


@pytest.fixture
def feeder(records: Records, store: Store) -> ModelFeeder:
    return records.feeder(store, fields=["user"])


class Scene:
    """Claims and settles as it is told."""

    def __init__(self, store: Store) -> None:
        self.store = store
        self._asked = 0

    async def end(self, verdict: Verdict, queue: str = "mail") -> str | None:
        self._asked += 1
        claimed = await self.store.claim(
            {queue: 1}, worker="w", lease_ms=60_000, request=f"claim {id(self)} {self._asked}"
        )
        if not claimed.jobs:
            return None
        lease = claimed.jobs[0].lease
        await self.store.settle([Settlement(lease, verdict)], request=f"settle {id(self)} {self._asked}")
        return lease.ref.id


@pytest.fixture
def scene(store: Store) -> Scene:
    return Scene(store)


async def _rows(records: Records) -> dict[str, dict[str, Any]]:
    """What the model holds of each job, without what is its own affair."""
    async with records.database.reading() as connection:
        rows = (await connection.execute(select(job_table))).all()
        tags = (await connection.execute(select(job_tag.c.key, job_tag.c.tag))).all()
    own = {"key", "scan", "ready_ms"}
    by_key: dict[int, list[str]] = {}
    for key, tag in tags:
        by_key.setdefault(key, []).append(tag)
    assert {row.key for row in rows} >= set(by_key)
    assert all(sorted(by_key.get(row.key, [])) == row.tags for row in rows)
    return {f"{row.queue}/{row.id}": {k: v for k, v in row._mapping.items() if k not in own} for row in rows}


async def _check(records: Records, store: Store) -> None:
    """The same rows as a model that is made anew, and counts as the store's own."""
    fed = await _rows(records)
    counted = await records.jobs.counts()
    for queue in await store.queues():
        counts = await store.counts(queue)
        own = {state: getattr(counts, state.value.replace("-", "_")) for state in _STATES}
        assert counted.get(queue, {}) == {state: n for state, n in own.items() if n}, queue
    assert Counter((row["queue"], row["state"]) for row in fed.values()) == Counter(
        {(queue, state.value): n for queue, states in counted.items() for state, n in states.items()}
    )
    looked = {}
    for queue in await store.queues():
        for state in _STATES:
            for record in (await store.jobs(queue, state, limit=10_000)).jobs:
                looked[f"{queue}/{record.id}"] = (record.state.value, record.name, record.tenant, record.finished_ms)
    assert {name: (r["state"], r["name"], r["tenant"], r["finished_ms"]) for name, r in fed.items()} == looked


async def test_a_job_is_followed_through_its_life(
    records: Records, store: Store, queue: Queue, feeder: ModelFeeder, scene: Scene, clock: ManualClock
) -> None:
    await queue.add("welcome", {"user": "ann", "secret": "s3cret"}, id="one", tenant="acme", tags=["new"], priority=3)
    await feeder.catch_up()
    (job,) = (await records.jobs.list()).jobs
    assert (job.id, job.state, job.tenant, job.tags, job.fields) == (
        "one",
        "prioritized",
        "acme",
        ("new",),
        {"user": "ann"},
    )
    clock.advance(100)
    await scene.end(Retry(Failure("connection 17 refused", type="OSError"), delay_ms=1_000))
    await feeder.catch_up()
    (job,) = (await records.jobs.list()).jobs
    assert (job.state, job.error, job.fingerprint) == ("delayed", "connection 17 refused", None)
    clock.advance(1_000)
    await scene.end(Failed(Failure("connection 18 refused", type="OSError")))
    await feeder.catch_up()
    (job,) = (await records.jobs.list()).jobs
    assert (job.state, job.error_type, job.finished_ms) == ("failed", "OSError", clock.now_ms())
    assert job.fingerprint
    await _check(records, store)
    await queue.job("one").remove()
    await feeder.catch_up()
    assert (await records.jobs.list()).jobs == ()
    await _check(records, store)


async def test_nothing_of_the_data_is_kept_unless_it_is_asked_for(records: Records, store: Store, queue: Queue) -> None:
    await queue.add("welcome", {"user": "ann", "secret": "s3cret"}, id="one")
    await records.feeder(store).catch_up()
    (job,) = (await records.jobs.list()).jobs
    assert job.fields == {}
    assert (await records.jobs.search("ann")).jobs == ()


async def test_what_retention_takes_goes_without_an_event(
    records: Records, store: Store, queue: Queue, feeder: ModelFeeder, scene: Scene, clock: ManualClock
) -> None:
    """Kept by count, kept not at all, cleaned by hand, and in the same millisecond as others."""
    for n in range(12):
        kept = keep(count=0) if n % 4 == 3 else keep(count=3)
        await queue.add("welcome", id=f"job-{n}", keep_completed=kept)
        if n == 6:
            await feeder.catch_up()
    for n in range(12):
        await scene.end(Completed())
        if n == 5:
            await feeder.catch_up()
        if n % 3 == 0:
            clock.advance(5)
    await feeder.catch_up()
    await _check(records, store)
    await store.clean("mail", State.COMPLETED, older_than_ms=0, limit=2)
    await feeder.catch_up()
    await _check(records, store)


async def test_a_gap_is_made_good_by_a_scan(
    records: Records, store: Store, queue: Queue, feeder: ModelFeeder, scene: Scene
) -> None:
    """Most events were dropped before they were read; some rows are of jobs that are gone."""
    await asyncio.gather(*[queue.add("early", {"n": n}) for n in range(20)])
    await feeder.catch_up()
    real = store.events
    blind = StoreAround(store)
    dropped = True

    async def events(queue: str, **asked: Any) -> Any:
        nonlocal dropped
        if asked["after"] is None or not dropped:
            return await real(queue, **asked)
        dropped = False
        end = await real(queue, after=None, limit=1, timeout_ms=0)
        return type(end)((), end.cursor, True)

    blind.events = events
    for n in range(10):
        await scene.end(Completed() if n % 2 else Failed(Failure("no")))
    await store.drain("mail", delayed=False)
    await asyncio.gather(*[queue.add("late", {"n": n}) for n in range(7)])
    feeder._source.store = blind
    await feeder.catch_up()
    await _check(records, store)
    assert not (await records.jobs.lag())["mail"].is_scanning


async def test_a_queue_that_is_removed_and_begun_anew(
    records: Records, store: Store, queue: Queue, feeder: ModelFeeder
) -> None:
    await asyncio.gather(*[queue.add("old") for _ in range(5)])
    await feeder.catch_up()
    await store.obliterate("mail", force=True)
    await feeder.catch_up()
    assert (await records.jobs.list()).jobs == ()
    await queue.add("new")
    await feeder.catch_up()
    await _check(records, store)


async def test_whoever_dies_in_the_middle_the_next_goes_on_rightly(
    records: Records, store: Store, queue: Queue, scene: Scene, clock: ManualClock
) -> None:
    """Cut off at any await, over and over, while jobs are added, run and pruned."""
    dice = random.Random(7)
    for turn in range(12):
        feeder = records.feeder(store, fields=["user"])
        for n in range(dice.randint(1, 10)):
            tenant = dice.choice(["acme", "other"])
            await queue.add("work", {"user": f"u{n}"}, keep_completed=keep(count=4), tenant=tenant)
        for _ in range(dice.randint(0, 8)):
            verdicts: list[Verdict] = [Completed(), Failed(Failure(f"no {turn}")), Retry(Failure("again"))]
            await scene.end(dice.choice(verdicts))
        feeding = asyncio.create_task(feeder.catch_up())
        for _ in range(dice.randint(1, 60)):
            await asyncio.sleep(0)  # a turn of the loop: where it is cut is up to the dice
        feeding.cancel()
        await asyncio.gather(feeding, return_exceptions=True)
        clock.advance(HOLD_MS)
    last = records.feeder(store, fields=["user"])
    await last.catch_up()
    await _check(records, store)
    rates = await records.jobs.rates(since_ms=0, until_ms=2**62)
    counts = Counter({State.COMPLETED: sum(m.completed for m in rates), State.FAILED: sum(m.failed for m in rates)})
    assert counts[State.FAILED] == (await store.counts("mail")).failed, "each event is counted once"
    assert sum(m.started for m in rates) == sum(sum(m.wait) for m in rates)
    before = await _rows(records)
    await last.rescan()
    await last.catch_up()
    assert await _rows(records) == before


async def test_one_feeds_at_a_time(records: Records, store: Store, queue: Queue, clock: ManualClock) -> None:
    first, second = records.feeder(store), records.feeder(store)
    await queue.add("one")
    await first.catch_up()
    await queue.add("two")
    assert not await second.step(), "it is the first one's"
    clock.advance(HOLD_MS)
    await second.catch_up()
    assert not await first.step(), "it has lost it, and wrote nothing"
    await _check(records, store)


# ── asking ───────────────────────────────────────────────────────────────────────────────


async def test_search_finds_words_and_their_beginnings(
    records: Records, queue: Queue, feeder: ModelFeeder, scene: Scene
) -> None:
    await queue.add("send-invoice", {"user": "Zoë Müller"}, id="order-4711", tags=["vip"])
    await queue.add("send-reminder", {"user": "bob"}, id="order-4712", tenant="acme")
    await scene.end(Failed(Failure("Gateway said: 'no such host'", type="HostError")))
    await feeder.catch_up()

    async def found(text: str, tenant: str | None = None) -> list[str]:
        return sorted(job.id for job in (await records.jobs.search(text, tenant=tenant)).jobs)

    assert await found("4711") == await found("zoe mull") == await found("VIP") == ["order-4711"]
    assert await found("order") == await found("send") == ["order-4711", "order-4712"]
    assert await found("gateway host") == await found("hosterror") == ["order-4711"]
    assert await found("send", tenant="acme") == ["order-4712"]
    for odd in ("nothing", "'", '"*', "…", "a & b | !", "order:4711 -x"):
        assert await found(odd) == []


async def test_lists_are_filtered_and_see_one_tenant_only(
    records: Records, queue: Queue, feeder: ModelFeeder, clock: ManualClock, scene: Scene
) -> None:
    for n in range(12):
        clock.advance(1)
        tenant = ("acme", "other", None)[n % 3]
        workspace = "team" if tenant and n < 6 else None
        await queue.add(f"name-{n % 2}", id=f"job-{n}", tenant=tenant, workspace=workspace, tags=[f"tag-{n % 4}"])
    await scene.end(Failed(Failure("no 1")))
    await scene.end(Failed(Failure("no 2")))
    await feeder.catch_up()

    async def ids(**wanted: Any) -> list[int]:
        page = await records.jobs.list(JobFilter(**wanted))
        return [int(job.id.removeprefix("job-")) for job in page.jobs]

    assert await ids() == list(range(11, -1, -1))
    assert await ids(tenant="acme") == [9, 6, 3, 0]
    assert await ids(tenant="acme", workspace="team") == [3, 0]
    assert await ids(tag="tag-1", name="name-1") == [9, 5, 1]
    assert await ids(states=["failed"]) == [1, 0]
    assert await ids(queue="other") == []
    assert await ids(states=["failed"], tenant="other") == [1]
    assert (await records.jobs.counts(tenant="other"))["mail"] == {State.FAILED: 1, State.WAITING: 3}
    assert (await records.jobs.counts_by_tenant("mail"))[""] == {State.WAITING: 4}
    groups = await records.jobs.failures(JobFilter(tenant="acme"))
    assert [(group.name, group.count, group.error) for group in groups] == [("name-0", 1, "no 1")]
    with pytest.raises(BadOption):
        JobFilter(states=["asleep"])
    with pytest.raises(BadOption):
        await records.jobs.list(cursor="nonsense")


async def test_pages_neither_repeat_nor_skip_while_jobs_come_and_change(
    records: Records, queue: Queue, feeder: ModelFeeder, clock: ManualClock, scene: Scene
) -> None:
    for n in range(30):
        await queue.add("work", id=f"old-{n}")
        clock.advance(n % 2)
    await feeder.catch_up()
    seen: list[str] = []
    cursor: str | None = None
    while True:
        page = await records.jobs.list(limit=7, cursor=cursor)
        seen += [job.id for job in page.jobs]
        clock.advance(1)
        await queue.add("work", id=f"new-{len(seen)}")
        await scene.end(Completed())
        await feeder.catch_up()
        cursor = page.next_cursor
        if cursor is None:
            break
    assert sorted(seen) == sorted(f"old-{n}" for n in range(30))


async def test_rates_tell_how_many_how_long_and_of_whom(
    records: Records, queue: Queue, feeder: ModelFeeder, clock: ManualClock, store: Store
) -> None:
    for tenant in ("acme", "other"):
        await queue.add("work", tenant=tenant)
    claimed = await store.claim({"mail": 2}, worker="w", lease_ms=600_000, request="claim")
    await store.settle([Settlement(job.lease, Completed()) for job in claimed.jobs], request="settle")
    await feeder.catch_up()
    rates = await records.jobs.rates(since_ms=0, until_ms=2**62, queue="mail", tenant="acme")
    assert sum(m.added for m in rates) == sum(m.started for m in rates) == sum(m.completed for m in rates) == 1
    both = await records.jobs.rates(since_ms=0, until_ms=2**62)
    assert [sum(map(sum, column)) for column in ([m.wait for m in both], [m.processing for m in both])] == [2, 2]


def test_a_histogram_tells_within_which_bound_a_share_stayed() -> None:
    assert [place_of(ms) for ms in (0, 5, 6, 3_600_001)] == [0, 0, 1, len(BOUNDS_MS)]
    histogram = [90, 0, 9, *[0] * (len(BOUNDS_MS) - 3), 1]
    assert [percentile_ms(histogram, share) for share in (0.5, 0.95, 1.0)] == [5, 25, None]
    assert percentile_ms([0] * len(histogram), 0.5) is None


def test_words_have_no_case_and_no_accents() -> None:
    assert words_of(["Zoë's order_4711-ÄÖ", "zoe"]) == ["zoe", "s", "order", "4711", "ao"]


async def test_the_lag_tells_how_long_ago_all_was_known(
    records: Records, queue: Queue, feeder: ModelFeeder, clock: ManualClock
) -> None:
    await queue.add("work")
    await feeder.catch_up()
    await feeder.catch_up()
    assert (await records.jobs.lag())["mail"].behind_ms == 0
    clock.advance(5_000)
    assert (await records.jobs.lag())["mail"].behind_ms == 5_000
    await feeder.catch_up()
    assert (await records.jobs.lag())["mail"].behind_ms == 0
