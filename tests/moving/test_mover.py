"""A queue moves from one store to another, of any two kinds, while it is in use."""

import asyncio
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager

import pytest

from bullpen import BadOption, CrashKind, EventKind, MoveRefused, NewJob, Queue, QueueMissing, State, Store
from bullpen.job.spec import Dedup, JobSpec, Keep
from bullpen.job.verdicts import Completed, Failed, Released, Retry
from bullpen.moving.mover import Mover, Progress, Watcher
from bullpen.stores.base import Added, AddOutcome, Counts
from bullpen.stores.moving import Move
from bullpen.stores.redis import RedisStore
from bullpen.testing.conformance.carrying import fill
from bullpen.testing.conformance.moves import (
    BOOM,
    MAIL,
    PATIENCE_S,
    add,
    add_many,
    add_one,
    claim_ids,
    claim_one,
    complete_one,
    run_one,
    settle_one,
)
from tests.moving.places import all_logs, all_records
from tests.worker.waiting import until


class Waiting(Watcher):
    """Tells when each queue has caught up."""

    def __init__(self) -> None:
        self._caught_up: dict[str, asyncio.Event] = {}

    def of(self, queue: str) -> asyncio.Event:
        return self._caught_up.setdefault(queue, asyncio.Event())

    def caught_up(self, progress: Progress) -> None:
        self.of(progress.queue).set()


async def move(source: Store, target: Store, *names: str) -> Mover:
    mover = Mover(source, target)
    async with asyncio.timeout(PATIENCE_S):
        await mover.move(names)
    return mover


@asynccontextmanager
async def following(source: Store, target: Store, queue: str = MAIL) -> AsyncIterator[Mover]:
    """A mover that goes on, once it has caught up."""
    waiting = Waiting()
    mover = Mover(source, target, waiting)
    task = asyncio.create_task(mover.move(follow=True))
    try:
        async with asyncio.timeout(PATIENCE_S):
            await waiting.of(queue).wait()
            yield mover
    finally:
        task.cancel()
        with pytest.raises(asyncio.CancelledError):
            await task


async def arrival(target: Store, job_id: str, queue: str = MAIL, cursor: str = "") -> None:
    """Return once this job was added there."""
    async with asyncio.timeout(PATIENCE_S):
        while True:
            page = await target.events(queue, after=cursor, limit=100, timeout_ms=1_000)
            cursor = page.cursor
            if any(event.kind == EventKind.ADDED and event.job_id == job_id for event in page.events):
                return


# ── what arrives ─────────────────────────────────────────────────────────────────────────


async def test_everything_is_as_it_was(source: Store, target: Store) -> None:
    """Jobs of every state with all their fields, their order and their logs."""
    await fill(source)
    records, logs = await all_records(source, MAIL), await all_logs(source, MAIL)
    mover = await move(source, target)
    assert await all_records(target, MAIL) == records
    assert await all_logs(target, MAIL) == logs
    assert mover.queues[MAIL].moved == len(logs)
    assert await source.counts(MAIL) == Counts(paused=True)
    assert not (await target.counts(MAIL)).paused


async def test_several_queues_move_at_once(source: Store, target: Store) -> None:
    """Each queue numbers its jobs for itself on some stores: equal ids of two queues are two jobs."""
    queues = ("mail", "calls", "reports")
    for queue in queues:
        await add_many(source, 5, queue)
    ids = {queue: [job.id for job in (await all_records(source, queue))[State.WAITING]] for queue in queues}
    await source.pause("calls")
    await move(source, target)
    for queue in queues:
        assert [job.id for job in (await all_records(target, queue))[State.WAITING]] == ids[queue]
        assert (await target.counts(queue)).paused == (queue == "calls")


async def test_only_the_queues_that_are_named_move(source: Store, target: Store) -> None:
    await add_many(source, 2)
    await add_many(source, 2, "calls")
    await move(source, target, "calls")
    assert await source.counts(MAIL) == Counts(waiting=2)
    assert list(await target.queues()) == ["calls"]


async def test_many_jobs_move_in_pages(source: Store, target: Store) -> None:
    """More than one page and more than one portion, in order."""
    jobs = [NewJob(MAIL, "big", b'"%s"' % (b"x" * 9_000)) for _ in range(450)]
    ids = [one.id for one in await add(source, *jobs)]
    await move(source, target)
    assert await claim_ids(target, 500) == ids


async def test_ids_and_subjects_stay_taken(source: Store, target: Store) -> None:
    """Those of jobs that are gone too."""
    gone = JobSpec(keep_completed=Keep(count=0), dedup=Dedup("throttled", ttl_ms=3_600_000))
    await add_one(source, own_id="gone", spec=gone)
    await complete_one(source)
    here = await add_one(source, spec=JobSpec(dedup=Dedup("simple")))
    await move(source, target)
    again = await add(
        target,
        NewJob(MAIL, "welcome", id="gone"),
        NewJob(MAIL, "welcome", spec=JobSpec(dedup=Dedup("throttled", ttl_ms=1_000))),
        NewJob(MAIL, "welcome", spec=JobSpec(dedup=Dedup("simple"))),
    )
    assert again == [
        Added("gone", AddOutcome.DUPLICATE),
        Added("gone", AddOutcome.DEDUPLICATED),
        Added(here.id, AddOutcome.DEDUPLICATED),
    ]


async def test_what_is_kept_for_later_arrives_behind_its_job(source: Store, target: Store) -> None:
    """Kept while another ran, which was handed back and moved: it is added where that one ends."""
    spec = JobSpec(dedup=Dedup("subject", keep_last_if_active=True))
    first = await add_one(source, spec=spec)
    held = await claim_one(source)
    await add(source, NewJob(MAIL, "welcome", b'{"n":2}', spec=spec))
    await settle_one(source, held.lease, Released(None))
    await move(source, target)
    assert await complete_one(target) == first
    assert (await claim_one(target)).job.data == b'{"n":2}'


# ── while it is in use ───────────────────────────────────────────────────────────────────


@pytest.mark.parametrize("verdict", [Completed(b'"done"'), Failed(BOOM), Retry(BOOM), Retry(BOOM, 60_000)])
async def test_a_running_job_is_waited_for(source: Store, target: Store, verdict: Completed | Failed | Retry) -> None:
    """It ends where it runs, and comes over as it ended; meanwhile nothing else is started there."""
    running = await add_one(source, spec=JobSpec(attempts=5))
    held = await claim_one(source)
    await add_many(source, 3)
    async with following(source, target) as mover:
        assert mover.queues[MAIL].active == 1
        assert await claim_ids(source) == []
    async with asyncio.TaskGroup() as tasks:
        moving = tasks.create_task(move(source, target))
        await settle_one(source, held.lease, verdict)
    assert moving.done()
    record = await target.job(running)
    assert (record.attempts_made, record.epoch) == (1, 1)
    assert sum(await _numbers(target)) == 4
    assert await source.counts(MAIL) == Counts(paused=True)


async def _numbers(store: Store, queue: str = MAIL) -> tuple[int, int, int, int]:
    counts = await store.counts(queue)
    return counts.waiting, counts.delayed, counts.completed, counts.failed


async def test_a_job_whose_worker_is_dead_comes_over(source: Store, target: Store) -> None:
    """No other worker has to be there to take it back; whether it crashed too often is not for the mover to say."""
    ref = await add_one(source)
    for _ in range(2):
        await run_one(source, Released(CrashKind.KILLED))
    await claim_one(source, lease_ms=1)
    await move(source, target)
    record = await target.job(ref)
    assert (record.state, record.stalls) == (State.WAITING, 3)


async def test_an_id_that_a_running_job_leaves_behind_stays_taken(source: Store, target: Store) -> None:
    """A job that was pruned when it ended, during the move, never came; its id did."""
    await add_one(source, own_id="own-1", spec=JobSpec(keep_completed=Keep(count=0)))
    held = await claim_one(source)
    waiting = Waiting()
    async with asyncio.timeout(PATIENCE_S), asyncio.TaskGroup() as tasks:
        # One run only: another would begin by telling all that is remembered by then.
        tasks.create_task(Mover(source, target, waiting).move())
        await waiting.of(MAIL).wait()
        await settle_one(source, held.lease, Completed())
    assert await add(target, NewJob(MAIL, "welcome", id="own-1")) == [Added("own-1", AddOutcome.DUPLICATE)]


async def test_late_adds_are_forwarded(source: Store, target: Store) -> None:
    """What producers of the old store still add arrives; what those of the new store add is not in its way."""
    await add_many(source, 3)
    async with following(source, target):
        own = await add_many(target, 2)
        late = await add_one(source)
        await arrival(target, late.id)
    assert len(await claim_ids(target)) == 6
    assert late not in own


async def test_a_new_queue_is_followed_too(source: Store, target: Store, monkeypatch: pytest.MonkeyPatch) -> None:
    """Late producers may be the first to add to a queue."""
    monkeypatch.setattr("bullpen.moving.mover._LOOK_FOR_QUEUES_S", 0.01)
    await add_one(source)
    async with following(source, target):
        late = await add_one(source, "calls")
        await arrival(target, late.id, "calls")


async def test_a_queue_that_someone_resumed_is_paused_again(source: Store, target: Store) -> None:
    await add_one(source)
    async with following(source, target):
        await source.resume(MAIL)
        late = await add_one(source)
        await arrival(target, late.id)
        await until(lambda: source.counts(MAIL), lambda counts: counts.paused, limit_s=60)


# ── back, and forth again ────────────────────────────────────────────────────────────────


async def test_a_queue_moves_back_and_forth(source: Store, target: Store) -> None:
    """Each time with new jobs on the way, and no id meets another."""
    await add_many(source, 2)
    here, there = source, target
    for turn in range(4):
        await move(here, there)
        here, there = there, here
        await add_many(here, 2)
        assert not (await here.counts(MAIL)).paused
        assert (await here.counts(MAIL)).waiting == 4 + 2 * turn
    ids = await claim_ids(here)
    assert len(set(ids)) == 10


async def test_stragglers_come_with_the_same_command(source: Store, target: Store) -> None:
    """Long after a move, what was added to the old store in spite of it is carried over too."""
    await add_many(source, 2)
    await move(source, target)
    await complete_one(target)
    await add_many(target, 1)
    await add_many(source, 2)
    await move(source, target)
    assert await target.counts(MAIL) == Counts(waiting=4, completed=1)


# ── refusals ─────────────────────────────────────────────────────────────────────────────


async def test_refuses_a_target_with_jobs_of_its_own(source: Store, target: Store) -> None:
    """And leaves both as they were: also the queues that could have moved."""
    await add_one(source)
    await add_one(source, "calls")
    await add_one(target)
    with pytest.raises(MoveRefused, match="'mail'"):
        await move(source, target)
    assert await source.counts("calls") == Counts(waiting=1)
    assert await source.counts(MAIL) == await target.counts(MAIL) == Counts(waiting=1)


async def test_refuses_the_same_place_twice(source: Store) -> None:
    with pytest.raises(BadOption, match="same place"):
        Mover(source, source.another())


async def test_refuses_a_queue_that_is_not_there(source: Store, target: Store) -> None:
    with pytest.raises(QueueMissing):
        await move(source, target, MAIL)


async def test_the_second_of_two_movers_takes_over(source: Store, target: Store) -> None:
    """The first one ends with an error and no harm."""
    await add_many(source, 3)
    async with asyncio.timeout(PATIENCE_S):
        waiting = Waiting()
        first = asyncio.create_task(Mover(source, target, waiting).move(follow=True))
        await waiting.of(MAIL).wait()
        async with following(source, target):
            late = await add_one(source)
            await arrival(target, late.id)
            with pytest.raises(ExceptionGroup) as ended:
                await first
    assert ended.group_contains(MoveRefused, match="taken over")
    assert await target.counts(MAIL) == Counts(waiting=4)


async def test_who_was_taken_over_hears_of_it_though_nothing_comes(source: Store, target: Store) -> None:
    await add_many(source, 3)
    waiting = Waiting()
    first = asyncio.create_task(Mover(source, target, waiting).move(follow=True))
    async with asyncio.timeout(PATIENCE_S):
        await waiting.of(MAIL).wait()
        await target.begin_move(MAIL, Move(origin=source.place, run="another", last_id=3, paused=False))
        with pytest.raises(ExceptionGroup) as ended:
            await first
    assert ended.group_contains(MoveRefused, match="taken over")


async def test_a_worker_s_result_is_found_on_the_target(source: Store, target: Store) -> None:
    """A job that ended before the move is awaited where it is now."""
    job = await Queue(source, MAIL).add("sum")
    await run_one(source, Completed(b"42"))
    await move(source, target)
    assert await Queue(target, MAIL).job(job.id).result(PATIENCE_S) == 42


async def test_retention_goes_on_for_moved_jobs(source: Store, target: Store) -> None:
    """What moved counts among the newest that are kept."""
    spec = JobSpec(keep_completed=Keep(count=2))
    await add_many(source, 3, spec=spec)
    await complete_one(source)
    await complete_one(source)
    await move(source, target)
    await complete_one(target)
    assert (await target.counts(MAIL)).completed == 2


async def test_a_place_is_the_same_for_all_its_stores(source: Store, target: Store) -> None:
    assert source.place == source.another().place != target.place


def test_a_place_is_told_without_its_password() -> None:
    place = RedisStore("redis://user:secret@example.com/3?prefix=p").place
    assert "secret" not in place
    assert place != RedisStore("redis://user:secret@example.com/4?prefix=p").place
