"""Many jobs that sleep or wait: they hold no slot, and cost the others nothing."""

import sqlite3
from pathlib import Path

from bullpen import NewJob, SqliteStore, State
from bullpen.job.entries import EntryKind, EntryState, JournalEntry
from bullpen.job.verdicts import Parked, Settlement
from bullpen.stores.base import Store
from bullpen.stores.sqlite.claiming import Claimant, claim
from bullpen.stores.sqlite.tokens import ClaimToken
from bullpen.stores.sqlite.transaction import QueueBook, Transaction
from bullpen.testing.conformance.moves import fresh_request
from tests.journal.conftest import AnyHarness

_MANY = 10_000
_BATCH = 1_000
_DAY_MS = 86_400_000


async def park(store: Store, count: int, *, journal: bool = False) -> None:
    """Half of them sleep, the others wait for a signal."""
    now_ms = store.clock.now_ms()
    for start in range(0, count, _BATCH):
        some = min(_BATCH, count - start)
        await store.add([NewJob("work", "sleeper")] * some, request=fresh_request())
        claimed = await store.claim({"work": some}, worker="w", lease_ms=60_000, request=fresh_request())
        assert len(claimed.jobs) == some
        if journal:
            for job in claimed.jobs:
                asleep = JournalEntry(0, "sleep", EntryKind.SLEEP, EntryState.OPEN, until_ms=now_ms + _DAY_MS)
                await store.append_journal(job.lease.ref, [asleep], epoch=job.lease.epoch)
        verdicts = [Parked(now_ms + _DAY_MS), Parked(None, ("approved",))]
        await store.settle(
            [Settlement(job.lease, verdicts[n % 2]) for n, job in enumerate(claimed.jobs)], request=fresh_request()
        )


async def test_ten_thousand_parked_jobs_hold_no_slot(harness: AnyHarness) -> None:
    """None of them is active or has a lease; a new job is claimed at once, and one that is signalled too."""
    store = await harness.open()
    await park(store, _MANY)
    counts = await store.counts("work")
    assert (counts.delayed, counts.active, counts.waiting) == (_MANY, 0, 0)
    assert not await store.wait(["work"], timeout_ms=0)
    (added,) = await store.add([NewJob("work", "new")], request=fresh_request())
    claimed = await store.claim({"work": 5}, worker="w", lease_ms=60_000, request=fresh_request())
    assert [job.job.id for job in claimed.jobs] == [added.id]
    waiting = next(job for job in (await store.jobs("work", State.DELAYED, limit=1, newest_first=True)).jobs)
    assert waiting.parked == ("approved",)
    await store.signal(waiting.ref, "approved", b"1", request=fresh_request())
    claimed = await store.claim({"work": 5}, worker="w", lease_ms=60_000, request=fresh_request())
    assert [job.job.ref for job in claimed.jobs] == [waiting.ref]


def _steps_of_a_claim(path: Path) -> int:
    """What SQLite's machine does for one claim."""
    steps = 0

    def count() -> int:
        nonlocal steps
        steps += 1
        return 0

    db = sqlite3.connect(path, isolation_level=None)
    db.execute("BEGIN IMMEDIATE")
    db.set_progress_handler(count, 1)
    tx = Transaction(db, QueueBook(), now_ms=1_750_000_000_000)
    assert len(claim(tx, {"work": 5}, Claimant("w", 30_000, ClaimToken("i", 1))).jobs) == 5
    db.set_progress_handler(None, 0)
    db.execute("ROLLBACK")
    db.close()
    return steps


async def test_a_claim_costs_the_same_beside_any_number_of_sleepers(tmp_path: Path) -> None:
    costs: list[int] = []
    for count in (100, _MANY):
        store = SqliteStore(tmp_path / f"{count}.db", sync="normal")
        await store.open()
        await park(store, count)
        await store.add([NewJob("work", "new")] * 5, request="new")
        await store.close()
        costs.append(_steps_of_a_claim(tmp_path / f"{count}.db"))
    assert costs[0] == costs[1]


async def test_sleepers_that_are_removed_leave_nothing_behind(harness: AnyHarness) -> None:
    """Their journals and mailboxes go with them: the harness looks for strays when the test ends."""
    store = await harness.open()
    await park(store, 50, journal=True)
    for job in (await store.jobs("work", State.DELAYED, limit=50)).jobs:
        await store.signal(job.ref, "other", b"1", request=fresh_request())
    assert await store.drain("work", delayed=True) == 50
    if hasattr(harness, "keys"):
        left = [key for key in await harness.keys() if ":bullpen:queue:" in key]
        assert left == []
