"""The read model by what events tell: jobs that need no look are the same as if they had been looked at."""

import random
from collections.abc import Sequence
from typing import Any

import msgspec
import pytest
from sqlalchemy import update

from bullpen import Failure, NewJob, Queue, State
from bullpen.job.events import Event, EventKind
from bullpen.job.record import CrashKind, JobRef
from bullpen.job.spec import Dedup, JobSpec, Keep
from bullpen.job.state import READY
from bullpen.job.verdicts import Completed, Failed, Postponed, Released, Retry, Settlement, Verdict
from bullpen.records.model import source
from bullpen.records.model.feeder import ModelFeeder
from bullpen.records.model.folding import fold
from bullpen.records.records import Records
from bullpen.records.tables.model import job as job_table
from bullpen.stores.base import FROM_START, EventPage, Store
from bullpen.testing.clock import ManualClock
from tests.records.comparing import check_model, check_rescan
from tests.support.around import StoreAround

_SPECS = [
    JobSpec(),
    JobSpec(tenant="acme"),
    JobSpec(tags=("b", "a")),
    JobSpec(tenant="acme", workspace="team", priority=7),
    JobSpec(priority=3),
    JobSpec(lifo=True),
    JobSpec(delay_ms=40),
    JobSpec(delay_ms=40, priority=2),
    JobSpec(group="g"),
    JobSpec(group="g", priority=4),
    JobSpec(start_by_ms=ManualClock().now_ms() + 100),
    JobSpec(keep_completed=Keep(count=0)),
    JobSpec(keep_completed=Keep(count=3)),
    JobSpec(dedup=Dedup(id="subject")),
]
_VERDICTS: list[Verdict] = [
    Completed(),
    Completed(b'{"n":1}'),
    Failed(Failure("no")),
    Retry(Failure("again"), delay_ms=0),
    Retry(Failure("again"), delay_ms=30),
    Postponed(20),
    Released(),
    Released(CrashKind.KILLED),
]


class Told(StoreAround):
    """Notes who is looked at. With `is_plain` its events tell no more than BullMQ's do."""

    def __init__(self, inner: Store, *, is_plain: bool = False) -> None:
        super().__init__(inner)
        self.looked: list[str] = []
        self._is_plain = is_plain

    async def look(self, queue: str, ids: Sequence[str]) -> Any:
        self.looked += ids
        return await self.inner.look(queue, ids)

    async def events(self, queue: str, **asked: Any) -> EventPage:
        page = await self.inner.events(queue, **asked)
        if not self._is_plain:
            return page
        events = [msgspec.structs.replace(one, recorded_ms=None, priority=0, is_gone=False) for one in page.events]
        return msgspec.structs.replace(page, events=tuple(events))


class Life:
    """Whatever can happen to jobs of one queue, as the dice fall."""

    def __init__(self, store: Store, clock: ManualClock, seed: int) -> None:
        self._store = store
        self._clock = clock
        self._dice = random.Random(seed)
        self._asked = 0

    async def go_on(self) -> None:
        dice = self._dice
        self._clock.advance(dice.choice([0, 0, 1, 15]))
        await dice.choices(
            [self._add, self._add_flow, self._run, self._steer, self._clean], weights=[6, 1, 10, 3, 0.5]
        )[0]()

    def _request(self) -> str:
        self._asked += 1
        return f"request {self._asked}"

    async def _add(self) -> None:
        own_id = self._dice.choice([None, None, f"own-{self._dice.randint(1, 6)}"])
        jobs = [NewJob("mail", f"name-{n}", id=own_id, spec=self._dice.choice(_SPECS)) for n in range(2)]
        await self._store.add(jobs if own_id is None else jobs[:1], request=self._request())

    async def _add_flow(self) -> None:
        children = tuple(NewJob("mail", "child", spec=JobSpec(tags=("c",) * n)) for n in range(2))
        await self._store.add([NewJob("mail", "parent", children=children)], request=self._request())

    async def _run(self) -> None:
        claimed = await self._store.claim({"mail": 2}, worker="w", lease_ms=60_000, request=self._request())
        ends = [Settlement(job.lease, self._dice.choice(_VERDICTS)) for job in claimed.jobs]
        if ends and self._dice.random() < 0.9:
            await self._store.settle(ends, request=self._request())

    async def _steer(self) -> None:
        state = self._dice.choice(list(State))
        for job in (await self._store.jobs("mail", state, limit=1)).jobs:
            if state in {State.FAILED, State.COMPLETED}:
                await self._store.retry(job.ref)
            elif state is State.DELAYED:
                await self._store.promote(job.ref)
            elif state in READY:
                await self._store.remove(job.ref)

    async def _clean(self) -> None:
        await self._store.clean("mail", State.COMPLETED, older_than_ms=0, limit=2)


@pytest.mark.parametrize("is_plain", [False, True], ids=["told", "as bullmq tells"])
@pytest.mark.parametrize("seed", [0, *(pytest.param(seed, marks=pytest.mark.soak) for seed in range(1, 10))])
async def test_rows_are_what_a_rescan_finds_whatever_happens_and_wherever_pages_end(
    records: Records, store: Store, clock: ManualClock, monkeypatch: pytest.MonkeyPatch, seed: int, is_plain: bool
) -> None:
    """A page may end between any two events, and the next one may be read by another feeder."""
    dice = random.Random(seed)
    feeder = records.feeder(Told(store, is_plain=is_plain))
    life = Life(store, clock, seed)
    for _ in range(12):
        for _ in range(dice.randint(1, 12)):
            await life.go_on()
        monkeypatch.setattr(source, "EVENTS", dice.choice([1, 2, 3, 7, 2_000]))
        if dice.random() < 0.3:
            await feeder.step()
            await feeder._lease.give_back()
            feeder = records.feeder(Told(store, is_plain=is_plain))
        else:
            await feeder.catch_up()
            await check_model(records, store)
    await feeder.catch_up()
    await check_model(records, store)
    await check_rescan(records, feeder)


async def test_a_plain_job_is_not_looked_at(records: Records, store: Store, clock: ManualClock) -> None:
    """Neither when it is added, nor when it runs and ends, kept or not."""
    around = Told(store)
    feeder = records.feeder(around)
    await _begin(store, feeder, clock)
    specs = [JobSpec(), JobSpec(tenant="acme", priority=2), JobSpec(group="g"), JobSpec(keep_completed=Keep(count=0))]
    await store.add([NewJob("mail", "work", spec=spec) for spec in specs], request="add")
    await feeder.catch_up()
    await check_model(records, store)
    clock.advance(5)
    claimed = await store.claim({"mail": 4}, worker="w", lease_ms=60_000, request="claim")
    await feeder.catch_up()
    await check_model(records, store)
    clock.advance(5)
    await store.settle([Settlement(job.lease, Completed()) for job in claimed.jobs], request="settle")
    await feeder.catch_up()
    assert around.looked == []
    await check_model(records, store)
    await check_rescan(records, feeder)


async def test_jobs_that_ended_with_the_oldest_one_are_looked_at_once(
    records: Records, store: Store, clock: ManualClock
) -> None:
    """Retention may have taken some of them; as long as it took none, later turns need not ask again."""
    told = Told(store)
    feeder, queue = records.feeder(told), Queue(store, "mail", clock=clock)
    await queue.add("work", id="zero")
    await feeder.catch_up()
    for number in range(3):
        clock.advance(1)
        for n in range(4):
            await queue.add("work", id=f"job-{number}-{n}")
        claimed = await store.claim({"mail": 5}, worker="w", lease_ms=60_000, request=f"claim {number}")
        told.looked.clear()
        await store.settle([Settlement(job.lease, Completed()) for job in claimed.jobs], request=f"settle {number}")
        await feeder.step()
    assert told.looked == []
    await check_model(records, store)


async def test_what_the_log_does_not_tell_is_looked_at(records: Records, store: Store, clock: ManualClock) -> None:
    around = Told(store)
    feeder = records.feeder(around)
    await _begin(store, feeder, clock)
    specs = [JobSpec(tags=("t",)), JobSpec(tenant="acme", workspace="w"), JobSpec(delay_ms=10)]
    added = await store.add([NewJob("mail", "work", spec=spec) for spec in specs], request="add")
    await feeder.catch_up()
    assert sorted(around.looked) == sorted(one.id for one in added)
    await check_rescan(records, feeder)


async def test_a_priority_that_changed_in_silence_is_seen_when_the_job_runs(
    records: Records, store: Store, clock: ManualClock
) -> None:
    feeder = records.feeder(store)
    await _begin(store, feeder, clock)
    (added,) = await store.add([NewJob("mail", "work", spec=JobSpec(priority=2))], request="add")
    await feeder.catch_up()
    await store.change_priority(JobRef("mail", added.id), 9)
    (claimed,) = (await store.claim({"mail": 1}, worker="w", lease_ms=60_000, request="claim")).jobs
    await feeder.catch_up()
    await check_rescan(records, feeder)
    await store.settle([Settlement(claimed.lease, Completed())], request="settle")
    await feeder.catch_up()
    await check_rescan(records, feeder)


async def test_fields_of_the_data_are_looked_up_each_time(records: Records, store: Store, clock: ManualClock) -> None:
    """Data may change in silence."""
    feeder = records.feeder(store, fields=["user"])
    await _begin(store, feeder, clock)
    job = await Queue(store, "mail", clock=clock).add("work", {"user": "ann"})
    await feeder.catch_up()
    await job.update_data({"user": "bob"})
    await store.claim({"mail": 1}, worker="w", lease_ms=60_000, request="claim")
    await feeder.catch_up()
    (row,) = (await records.jobs.list(limit=1)).jobs
    assert (row.state, row.fields) == ("active", {"user": "bob"})


async def test_what_events_record_is_what_the_record_says(store: Store, clock: ManualClock) -> None:
    await store.add([NewJob("mail", "work", id=f"job-{n}", spec=JobSpec(priority=n)) for n in range(2)], request="add")
    clock.advance(7)
    claimed = await store.claim({"mail": 2}, worker="w", lease_ms=60_000, request="claim")
    clock.advance(7)
    await store.settle([Settlement(job.lease, Completed()) for job in claimed.jobs], request="settle")
    page = await store.events("mail", after=FROM_START, limit=100, timeout_ms=0)
    for job in [await store.job(JobRef("mail", f"job-{n}")) for n in range(2)]:
        told = {event.kind: event for event in page.events if event.job_id == job.id and event.recorded_ms is not None}
        times = {kind: event.recorded_ms for kind, event in told.items()}
        assert times == {
            EventKind.ADDED: job.added_ms,
            EventKind.ACTIVE: job.started_ms,
            EventKind.COMPLETED: job.finished_ms,
        }
        assert {event.priority for event in told.values()} == {job.priority}


def test_a_page_that_ends_before_a_new_job_s_place_is_told_leaves_it_unclear() -> None:
    added = Event(EventKind.ADDED, "1", name="work", recorded_ms=5)
    assert fold([added]).unclear == ["1"]
    assert fold([added, Event(EventKind.DELAYED, "1", run_at_ms=9)]).unclear == ["1"]
    assert fold([added, Event(EventKind.WAITING, "1")]).told["1"].state is State.WAITING


def test_a_job_that_was_not_kept_is_gone_until_its_id_is_added_again() -> None:
    ended = [Event(EventKind.FAILED, "1"), Event(EventKind.COMPLETED, "1", is_gone=True)]
    assert fold(ended).gone == ["1"]
    again = [Event(EventKind.ADDED, "1", name="work", recorded_ms=5, priority=2), Event(EventKind.WAITING, "1")]
    assert fold(ended + again).told["1"].state is State.PRIORITIZED


async def _begin(store: Store, feeder: ModelFeeder, clock: ManualClock) -> None:
    """A queue that is known and scanned, with a completed job that is older than all that follow."""
    await store.add([NewJob("mail", "first")], request="add first")
    (first,) = (await store.claim({"mail": 1}, worker="w", lease_ms=60_000, request="claim first")).jobs
    await store.settle([Settlement(first.lease, Completed())], request="settle first")
    await feeder.catch_up()
    clock.advance(5)
    around = feeder._source.store
    if isinstance(around, Told):
        around.looked.clear()


async def test_tags_that_are_stored_in_another_spelling_are_the_same_tags(records: Records, store: Store) -> None:
    """As an older release wrote them: a scan writes the row again, and neither its words nor its tags twice."""
    await Queue(store, "mail").add("welcome", tags=["b", "ä"])
    feeder = records.feeder(store)
    await feeder.catch_up()
    async with records.database.writing() as connection:
        await connection.execute(update(job_table).values(tags=["b", "ä"]))
    await check_rescan(records, feeder)
    for word in ("b", "ä", "welcome"):
        found = await records.jobs.search(word)
        assert [sorted(job.tags) for job in found.jobs] == [["b", "ä"]]
