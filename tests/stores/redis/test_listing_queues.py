"""The list of queues: kept as they begin, completed now and then by a search for those that Node made."""

from typing import Any

import pytest

from bullpen.job.spec import NewJob
from bullpen.stores.redis import RedisStore
from bullpen.stores.redis.connection import Connection
from tests.support.redis_harness import RedisHarness


@pytest.fixture
def sent(monkeypatch: pytest.MonkeyPatch) -> list[str]:
    """The first words of the commands that are sent from now on."""
    words: list[str] = []
    command = Connection.command

    async def listening(connection: Connection, *parts: str | bytes) -> Any:
        words.append(str(parts[0]))
        return await command(connection, *parts)

    monkeypatch.setattr(Connection, "command", listening)
    return words


async def test_the_server_is_not_searched_again_and_again(store: RedisStore, sent: list[str]) -> None:
    """The first look searches; queues that we begin later are found without."""
    assert await store.queues() == []
    assert "SCAN" in sent
    sent.clear()
    await store.add([NewJob("mail", "welcome"), NewJob("calls", "ring")], request="r1")
    assert await store.queues() == ["calls", "mail"]
    assert sent == []


async def test_a_queue_of_nodes_is_found_by_the_next_search(
    harness: RedisHarness, store: RedisStore, sent: list[str]
) -> None:
    await store.add([NewJob("mail", "welcome")], request="r1")
    await store.queues()
    await harness.raw.hset(f"{harness.prefix}:nodes:meta", "opts.maxLenEvents", "10000")
    assert await store.queues() == ["mail"]
    await harness.raw.delete(f"{harness.prefix}::bullpen:queues-searched")
    assert await store.queues() == ["mail", "nodes"]
    sent.clear()
    assert await store.queues() == ["mail", "nodes"]
    assert sent == []


async def test_a_queue_of_nodes_is_listed_once_we_touch_it(
    harness: RedisHarness, store: RedisStore, sent: list[str]
) -> None:
    await store.queues()
    await harness.raw.hset(f"{harness.prefix}:nodes:meta", "opts.maxLenEvents", "10000")
    sent.clear()
    await store.add([NewJob("nodes", "welcome")], request="r1")
    assert await store.queues() == ["nodes"]
    assert sent == []


async def test_while_one_searches_the_others_go_on_with_what_they_know(
    harness: RedisHarness, store: RedisStore, sent: list[str]
) -> None:
    await store.add([NewJob("mail", "welcome")], request="r1")
    await harness.raw.set(f"{harness.prefix}::bullpen:queues-searching", "1")
    assert await store.queues() == ["mail"]
    assert "SCAN" not in sent


async def test_a_queue_that_node_obliterated_is_none(harness: RedisHarness, store: RedisStore) -> None:
    await store.add([NewJob("mail", "welcome")], request="r1")
    await harness.raw.delete(f"{harness.prefix}:mail:meta")
    assert await store.queues() == []


async def test_what_is_obliterated_leaves_the_list(harness: RedisHarness, store: RedisStore) -> None:
    await store.add([NewJob("mail", "welcome")], request="r1")
    await store.obliterate("mail", force=False)
    assert await harness.raw.exists(f"{harness.prefix}::bullpen:queues") == 0
