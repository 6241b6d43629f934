"""Jobs in the middle of their durable steps move, and go on where they were."""

from collections import Counter

import pytest

from bullpen import Bullpen, Context, Delivery, JobRef, State, Store
from bullpen.errors import JobMissing, MoveRefused
from bullpen.job.entries import EntryKind, JournalEntry
from bullpen.job.verdicts import Parked
from bullpen.moving import mover as mover_module
from bullpen.stores.base import FOREVER_MS, Counts
from bullpen.testing import run_until_empty
from bullpen.testing.conformance.moves import MAIL, add_one, claim, fresh_request, run_one, settle_one
from bullpen.testing.conformance.schedules import schedule_of
from tests.moving.places import Place
from tests.moving.test_interrupted import Fate, move_until_killed
from tests.moving.test_mover import following, move


class Shop:
    """The same program on any store; it tells which of its steps were done."""

    def __init__(self) -> None:
        self.done: list[str] = []

    def on(self, store: Store) -> Bullpen:
        pen = Bullpen(store)

        @pen.job(queue=MAIL)
        async def order(ctx: Context) -> list[object]:
            charged = await ctx.step("charge", self._do, "charged")
            first = await ctx.wait_for("approved")
            shipped = await ctx.step("ship", self._do, "shipped")
            second = await ctx.wait_for("delivered", timeout=86_400)
            return [charged, first, shipped, second]

        return pen

    def _do(self, what: str) -> str:
        self.done.append(what)
        return what


async def test_a_job_that_waits_for_a_signal_moves_there_and_back(source: Store, target: Store) -> None:
    """Its steps are done once each, wherever it is, and it wakes where it is signalled."""
    shop = Shop()
    here, there = shop.on(source), shop.on(target)
    job = await here.queue(MAIL).add("order")
    await run_until_empty(here)
    assert shop.done == ["charged"]

    await move(source, target)
    moved = there.queue(MAIL).job(job.id)
    assert await moved.signal("approved", {"by": "ada"}) == Delivery.WOKEN
    await run_until_empty(there)
    assert shop.done == ["charged", "shipped"]
    due_ms = (await moved.record()).run_at_ms

    await move(target, source)
    record = await job.record()
    assert (record.state, record.parked, record.run_at_ms) == (State.DELAYED, ("delivered",), due_ms)
    assert await job.signal("delivered", 3) == Delivery.WOKEN
    await run_until_empty(here)
    assert await job.result(timeout=20) == ["charged", {"by": "ada"}, "shipped", 3]
    assert shop.done == ["charged", "shipped"]
    with pytest.raises(JobMissing):
        await moved.record()


async def test_long_journals_move_in_portions(source: Store, target: Store, monkeypatch: pytest.MonkeyPatch) -> None:
    """Pages that their steps make short are followed by others, until all are there."""
    for module in ("sqlite.packing", "redis.exporting"):
        monkeypatch.setattr(f"bullpen.stores.{module}.PAGE_STEPS_BYTES", 1_000)
    monkeypatch.setattr(mover_module, "_PORTION_BYTES", 1_500)
    refs = [await add_one(source) for _ in range(7)]
    step = JournalEntry(0, "page", value=b'"%s"' % (b"x" * 600))
    for held in await claim(source, 7):
        await source.append_journal(held.job.ref, [step], epoch=held.lease.epoch)
        await settle_one(source, held.lease, Parked(signals=("approved",)))
    mover = await move(source, target)
    assert mover.queues[MAIL].moved == 7
    for ref in refs:
        assert (await target.read_journal(ref)).entries == (step,)


async def test_a_signal_to_the_old_store_is_carried_over(source: Store, target: Store) -> None:
    """As long as the job is there; afterwards its sender hears that it is gone."""
    ref = await add_one(source)
    await run_one(source, Parked(signals=("approved",)))
    async with following(source, target):
        with pytest.raises(JobMissing):
            await source.signal(ref, "approved", b"1", request=fresh_request())
    assert await target.signal(ref, "approved", b"1", request=fresh_request()) == Delivery.WOKEN


async def test_signals_survive_a_mover_that_is_killed_at_each_step(places: tuple[Place, Place]) -> None:
    """Each that was taken, by the one store or the other, is in the mailbox once when all is there."""
    origin, goal = places
    source, target = await origin.open(), await goal.open()
    refs = [await add_one(source) for _ in range(3)]
    for _ in refs:
        await run_one(source, Parked(signals=("never",)))
    sent: Counter[JobRef] = Counter()
    steps = 1
    while not await move_until_killed(source, target, Fate(steps, before=bool(steps % 2))):
        steps += 1
        for ref in refs:
            await _signal_one_of(source, target, ref, sent[ref])
            sent[ref] += 1
    assert steps > 5
    assert await target.counts(MAIL) == Counts(delayed=3)
    for ref in refs:
        await target.promote(ref)
    for held in await claim(target, 3):
        assert await _received(target, held.job.ref, held.lease.epoch) == list(range(sent[held.job.ref]))


async def _signal_one_of(source: Store, target: Store, ref: JobRef, n: int) -> None:
    try:
        await source.signal(ref, "paid", b"%d" % n, request=fresh_request())
    except JobMissing:
        await target.signal(ref, "paid", b"%d" % n, request=fresh_request())


async def _received(store: Store, ref: JobRef, epoch: int) -> list[int]:
    found: list[int] = []
    while entry := await store.receive(ref, JournalEntry(len(found), "paid", EntryKind.WAIT), epoch=epoch):
        assert entry.value is not None
        found.append(int(entry.value))
    return found


async def test_refuses_a_queue_with_a_schedule(source: Store, target: Store) -> None:
    """It would stay behind and stop in silence; nothing was changed."""
    await source.put_schedule(schedule_of(), next_ms=FOREVER_MS - 60_000, seen_ms=None)
    with pytest.raises(MoveRefused, match="schedules"):
        await move(source, target)
    assert await source.counts(MAIL) == Counts(delayed=1)
    assert list(await target.queues()) == []
