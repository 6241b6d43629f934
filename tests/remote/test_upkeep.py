"""What the server does for queues of remote workers: as long as somebody may need it, and no longer."""

from collections.abc import AsyncIterator, Iterable
from pathlib import Path
from typing import Any

import pytest

from bullpen import SqliteStore
from bullpen.job.spec import NewJob
from bullpen.job.state import State
from bullpen.server.remote.upkeep import Upkeep
from bullpen.stores.base import Rescued
from bullpen.testing.clock import ManualClock
from bullpen.worker.options import WorkerOptions
from tests.remote.serving import QUEUE

_MINUTE_MS = 60_000


class _Counting(SqliteStore):
    """Notes which queues it is asked to look after."""

    rescues: list[list[str]]

    async def rescue(self, queues: Iterable[str], **more: Any) -> Rescued:
        self.rescues.append(sorted(queues))
        return await super().rescue(self.rescues[-1], **more)


@pytest.fixture
async def store(tmp_path: Path) -> AsyncIterator[_Counting]:
    store = _Counting(tmp_path / "queue.db", clock=ManualClock())
    store.rescues = []
    await store.open()
    await store.add([NewJob(QUEUE, "build", b"{}")], request="add")
    yield store
    await store.close()


def _advance(store: _Counting, ms: int) -> None:
    assert isinstance(store.clock, ManualClock)
    store.clock.advance(ms)


@pytest.fixture
async def upkeep(store: _Counting) -> AsyncIterator[Upkeep]:
    upkeep = Upkeep(store, WorkerOptions())
    yield upkeep
    await upkeep.stop()


async def test_a_name_that_is_no_queue_costs_the_store_nothing(store: _Counting, upkeep: Upkeep) -> None:
    """Any name may be said; one of which there is a queue later is looked after from then on."""
    upkeep.serve([QUEUE, "never", "later"])
    await upkeep.look_after(may_advance=True)
    await store.add([NewJob("later", "build", b"{}")], request="later")
    await upkeep.look_after(may_advance=True)
    assert store.rescues == [[QUEUE], sorted([QUEUE, "later"])]


async def test_a_queue_that_nobody_asks_for_is_forgotten(store: _Counting, upkeep: Upkeep) -> None:
    upkeep.serve([QUEUE])
    for _ in range(3):
        await upkeep.look_after(may_advance=True)
        _advance(store, 11 * _MINUTE_MS)
    assert store.rescues == [[QUEUE], [QUEUE]], "once more when its time is over, and then no more"
    upkeep.serve([QUEUE])
    await upkeep.look_after(may_advance=True)
    assert len(store.rescues) == 3


async def test_a_queue_of_which_a_lease_is_held_is_not_forgotten_before_its_end(
    store: _Counting, upkeep: Upkeep
) -> None:
    """A worker may take a job for an hour, and never be heard of again."""
    lease_ms = 60 * _MINUTE_MS
    claimed = await store.claim({QUEUE: 1}, worker="far", lease_ms=lease_ms, request="claim", held_elsewhere=True)
    upkeep.serve([QUEUE], lease_ms=lease_ms, exist=True)
    upkeep.serve([QUEUE])
    for _ in range(65):
        await upkeep.look_after(may_advance=True)
        _advance(store, _MINUTE_MS)
    assert (await store.job(claimed.jobs[0].job.ref)).state == State.WAITING
