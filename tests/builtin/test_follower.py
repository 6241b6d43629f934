"""From events to deliveries: the right ones, for the right receivers, each once."""

import asyncio
import contextlib
import random
import sys
import uuid
from collections.abc import AsyncIterator, Sequence
from pathlib import Path
from typing import Any

import msgspec
import pytest

from bullpen import EventKind, Failure, FailureKind, NewJob, State, StoreFull
from bullpen.builtin.follower import Follower
from bullpen.builtin.messages import QUEUE
from bullpen.job.limits import GroupLimits
from bullpen.job.record import JobRecord, JobRef
from bullpen.job.spec import JobSpec
from bullpen.job.verdicts import Completed, Failed, Retry, Settlement, Verdict
from bullpen.records import turn_lease
from bullpen.records.records import Records
from bullpen.records.webhooks import NewWebhook, Webhook
from bullpen.stores.base import MAX_EVENTS, Added, Store
from bullpen.testing.clock import ManualClock
from tests.builtin.following import HOLD_MS
from tests.support.around import StoreAround
from tests.support.places import Place

_ROOT = Path(__file__).parents[2]
_URL = "https://example.com/hook"
only_on_files = pytest.mark.parametrize("kinds", [("sqlite", "sqlite")], ids=["files"])


async def hook(records: Records, **options: Any) -> Webhook:
    options.setdefault("name", "ops")
    return (await records.webhooks.create(NewWebhook(url=_URL, **options), created_by="ann"))[0]


async def work(store: Store, queue: str, verdict: Verdict | None = None, *, tenant: str | None = None) -> str:
    """The id of a job that was added and ended so."""
    spec = JobSpec(tenant=tenant, attempts=3)
    (added,) = await store.add([NewJob(queue, "work", b'{"card":"4711"}', spec=spec)], request=uuid.uuid4().hex)
    claimed = await store.claim({queue: 1}, worker="w", lease_ms=60_000, request=uuid.uuid4().hex)
    settlements = [Settlement(job.lease, verdict or Completed(b'{"iban":"DE1"}')) for job in claimed.jobs]
    await store.settle(settlements, request=uuid.uuid4().hex)
    return added.id


async def deliveries(store: Store, webhook: Webhook | None = None) -> list[JobRecord]:
    """The jobs that are to deliver, in no special order."""
    found: list[JobRecord] = []
    cursor: str | None = None
    if QUEUE not in await store.queues():
        return []
    while True:
        page = await store.jobs(QUEUE, State.PRIORITIZED, limit=500, cursor=cursor)
        found += page.jobs
        cursor = page.next_cursor
        if cursor is None:
            return [job for job in found if webhook is None or job.spec.group == webhook.id]


def told(jobs: list[JobRecord]) -> list[dict[str, Any]]:
    return sorted((msgspec.json.decode(job.data)["event"] for job in jobs), key=lambda one: str(one.get("job_id")))


async def test_a_result_that_is_no_json_is_told_as_none(store: Store, records: Records) -> None:
    webhook = await hook(records, kinds=["completed"], with_result=True)
    done = await work(store, "mail", Completed(b"no JSON"))
    await Follower(records, store).catch_up()
    (event,) = told(await deliveries(store, webhook))
    assert (event["job_id"], event.get("result")) == (done, None)


async def test_a_queue_that_cannot_be_read_holds_up_no_other(store: Store, address: str) -> None:
    """It is left alone for a while, and loses nothing by that."""
    clock = ManualClock()
    around = StoreAround(store)
    reads = 0

    async def events(queue: str, **asked: Any) -> Any:
        nonlocal reads
        if queue == "a":
            reads += 1
            raise ValueError("an event that another program wrote")
        return await store.events(queue, **asked)

    around.events = events
    async with await Records.open(address, clock=clock) as records:
        webhook = await hook(records, kinds=["completed"])
        follower = Follower(records, around)
        ids = {queue: await work(store, queue) for queue in ("a", "b")}
        await follower.catch_up()
        await follower.catch_up()
        assert [event["job_id"] for event in told(await deliveries(store, webhook))] == [ids["b"]]
        assert reads == 1
        around.events = store.events
        clock.advance(60_000)
        await follower.catch_up()
        assert {event["queue"] for event in told(await deliveries(store, webhook))} == {"a", "b"}


async def test_a_subscription_is_told_of_what_it_asked_for(store: Store, records: Records) -> None:
    every = await hook(records, name="every")
    some = await hook(records, name="some", queues=["mail"], kinds=["failed", "stalled"])
    with_result = await hook(records, name="results", kinds=["completed"], with_result=True)
    done = await work(store, "mail")
    failure = Failure("card 4711 was declined", FailureKind.ERROR, "Declined", "a stack")
    failed = await work(store, "mail", Failed(failure), tenant="acme")
    elsewhere = await work(store, "films", Failed(failure))
    await Follower(records, store).catch_up()
    assert {event["job_id"] for event in told(await deliveries(store, every))} == {done, failed, elsewhere}
    (one,) = await deliveries(store, some)
    (event,) = told([one])
    assert event.pop("at_ms") > 0
    assert event == {
        "kind": "failed",
        "queue": "mail",
        "job_id": failed,
        "name": "work",
        "tenant": "acme",
        "attempts_made": 1,
        "failure": {"kind": "error", "type": "Declined", "message": "card 4711 was declined"},
    }
    (completed,) = told(await deliveries(store, with_result))
    assert completed["result"] == {"iban": "DE1"}
    others = await deliveries(store, every) + await deliveries(store, some)
    assert not any(b"iban" in job.data or b'"card"' in job.data or b"stack" in job.data for job in others)
    assert all((job.tenant, job.spec.tags) == (None, (f"webhook:{every.id}",)) for job in others if job != one)


async def test_a_tenants_subscription_hears_of_its_own_only(store: Store, records: Records) -> None:
    kinds = list(EventKind)
    acme = await hook(records, tenant="acme", kinds=kinds)
    globex = await hook(records, tenant="globex", kinds=kinds)
    own = await work(store, "mail", tenant="acme")
    await work(store, "mail", tenant="globex")
    await work(store, "mail")
    await store.pause("mail")
    await Follower(records, store).catch_up()
    heard = await deliveries(store, acme)
    assert {event["job_id"] for event in told(heard)} == {own}
    assert {event["tenant"] for event in told(heard)} == {"acme"}
    assert {job.tenant for job in heard} == {"acme"}, "whoever lists jobs sees its own deliveries"
    assert {event["tenant"] for event in told(await deliveries(store, globex))} == {"globex"}


async def test_a_delivery_begets_no_other(store: Store, records: Records) -> None:
    await hook(records, kinds=list(EventKind))
    await hook(records, queues=[QUEUE], kinds=list(EventKind))
    await work(store, "mail")
    follower = Follower(records, store)
    await follower.catch_up()
    before = len(await deliveries(store))
    assert before > 0
    claimed = await store.claim({QUEUE: 3}, worker="w", lease_ms=60_000, request="claim")
    verdicts: list[Verdict] = [Completed(), Failed(Failure("no")), Retry(Failure("again"), 10_000)]
    await store.settle([Settlement(job.lease, v) for job, v in zip(claimed.jobs, verdicts, strict=True)], request="s")
    await follower.catch_up()
    assert len(await deliveries(store)) == before - 3


async def test_what_was_read_twice_is_added_once(store: Store, records: Records) -> None:
    """As if it had died after the add, before its place was written."""
    webhook = await hook(records)
    for _ in range(5):
        await work(store, "mail")
    follower = Follower(records, store)
    await follower.catch_up()
    before = {job.id for job in await deliveries(store, webhook)}
    assert len(before) == 5
    follower._cursors.clear()
    await follower.catch_up()
    assert {job.id for job in await deliveries(store, webhook)} == before


class _Stumbling(StoreAround):
    """Adds, or does not, and then fails."""

    does_add = False

    async def add(self, jobs: Sequence[NewJob], *, request: str) -> Sequence[Added]:
        if self.does_add:
            await self.inner.add(jobs, request=request)
        raise StoreFull("no room")


@pytest.mark.parametrize("does_add", [True, False])
async def test_the_place_moves_on_only_when_the_jobs_are_there(store: Store, records: Records, does_add: bool) -> None:
    webhook = await hook(records)
    ids = {await work(store, "mail") for _ in range(3)}
    stumbling = _Stumbling(store)
    stumbling.does_add = does_add
    first = Follower(records, stumbling)
    for _ in range(2):
        with pytest.raises(StoreFull):
            await first.catch_up()
    assert len(await deliveries(store, webhook)) == (3 if does_add else 0)
    first.start()
    await first.stop()
    await Follower(records, store).catch_up()
    found = await deliveries(store, webhook)
    assert (len(found), {event["job_id"] for event in told(found)}) == (3, ids)


@only_on_files
async def test_nobody_is_told_of_what_was_before(place: Place, address: str) -> None:
    clock = ManualClock()
    store = place.store(clock=clock)
    await store.open()
    async with await Records.open(address, clock=clock) as records:
        follower = Follower(records, store, find_every=0)
        await work(store, "mail")
        clock.advance(60_000)
        first = await hook(records)
        await follower.catch_up()
        assert await deliveries(store) == []
        await work(store, "mail")
        await follower.catch_up()
        assert len(await deliveries(store, first)) == 1
        await records.webhooks.change(first.id, is_enabled=False)
        await work(store, "mail")
        await follower.catch_up()
        clock.advance(60_000)
        await records.webhooks.change(first.id, is_enabled=True)
        await work(store, "films")
        await follower.catch_up()
        assert [event["queue"] for event in told(await deliveries(store, first))].count("films") == 1
        assert len(await deliveries(store, first)) == 2, "what happened while it was off is not made up for"
        clock.advance(60_000)
        await records.webhooks.change(first.id, queues=["films"])
        await follower.catch_up()
        await records.webhooks.change(first.id, queues=None)
        await follower.catch_up()
        assert len(await deliveries(store, first)) == 2, "the log that is read anew tells nothing twice"
    await store.close()


@only_on_files
async def test_dropped_events_are_told_in_the_log(
    store: Store, records: Records, caplog: pytest.LogCaptureFixture
) -> None:
    webhook = await hook(records, kinds=["paused"])
    await store.pause("mail")
    follower = Follower(records, store)
    await follower.catch_up()
    assert len(await deliveries(store, webhook)) == 1
    for _ in range(MAX_EVENTS // 500 + 2):
        await store.add([NewJob("mail", "work") for _ in range(500)], request=uuid.uuid4().hex)
    await store.resume("mail")
    await store.pause("mail")
    await follower.catch_up()
    assert "events of queue mail were dropped" in caplog.text
    assert len(await deliveries(store, webhook)) == 2, "it goes on"


@only_on_files
async def test_one_receivers_limit_holds_up_nobody_else(
    store: Store, records: Records, caplog: pytest.LogCaptureFixture
) -> None:
    limited, free = await hook(records), await hook(records)
    await store.set_group(QUEUE, limited.id, GroupLimits(max_size=1))
    for _ in range(3):
        await work(store, "mail")
    await Follower(records, store).catch_up()
    assert (len(await deliveries(store, limited)), len(await deliveries(store, free))) == (1, 3)
    assert "is dropped" in caplog.text


async def test_one_of_several_follows_and_another_takes_over(store: Store, records: Records) -> None:
    webhook = await hook(records)
    first, second = Follower(records, store), Follower(records, store)
    await work(store, "mail")
    assert await first.step()
    await work(store, "mail")
    assert not await second.step()
    assert len(await deliveries(store, webhook)) == 1
    first.start()
    await first.stop()
    await second.catch_up()
    assert len(await deliveries(store, webhook)) == 2


async def test_an_alert_is_told_once_in_a_while(store: Store, records: Records) -> None:
    """When so many have failed for good; not of those that were cancelled, and not of other tenants'."""
    condition = {"failed": 3, "minutes": 10_080}
    all_, acme = [
        await records.alerts.save("a", condition=condition, channel={"slack": _URL}, tenant=tenant)
        for tenant in (None, "acme")
    ]
    await records.alerts.save("odd", condition={"oldest_minutes": 3}, channel={"webhook": _URL})
    await records.alerts.save("off", condition=condition, channel={"webhook": _URL}, is_enabled=False)
    failed = Failed(Failure("no"))
    await work(store, "mail", failed)
    await work(store, "films", failed)
    (waiting,) = await store.add([NewJob("mail", "work")], request="one")
    await store.cancel(JobRef("mail", waiting.id), reason="enough")
    follower = Follower(records, store)
    await follower.catch_up()
    assert await deliveries(store) == []
    await work(store, "mail", failed, tenant="acme")
    await work(store, "mail", failed, tenant="acme")
    await follower.catch_up()
    (one,) = await deliveries(store)
    data = msgspec.json.decode(one.data)
    assert (one.name, data["alert"], data["failed"], data["event"]["kind"]) == ("alert", all_.id, 3, "failed")
    await work(store, "mail", failed, tenant="acme")
    await follower.catch_up()
    assert sorted(msgspec.json.decode(job.data)["alert"] for job in await deliveries(store)) == sorted(
        [all_.id, acme.id]
    )


async def test_an_alert_of_one_name_counts_jobs_of_that_name(store: Store, records: Records) -> None:
    """Others that fail in the same queue are no reason to tell it."""
    condition = {"failed": 2, "minutes": 10_080, "name": "work", "severity": "high"}
    alert = await records.alerts.save("a", condition=condition, channel={"slack": _URL})
    other = {**condition, "name": "another"}
    await records.alerts.save("b", condition=other, channel={"slack": _URL})
    for _ in range(2):
        await work(store, "mail", Failed(Failure("no")))
    await Follower(records, store).catch_up()
    assert [msgspec.json.decode(job.data)["alert"] for job in await deliveries(store)] == [alert.id]


# ── kills ────────────────────────────────────────────────────────────────────────────────


@contextlib.asynccontextmanager
async def _following(address: str, place: Place) -> AsyncIterator[None]:
    """A follower, which is killed at the end of the block."""
    command = [sys.executable, "-m", "tests.builtin.following", address, place.address]
    process = await asyncio.create_subprocess_exec(*command, cwd=_ROOT, stdout=asyncio.subprocess.PIPE)
    assert process.stdout is not None
    await process.stdout.readline()
    try:
        yield
    finally:
        assert process.returncode is None, "it ends by a kill only"
        process.kill()
        await process.wait()


@pytest.mark.timeout(300)
async def test_whoever_follows_may_die_at_any_moment(
    store: Store, place: Place, address: str, records: Records, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Every event that somebody asked for is a delivery, and none is two."""
    monkeypatch.setattr(turn_lease, "HOLD_MS", HOLD_MS)
    dice = random.Random()
    both, failures = await hook(records), await hook(records, kinds=["failed"])
    done: set[str] = set()
    failed: set[str] = set()
    for _ in range(4):
        async with _following(address, place):
            before = len(await deliveries(store))
            done.add(f"mail/{await work(store, 'mail')}")
            while len(await deliveries(store)) == before:
                await asyncio.sleep(0.05)  # until it is at work
            for _ in range(dice.randint(3, 25)):
                queue = dice.choice(["mail", "films"])
                if dice.random() < 0.5:
                    done.add(f"{queue}/{await work(store, queue)}")
                else:
                    failed.add(f"{queue}/{await work(store, queue, Failed(Failure('no')))}")
    last = Follower(records, store)
    while not await last._is_our_turn():
        await asyncio.sleep(0.05)  # the lease of the dead is not over
    await last.catch_up()
    for webhook, wanted in ((both, done | failed), (failures, failed)):
        jobs = await deliveries(store, webhook)
        assert sorted(f"{event['queue']}/{event['job_id']}" for event in told(jobs)) == sorted(wanted)
        assert len({job.id for job in jobs}) == len(jobs)
