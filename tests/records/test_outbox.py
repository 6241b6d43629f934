"""The outbox: what a transaction commits is added, once; what it takes back is not."""

import asyncio
import os
from collections.abc import AsyncIterator, Sequence
from typing import Any

import pytest
from sqlalchemy import create_engine, insert
from sqlalchemy.ext.asyncio import AsyncSession
from sqlalchemy.orm import Session

from bullpen import Bullpen, Context, NewJob, RecordMissing, State, StoreUnavailable, Worker, WorkerOptions
from bullpen.job.limits import GroupLimits
from bullpen.job.record import JobRef
from bullpen.job.spec import JobSpec, Keep
from bullpen.job.verdicts import Completed, Settlement
from bullpen.records import outbox
from bullpen.records.records import Records
from bullpen.records.relay import OutboxRelay
from bullpen.records.tables.outbox import OutboxRow
from bullpen.stores.base import ID_MEMORY_MS, Store
from bullpen.testing.clock import ManualClock
from tests.support.outage import OutageStore
from tests.support.places import Place
from tests.support.working import working

MAIL = NewJob("mail", "welcome", b'{"user_id":42}')
GONE = NewJob("mail", "welcome", b"1", spec=JobSpec(keep_completed=Keep(count=0)))


@pytest.fixture
async def relay(records: Records, store: Store, clock: ManualClock) -> OutboxRelay:
    return OutboxRelay(records.database.engine, store, clock=clock)


async def _write(records: Records, *jobs: NewJob) -> list[str]:
    async with AsyncSession(records.database.engine) as session, session.begin():
        return [outbox.add(session, job) for job in jobs]


async def _run_one(store: Store) -> str:
    claimed = await store.claim({"mail": 1}, worker="w", lease_ms=1_000, request=os.urandom(8).hex())
    lease = claimed.jobs[0].lease
    await store.settle([Settlement(lease, Completed())], request=os.urandom(8).hex())
    return lease.ref.id


async def test_what_is_committed_is_added_and_the_row_is_gone(
    records: Records, store: Store, relay: OutboxRelay
) -> None:
    (job_id,) = await _write(records, MAIL)
    assert (await relay.standing()).pending == 1
    assert await relay.send() == 1
    job = await store.job(JobRef("mail", job_id))
    assert (job.name, job.data) == ("welcome", b'{"user_id":42}')
    assert (await relay.standing()).pending == 0
    assert await relay.send() == 0


async def test_what_is_taken_back_is_never_added(records: Records, store: Store, relay: OutboxRelay) -> None:
    async with AsyncSession(records.database.engine) as session:
        outbox.add(session, MAIL)
        await session.flush()
        await session.rollback()
    assert await relay.send() == 0
    assert await store.queues() == []


async def test_a_plain_session_and_a_plain_connection_will_do(
    tmp_path_factory: pytest.TempPathFactory, store: Store, clock: ManualClock
) -> None:
    """The application's own database, with no async in it, and no more than the one table of ours."""
    engine = create_engine(f"sqlite:///{tmp_path_factory.mktemp('own') / 'own.db'}")
    outbox.metadata.create_all(engine)
    with Session(engine) as session, session.begin():
        first = outbox.add(session, MAIL)
    with engine.begin() as connection:
        connection.execute(outbox.statement(MAIL))
    relay = OutboxRelay(engine, store, clock=clock)
    assert await relay.send() == 2
    assert (await store.counts("mail")).waiting == 2
    assert (await store.job(JobRef("mail", first))).state == State.WAITING
    engine.dispose()


async def test_job_types_prepare_what_is_added(records: Records, store: Store, relay: OutboxRelay) -> None:
    pen = Bullpen(store)

    @pen.job(queue="mail", attempts=3)
    async def welcome(ctx: Context, user_id: int) -> None: ...

    (job_id,) = await _write(records, welcome.options(tenant="acme").prepare(user_id=42))
    await relay.send()
    job = await store.job(JobRef("mail", job_id))
    assert (job.tenant, job.spec.attempts, job.data) == ("acme", 3, b'{"user_id":42}')


async def test_a_delay_counts_from_the_commit(
    records: Records, store: Store, relay: OutboxRelay, clock: ManualClock
) -> None:
    """A relay that comes an hour later does not make it an hour longer."""
    new = NewJob("mail", "welcome", spec=JobSpec(delay_ms=5_000))
    row = outbox.row_of(new) | {"written_ms": clock.now_ms() - 2_000}
    async with records.database.writing() as connection:
        await connection.execute(insert(OutboxRow).values(**row))
    await relay.send()
    assert (await store.job(JobRef("mail", row["job_id"]))).run_at_ms == clock.now_ms() + 3_000


async def test_a_row_that_is_sent_twice_makes_one_job(
    records: Records, store: Store, clock: ManualClock, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The relay died after the add; the job ran and was pruned; another relay sends the row again."""
    dying = OutboxRelay(records.database.engine, store, clock=clock)
    monkeypatch.setattr(dying, "_settle", lambda _: asyncio.sleep(0))
    (job_id,) = await _write(records, GONE)
    await dying.send()
    assert await _run_one(store) == job_id
    clock.advance(ID_MEMORY_MS - 2 * 3_600_000)
    assert await OutboxRelay(records.database.engine, store, clock=clock).send() == 1
    assert (await store.counts("mail")).unfinished == 0


async def test_a_row_in_doubt_is_left_to_a_person(
    records: Records, store: Store, relay: OutboxRelay, clock: ManualClock, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Past the store's memory nobody can tell whether the job ran: it is not added a second time by guess."""
    dying = OutboxRelay(records.database.engine, store, clock=clock)
    monkeypatch.setattr(dying, "_settle", lambda _: asyncio.sleep(0))
    ran, kept = await _write(records, GONE, MAIL)
    await dying.send()
    assert await _run_one(store) == ran
    clock.advance(ID_MEMORY_MS + 1)
    await relay.send()
    assert (await store.counts("mail")).waiting == 1, "the one that is still there needs nobody"
    (problem,) = await relay.problems()
    assert (problem.job_id, (await relay.standing()).pending) == (ran, 0)
    assert "in doubt" in problem.problem
    await relay.resend(problem.number)
    await relay.send()
    assert (await store.counts("mail")).waiting == 2
    with pytest.raises(RecordMissing):
        await relay.discard(problem.number)
    assert kept != ran


async def test_a_row_that_waited_long_and_was_never_tried_is_sent(
    records: Records, store: Store, relay: OutboxRelay, clock: ManualClock
) -> None:
    await _write(records, MAIL)
    clock.advance(10 * ID_MEMORY_MS)
    await relay.send()
    assert (await store.counts("mail")).waiting == 1


async def test_an_outage_longer_than_the_memory_puts_nothing_in_doubt(
    records: Records, store: Store, clock: ManualClock
) -> None:
    """What is written while the store is away is not tried before it is back."""
    outage = OutageStore(store)
    relay = OutboxRelay(records.database.engine, outage, clock=clock)
    relay._is_away = outage.is_away = True
    await _write(records, MAIL)

    async def away() -> None:
        raise StoreUnavailable("away")

    outage.workers = away
    with pytest.raises(StoreUnavailable):
        await relay.send()
    clock.advance(2 * ID_MEMORY_MS)
    outage.is_away = False
    del outage.workers
    assert await relay.send() == 1
    assert (await store.counts("mail")).waiting == 1


async def test_a_lost_answer_adds_nothing_twice(records: Records, store: Store, clock: ManualClock) -> None:
    outage = OutageStore(store)
    outage.answers_to_lose = 1
    await _write(records, MAIL, MAIL)
    await OutboxRelay(records.database.engine, outage, clock=clock).send()
    assert (await store.counts("mail")).waiting == 2


async def test_a_row_that_is_refused_does_not_hinder_the_others(
    records: Records, store: Store, relay: OutboxRelay, clock: ManualClock
) -> None:
    """A full group is tried again; what can never be added is told as a problem."""
    await store.set_group("mail", "acme", GroupLimits(max_size=1))
    grouped = NewJob("mail", "welcome", spec=JobSpec(group="acme", tenant="acme"))
    await _write(records, grouped, grouped, MAIL)
    async with AsyncSession(records.database.engine) as session, session.begin():
        session.add(OutboxRow(job_id="odd", queue="mail", job=b"{", written_ms=0, held_until_ms=0))
    await relay.send()
    assert (await store.counts("mail")).waiting == 2
    (problem,) = await relay.problems()
    assert (problem.job_id, problem.problem.partition(":")[0]) == ("odd", "bad-data")
    await relay.discard(problem.number)
    await _run_one(store)
    await _run_one(store)
    clock.advance(2 * ID_MEMORY_MS)
    await relay.send()
    assert (await store.counts("mail")).waiting == 1
    assert (await relay.standing()).problems == 0


async def test_several_relays_share_the_rows(records: Records, store: Store) -> None:
    await _write(records, *[MAIL] * 100)
    relays = [OutboxRelay(records.database.engine, store, batch=7) for _ in range(4)]

    async def send_all(one: OutboxRelay) -> int:
        return sum([sent async for sent in _sent(one)])

    assert sum(await asyncio.gather(*map(send_all, relays))) == 100
    assert (await store.counts("mail")).waiting == 100


async def _sent(relay: OutboxRelay) -> AsyncIterator[int]:
    while sent := await relay.send():
        yield sent


async def test_a_running_relay_sees_what_is_committed(records: Records, place: Place) -> None:
    store = place.store()
    await store.open()
    seen = asyncio.Event()

    async def handle(ctx: Context) -> None:
        seen.set()

    worker = Worker(store, {"mail": handle}, WorkerOptions())
    async with OutboxRelay(records.database.engine, store) as relay, working(worker), asyncio.timeout(60):
        await _write(records, MAIL)
        relay.nudge()
        await seen.wait()
    await relay.stop()
    await store.close()


class _SurprisedRelay(OutboxRelay):
    """Meets what nobody foresaw, once."""

    def __init__(self, *given: Any, **more: Any) -> None:
        super().__init__(*given, **more)
        self.surprises = [ZeroDivisionError("nobody foresaw this")]

    async def _add(self, jobs: Sequence[NewJob]) -> None:
        if self.surprises:
            raise self.surprises.pop()
        await super()._add(jobs)


async def test_a_relay_goes_on_after_an_error_that_nobody_foresaw(
    records: Records, store: Store, caplog: pytest.LogCaptureFixture
) -> None:
    """It would be gone without a word, and the rows with it."""
    (job_id,) = await _write(records, MAIL)
    async with _SurprisedRelay(records.database.engine, store, hold_ms=1) as relay, asyncio.timeout(30):
        while (await relay.standing()).pending:
            await asyncio.sleep(0.01)
    assert (await store.job(JobRef("mail", job_id))).state == State.WAITING
    assert [record.message for record in caplog.records if record.levelname == "ERROR"] == [
        "the outbox relay met an error, trying again"
    ]
