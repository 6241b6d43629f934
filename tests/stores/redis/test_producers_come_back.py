"""A producer whose connection breaks adds once, gets its results, and misses no event."""

import asyncio
import contextlib
from collections.abc import AsyncIterator

import pytest

from bullpen import Queue, QueueEvents
from bullpen.errors import StoreNotOpen
from bullpen.job.events import EventKind
from bullpen.job.verdicts import Completed, Settlement
from bullpen.queue.events import Gap
from bullpen.stores.redis import RedisStore
from tests.support.proxy import CuttingProxy, cutting_proxy
from tests.support.redis_harness import RedisHarness
from tests.support.redis_server import RedisServer

_LIMIT_S = 60


@pytest.fixture
async def proxy(redis_server: RedisServer) -> AsyncIterator[CuttingProxy]:
    async with cutting_proxy(redis_server.port) as proxy:
        yield proxy


@pytest.fixture
async def mail(harness: RedisHarness, proxy: CuttingProxy, store: RedisStore) -> Queue:
    """A queue behind the proxy; the server knows the script of `add` already."""
    await Queue(store, "warm").add("up")
    return Queue(await harness.open_at(proxy.url), "mail")


async def _complete_one(store: RedisStore) -> None:
    claimed = await store.claim({"mail": 1}, worker="w", lease_ms=30_000, request="c1")
    await store.settle([Settlement(claimed.jobs[0].lease, Completed(b'"done"'))], request="s1")


async def test_an_add_whose_answer_is_lost_happens_once(mail: Queue, proxy: CuttingProxy, store: RedisStore) -> None:
    """The queue asks again by itself, with the same request: no duplicate, and no error."""
    proxy.cut_next_answer()
    one = await mail.add("welcome")
    proxy.cut_next_answer()
    two, three = await mail.add_bulk([mail.prepare("welcome"), mail.prepare("welcome")])
    assert proxy.has_cut
    assert [one.id, two.id, three.id] == ["1", "2", "3"]
    assert (await store.counts("mail")).waiting == 3


async def test_a_closed_store_is_told_at_once(harness: RedisHarness) -> None:
    store = await harness.open()
    await store.close()
    with pytest.raises(StoreNotOpen):
        await Queue(store, "mail").add("welcome")


async def test_an_awaited_result_comes_though_the_connection_broke(
    mail: Queue, proxy: CuttingProxy, store: RedisStore
) -> None:
    job = await mail.add("welcome")
    waiting = asyncio.create_task(job.result(timeout=_LIMIT_S))
    while not await _has_blocked_reader(store):
        await asyncio.sleep(0)
    proxy.cut_next_answer()
    await _complete_one(store)
    assert await waiting == "done"


async def test_events_go_on_after_a_broken_connection(mail: Queue, proxy: CuttingProxy, store: RedisStore) -> None:
    events = QueueEvents(mail.store, "mail")
    await events.ready()
    seen: list[EventKind | None] = []

    async def follow() -> None:
        async for event in events:
            seen.append(None if isinstance(event, Gap) else event.kind)
            if seen[-1] == EventKind.COMPLETED:
                return

    following = asyncio.create_task(follow())
    while not await _has_blocked_reader(store):
        await asyncio.sleep(0)
    proxy.cut_next_answer()
    await Queue(store, "mail").add("welcome")
    await _complete_one(store)
    async with asyncio.timeout(_LIMIT_S):
        await following
    assert seen == [EventKind.ADDED, EventKind.WAITING, EventKind.ACTIVE, EventKind.COMPLETED]


async def _has_blocked_reader(store: RedisStore) -> bool:
    with contextlib.suppress(ValueError):
        clients = await store._connection.command("CLIENT", "LIST")
        text = clients if isinstance(clients, str) else str(clients)
        return "xread" in text
    return False
