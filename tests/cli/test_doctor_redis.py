"""`bullpen doctor` on a Redis server: how it is, and what to do about it."""

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from bullpen import Queue
from bullpen.stores.base import WorkerInfo, WorkerState
from bullpen.stores.redis import RedisStore
from tests.cli.commands import COLUMNS, Answer, Folder
from tests.support.places import FilePlace
from tests.support.redis_server import RedisServer, running_redis

SECRET = "s3cr3t"


@pytest.fixture
def place(tmp_path: Path) -> FilePlace:
    """Not used: each command names a server."""
    return FilePlace(tmp_path)


@pytest.fixture
def server() -> Iterator[RedisServer]:
    with running_redis("--appendonly", "yes") as server:
        yield server


def _found(answer: Answer) -> dict[str, tuple[str, str]]:
    findings: list[dict[str, Any]] = answer.json["findings"]
    assert all(one["fix"] for one in findings if one["level"] != "ok"), "what is not well has a remedy"
    assert answer.err == "", "what is told is not logged beside it"
    return {one["check"]: (one["level"], one["message"]) for one in findings}


def test_all_is_well(folder: Folder, place: FilePlace, server: RedisServer) -> None:
    answer = folder.bullpen("--store", server.url, "doctor", "--json")
    assert answer.code == 0
    found = _found(answer)
    assert {level for level, _ in found.values()} == {"ok"}
    of_server = {"server", "role", "eviction", "memory", "persistence", "clock"}
    assert found.keys() == {"python", "sandbox", "store", "workers", "queues", *of_server}
    assert not place.path.exists()


async def test_server_and_queues_are_both_looked_at(folder: Folder, server: RedisServer) -> None:
    store = RedisStore(server.url)
    await store.open()
    await Queue(store, "mail").add("welcome")
    await store.close()
    with server.client() as client:
        client.config_set("maxmemory", "100mb")
        client.config_set("maxmemory-policy", "allkeys-lru")
    answer = folder.bullpen("--store", server.url, "doctor", "--json")
    assert answer.code == 1
    assert _found(answer)["eviction"] == ("bad", "allkeys-lru: a full server throws jobs away")
    assert _found(answer)["queue mail"] == ("warn", "1 job waiting and no worker")
    told = folder.seen("--store", server.url, "doctor")
    assert max(map(len, told.lines)) <= COLUMNS
    assert "→ set maxmemory-policy to noeviction" in "\n".join(told.lines)


def test_a_server_that_is_away(folder: Folder) -> None:
    answer = folder.bullpen("--store", f"redis://ann:{SECRET}@127.0.0.1:1", "doctor", "--json")
    assert answer.code == 3
    assert _found(answer)["store"][0] == "bad"
    assert SECRET not in answer.out


def test_a_wrong_password_is_not_shown(folder: Folder, server: RedisServer) -> None:
    url = server.url.replace("//", f"//ann:{SECRET}@")
    answer = folder.bullpen("--store", url, "doctor", "--json")
    assert answer.code == 1
    assert _found(answer)["store"][0] == "bad"
    assert SECRET not in answer.out


def test_a_replica(folder: Folder, server: RedisServer) -> None:
    """It can be looked at, though it takes no jobs."""
    with server.client() as client:
        client.replicaof("127.0.0.1", "1")
    answer = folder.bullpen("--store", server.url, "doctor", "--json")
    assert answer.code == 1
    assert _found(answer)["role"][0] == "bad"


async def test_a_bullmq_worker_on_a_queue_with_groups_is_reported(folder: Folder, server: RedisServer) -> None:
    """Known by the name that BullMQ gives its connections; a worker of ours is none."""
    store = RedisStore(server.url)
    await store.open()
    await Queue(store, "mail").add("welcome", group="acme")
    await store.beat(WorkerInfo(name="ours", state=WorkerState.READY, queues={"mail": 1}), ttl_ms=60_000)
    assert "queue mail" not in _found(folder.bullpen("--store", server.url, "doctor", "--json"))
    with server.client() as client:
        client.client_setname("bull:bWFpbA==")
        found = _found(folder.bullpen("--store", server.url, "doctor", "--json"))
    await store.close()
    assert found["queue mail"] == ("warn", "has groups, and BullMQ workers (1) that know of none")
