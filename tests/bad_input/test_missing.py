"""What is not there."""

from collections.abc import Awaitable, Callable
from typing import Any

import pytest

from bullpen import BadOption, Job, JobMissing, Queue, QueueEvents, QueueMissing, SqliteStore
from tests.bad_input.refusing import SURROGATE, refused

# ── what is not there ────────────────────────────────────────────────────────────────────

JOB_CALLS: dict[str, Callable[[Job[Any]], Awaitable[object]]] = {
    "record": lambda job: job.record(),
    "data": lambda job: job.data(),
    "result": lambda job: job.result(60),
    "cancel": lambda job: job.cancel("no longer needed"),
    "retry": lambda job: job.retry(),
    "promote": lambda job: job.promote(),
    "change_delay": lambda job: job.change_delay(5),
    "children": lambda job: job.children(),
    "signal": lambda job: job.signal("approved"),
    "journal": lambda job: job.journal(),
    "change_priority": lambda job: job.change_priority(5),
    "update_data": lambda job: job.update_data({"n": 2}),
    "set_progress": lambda job: job.set_progress(50),
    "remove": lambda job: job.remove(),
    "log": lambda job: job.log("a line"),
    "logs": lambda job: job.logs(),
}


_IDS = ["explicit", "number", "huge", "endless", "empty", "surrogate"]


@pytest.mark.parametrize("job_id", ["nobody", "12345", "9" * 30, "9" * 5_000, "", SURROGATE], ids=_IDS)
@pytest.mark.parametrize("call", JOB_CALLS)
async def test_an_unknown_job(queue: Queue, store: SqliteStore, call: str, job_id: str) -> None:
    async with refused(store, JobMissing, "job-missing", repr(job_id), "'work'"):
        await JOB_CALLS[call](queue.job(job_id))


@pytest.mark.parametrize("call", JOB_CALLS)
async def test_a_job_of_an_unknown_queue(queue: Queue, store: SqliteStore, call: str) -> None:
    """Asking does not make the queue, and another queue's job of the same id is not meant."""
    async with refused(store, JobMissing, "job-missing", "'kept'", "'elsewhere'"):
        await JOB_CALLS[call](Queue(store, "elsewhere").job("kept"))


def test_every_method_of_a_job_is_tried() -> None:
    methods = {name for name, value in vars(Job).items() if callable(value) and not name.startswith("_")}
    assert methods - {"reading"} == JOB_CALLS.keys(), "`reading` asks nothing of the store"


@pytest.mark.parametrize(
    "call",
    [
        lambda queue: queue.counts(),
        lambda queue: queue.jobs("waiting"),
        lambda queue: queue.oldest_waiting(),
        lambda queue: queue.resume(),
        lambda queue: queue.retry_all(),
        lambda queue: queue.drain(),
        lambda queue: queue.clean("completed"),
        lambda queue: queue.obliterate(),
    ],
    ids=["counts", "jobs", "oldest_waiting", "resume", "retry_all", "drain", "clean", "obliterate"],
)
async def test_an_unknown_queue(queue: Queue, store: SqliteStore, call: Callable[[Queue], Awaitable[object]]) -> None:
    async with refused(store, QueueMissing, "queue-missing", "'elsewhere'"):
        await call(Queue(store, "elsewhere"))


# ── cursors ──────────────────────────────────────────────────────────────────────────────


@pytest.mark.parametrize("cursor", ["", "x", "1", "1,2,3", "1,x", f"{2**63},1", "9" * 5_000, f"{'9' * 5_000},1"])
async def test_a_page_cursor_that_no_page_gave(queue: Queue, store: SqliteStore, cursor: str) -> None:
    async with refused(store, BadOption, "bad-option", "cursor: ", cursor[:20]):
        await queue.jobs("waiting", cursor=cursor)


@pytest.mark.parametrize("cursor", ["x", "-1", "1.5", "٣", "99", "9" * 30, "9" * 5_000])
async def test_an_event_cursor_that_no_event_gave(queue: Queue, store: SqliteStore, cursor: str) -> None:
    async with refused(store, BadOption, "bad-option", "cursor: ", cursor[:20]):
        await anext(aiter(QueueEvents(store, "work", after=cursor)))
