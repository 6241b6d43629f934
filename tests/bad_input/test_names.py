"""Names and ids."""

import pytest

from bullpen import BadId, BadName, Queue, QueueEvents, SqliteStore, Worker
from tests.bad_input.refusing import SURROGATE, Anything, refused


@pytest.mark.parametrize(
    "name", ["", "a b", "a:b", "a/b", "ä", "{a}", "a\n", "\0", SURROGATE, "x" * 201, None, 5, b"a"]
)
async def test_a_bad_queue_name(queue: Queue, store: SqliteStore, name: Anything) -> None:
    word = "201" if name == "x" * 201 else repr(name)
    async with refused(store, BadName, "bad-name", "queue name", word):
        Queue(store, name)
    with pytest.raises(BadName, match="queue name"):
        QueueEvents(store, name)
    with pytest.raises(BadName, match="queue name"):
        Worker(store, {name: print})


@pytest.mark.parametrize("name", ["", "x" * 201, SURROGATE, None, 5, b"mail", ["mail"]])
async def test_a_bad_job_name(queue: Queue, store: SqliteStore, name: Anything) -> None:
    word = "201" if name == "x" * 201 else repr(name)
    async with refused(store, BadName, "bad-name", "job name", word):
        await queue.add(name)


@pytest.mark.parametrize(
    "job_id",
    [
        "",
        "0",
        "5",
        "-5",
        "123456789012345678901234567890",
        "a:b",
        "a:b:c:d",
        "0:b:c",
        "wait",
        "active",
        "completed",
        "meta",
        SURROGATE,
        "x" * 301,
        5,
        b"a",
    ],
)
async def test_a_bad_explicit_id(queue: Queue, store: SqliteStore, job_id: Anything) -> None:
    word = "301" if job_id == "x" * 301 else repr(job_id)
    async with refused(store, BadId, "bad-id", "job id", word):
        await queue.add("mail", id=job_id)
