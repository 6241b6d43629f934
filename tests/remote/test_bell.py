"""The bell: one wait in the store for all calls that wait at a server."""

import asyncio
import uuid
from collections.abc import AsyncIterator
from typing import Any

import pytest

from bullpen.errors import StoreError
from bullpen.job.spec import NewJob
from bullpen.server.remote.bell import Bell
from bullpen.stores.base import Store
from tests.support.around import StoreAround
from tests.support.places import Place
from tests.worker.waiting import until


@pytest.fixture
async def store(place: Place) -> AsyncIterator[Store]:
    store = place.store()
    await store.open()
    yield store
    await store.close()


@pytest.fixture
async def bell(store: Store) -> AsyncIterator[Bell]:
    bell = Bell(store)
    yield bell
    await bell.close()


async def add(store: Store, queue: str) -> None:
    await store.add([NewJob(queue, "build")], request=uuid.uuid4().hex)


async def sleepers(bell: Bell, count: int) -> None:
    async def found() -> int:
        return len(bell._sleepers)

    await until(found, lambda number: number == count)


async def test_it_rings_for_everyone(store: Store, bell: Bell) -> None:
    """Also for who came later, for another queue."""
    first = asyncio.create_task(bell.wait(["a"], 30))
    await sleepers(bell, 1)
    second = asyncio.create_task(bell.wait(["b"], 30))
    await add(store, "b")
    assert list(await asyncio.gather(first, second)) == [True, True]


async def test_it_rings_at_once_for_what_is_there_already(store: Store, bell: Bell) -> None:
    """Nothing is slept through, though everyone slept when it came."""
    await add(store, "a")
    assert await bell.wait(["a"], 30)


async def test_it_rings_again_after_rings_that_nobody_took_a_job_after(store: Store, bell: Bell) -> None:
    """Later each time, but it does."""
    await add(store, "a")
    assert [await bell.wait(["a"], 30) for _ in range(4)] == [True] * 4


async def test_it_rings_after_an_error_of_whatever_kind(store: Store) -> None:
    """Else nothing would ever wake those who come later."""
    around = StoreAround(store)
    failures: list[Exception] = [RuntimeError("something else"), StoreError("NOPERM")]

    async def wait(queues: list[str], **asked: Any) -> bool:
        if failures:
            raise failures.pop()
        return await store.wait(queues, **asked)

    around.wait = wait
    bell = Bell(around)
    await add(store, "a")
    assert await bell.wait(["a"], 30)
    assert not failures
    await bell.close()


async def test_the_time_is_over_without_a_ring(bell: Bell) -> None:
    assert not await bell.wait(["a"], 0.01)


async def test_nobody_watches_when_nobody_waits(bell: Bell) -> None:
    """Such a watch could take a wake-up away from another process."""
    waiting = asyncio.create_task(bell.wait(["a"], 30))
    await sleepers(bell, 1)
    assert bell._watching is not None
    waiting.cancel()
    await asyncio.gather(waiting, return_exceptions=True)
    assert bell._watching is None


async def test_a_bell_that_is_closed_lets_everyone_go(bell: Bell) -> None:
    """Who waits, and who comes later; closing twice is safe."""
    waiting = asyncio.create_task(bell.wait(["a"], 30))
    await sleepers(bell, 1)
    await bell.close()
    await bell.close()
    assert await waiting is False
    assert await bell.wait(["a"], 30) is False
