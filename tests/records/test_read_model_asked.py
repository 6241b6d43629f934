"""The read model when it is asked: lists, search, reasons of failures, rates, and how far behind it is."""

from typing import Any

import pytest
from sqlalchemy import insert

from bullpen import BadOption, Failure, Queue, State
from bullpen.job.record import JobRef
from bullpen.job.verdicts import Completed, Failed, Settlement
from bullpen.records.model import leading
from bullpen.records.model.feeder import ModelFeeder
from bullpen.records.model.minutes import BOUNDS_MS, MINUTE_MS, percentile_ms, place_of
from bullpen.records.model.reading import Period
from bullpen.records.model.reasons import Order
from bullpen.records.model.searching import JobFilter
from bullpen.records.model.words import words_of
from bullpen.records.records import Records
from bullpen.records.tables.model import minute
from bullpen.stores.base import Store
from bullpen.testing.clock import ManualClock
from tests.records.comparing import check_model, check_rescan
from tests.records.scene import Scene


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


@pytest.mark.parametrize("few", [-1, 10_000])
async def test_lists_are_filtered_and_see_one_tenant_only(
    few: int,
    records: Records,
    queue: Queue,
    feeder: ModelFeeder,
    clock: ManualClock,
    scene: Scene,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """By whichever index their jobs are found."""
    monkeypatch.setattr(leading, "_FEW", few)
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
    assert await ids(workspace="team") == [4, 3, 1, 0]
    assert await ids(name="name-1") == [11, 9, 7, 5, 3, 1]
    assert await ids(name="name-1", tenant="acme", states=["waiting"]) == [9, 3]
    assert await ids(name="name-1", workspace="team", queues=["mail"]) == [3, 1]
    assert await ids(name="nobody", queue="mail") == await ids(workspace="nobody", queues=["mail"]) == []
    assert await ids(tag="tag-1") == await ids(tag="tag-1", name="name-1") == [9, 5, 1]
    assert await ids(tag="tag-1", tenant="other", states=["failed"]) == [1]
    assert await ids(states=["failed"]) == [1, 0]
    assert await ids(queue="other") == []
    assert await ids(states=["failed"], tenant="other") == [1]
    assert (await records.jobs.counts(tenant="other"))["mail"] == {State.FAILED: 1, State.WAITING: 3}
    assert (await records.jobs.counts_by_tenant("mail")).counts[""] == {State.WAITING: 4}
    groups = await records.jobs.failures(tenant="acme")
    assert [(group.name, group.count, group.error) for group in groups] == [("name-0", 1, "no 1")]
    reason = groups[0].fingerprint
    assert await ids(fingerprint=reason) == await ids(fingerprint=reason, states=["failed"], tenant="acme") == [0]
    with pytest.raises(BadOption):
        JobFilter(states=["asleep"])
    with pytest.raises(BadOption):
        await records.jobs.list(cursor="nonsense")


async def test_reasons_of_failures_are_counted_until_the_last_is_gone(
    records: Records, store: Store, feeder: ModelFeeder, clock: ManualClock, scene: Scene
) -> None:
    mail, post = Queue(store, "mail", clock=clock), Queue(store, "post", clock=clock)
    for n in range(3):
        await mail.add("send", id=f"job-{n}", tenant=("acme", "other")[n % 2])
        clock.advance(1)
        await scene.end(Failed(Failure(f"no host {n}", type="HostError")))
    await mail.add("send", id="odd")
    clock.advance(1)
    await scene.end(Failed(Failure("not so", type="ValueError")))
    await post.add("send", id="there", tenant="acme")
    await scene.end(Failed(Failure("no ink")), "post")
    await feeder.catch_up()

    async def told(**within: Any) -> list[tuple[int, str]]:
        return [(group.count, group.error) for group in await records.jobs.failures(**within)]

    assert await told(queue="mail") == await told(queues=["mail"]) == [(3, "no host 2"), (1, "not so")]
    assert (await told())[0] == (3, "no host 2")
    assert len(await told()) == 3
    assert await told(limit=1) == [(3, "no host 2")]
    assert sorted(await told(tenant="acme")) == [(1, "no ink"), (2, "no host 2")]
    assert await told(tenant="other", queues=["mail"]) == [(1, "no host 1")]
    assert await told(tenant="other", queue="post") == await told(queues=[]) == []
    (group,) = await records.jobs.failures(tenant="acme", queue="mail")
    assert group.newest_ms - group.oldest_ms == 2
    assert await told(queue="mail", order=Order.NEWEST) == [(1, "not so"), (3, "no host 2")]
    late = group.oldest_ms + 1
    assert await told(queue="mail", since_ms=late) == [(2, "no host 2"), (1, "not so")]
    assert await told(queue="mail", since_ms=late, order=Order.NEWEST) == [(1, "not so"), (2, "no host 2")]
    assert await told(queue="mail", since_ms=late, limit=1) == [(2, "no host 2")]
    assert await told(tenant="acme", queues=["mail"], since_ms=late) == [(1, "no host 2")]
    assert await told(since_ms=group.newest_ms + 1_000) == []
    await store.retry(JobRef("mail", "job-2"))
    await store.remove(JobRef("mail", "odd"))
    await feeder.catch_up()
    assert await told(queue="mail") == [(2, "no host 1")]
    await check_model(records, store)
    await mail.retry_all()
    await feeder.catch_up()
    assert await told(queue="mail") == []
    await check_model(records, store)
    await check_rescan(records, feeder)


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
    assert await records.jobs.rates(since_ms=0, until_ms=2**62, queue="mail") == both
    assert await records.jobs.rates(since_ms=0, until_ms=2**62, queue="other") == ()


async def test_a_glance_tells_how_long_jobs_took_only_lately(
    records: Records, queue: Queue, feeder: ModelFeeder, clock: ManualClock
) -> None:
    for tenant in ("acme", "other"):
        await queue.add("work", tenant=tenant)
    await feeder.catch_up()
    times = [0, 3, *[0] * (len(BOUNDS_MS) - 1)]
    parts = {"added": 0, "started": 0, "completed": 3, "failed": 0, "retried": 0, "wait": times, "processing": times}
    kinds = [(tenant, at_ms) for tenant in ("acme", "other") for at_ms in (MINUTE_MS, 2 * MINUTE_MS)]
    rows = [{"queue": "mail", "tenant": tenant, "minute_ms": at_ms, **parts} for tenant, at_ms in kinds]
    async with records.database.writing() as connection:
        await connection.execute(insert(minute), rows)
    period = Period(since_ms=MINUTE_MS, until_ms=3 * MINUTE_MS, times_ms=2 * MINUTE_MS)
    for glance in (await records.jobs.glance(period), await records.jobs.glance(period, queue="mail")):
        assert glance.counts == {"mail": {State.WAITING: 2}}
        assert glance.lag["mail"].behind_ms == 0
        assert [(one.completed, one.wait[1], one.processing[1]) for one in glance.minutes["mail"]] == [
            (6, 0, 0),
            (6, 6, 6),
        ]
    own = await records.jobs.glance(period, queue="mail", tenant="acme")
    assert own.counts == {"mail": {State.WAITING: 1}}
    assert [(one.minute_ms, one.completed) for one in own.minutes["mail"]] == [(MINUTE_MS, 3), (2 * MINUTE_MS, 3)]


def test_a_histogram_tells_how_long_a_share_took_at_most() -> None:
    """Those between two bounds count as evenly spread; beyond the last one nothing is known."""
    assert [place_of(ms) for ms in (0, 5, 6, 3_600_001)] == [0, 0, 1, len(BOUNDS_MS)]
    histogram = [90, 0, 9, *[0] * (len(BOUNDS_MS) - 3), 1]
    assert [percentile_ms(histogram, share) for share in (0.45, 0.9, 0.93, 0.99, 1.0)] == [2, 5, 15, 25, None]
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
    assert (await records.jobs.list(JobFilter(queue="mail"))).behind_ms == await records.jobs.behind_ms() == 5_000
    assert await records.jobs.behind_ms("unknown") == 0
    await feeder.catch_up()
    assert (await records.jobs.lag())["mail"].behind_ms == 0


async def test_of_many_tenants_those_with_most_jobs_are_told(
    records: Records, queue: Queue, feeder: ModelFeeder
) -> None:
    for n in range(1, 5):
        for _ in range(n):
            await queue.add("work", tenant=f"tenant-{n}")
    await feeder.catch_up()
    found = await records.jobs.counts_by_tenant("mail", limit=2)
    assert list(found.counts) == ["tenant-4", "tenant-3"]
    assert found.counts["tenant-4"] == {State.WAITING: 4}
    assert found.more == 2
    assert (await records.jobs.counts_by_tenant("mail")).more == 0
