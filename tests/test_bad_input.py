"""Bad input of every kind is refused by name, and nothing is changed or lost by it."""

import contextlib
import dataclasses
import json
import os
import re
import sqlite3
import tempfile
import zlib
from collections.abc import AsyncIterator, Awaitable, Callable
from datetime import UTC, datetime, timedelta, timezone
from functools import partial
from pathlib import Path
from typing import Any

import pytest

from bullpen import (
    FROM_START,
    BadData,
    BadHandler,
    BadId,
    BadName,
    BadOption,
    BullpenError,
    CodecMissing,
    Context,
    Job,
    JobMissing,
    JobOptions,
    NewJob,
    PayloadTooLarge,
    Queue,
    QueueEvents,
    QueueMissing,
    SqliteStore,
    State,
    StoreCorrupt,
    StoreReadOnly,
    StoreTooNew,
    Worker,
    WorkerOptions,
    add_all,
    custom,
    debounce,
    dedup,
    exponential,
    fixed,
    in_process,
    keep,
)
from tests.support import programs
from tests.support.programs import command, run
from tests.support.sqlite_harness import check_file

Anything = Any
SURROGATE = "\ud800"


def _short(value: object) -> str:
    """A test's name, for values that are too long for one."""
    return re.sub(r" at 0x\w+", "", ascii(value))[:30]


@pytest.fixture
def path(tmp_path: Path) -> Path:
    return tmp_path / "queue.db"


@pytest.fixture
async def store(path: Path) -> AsyncIterator[SqliteStore]:
    store = SqliteStore(path)
    await store.open()
    yield store
    await store.close()
    check_file(path)


@pytest.fixture
async def queue(store: SqliteStore) -> Queue:
    """With one job in it, which must outlive whatever is done."""
    queue = Queue(store, "work", max_payload_bytes=1_000)
    await queue.add("kept", {"n": 1}, id="kept")
    return queue


async def _all_of(store: SqliteStore) -> object:
    events = await store.events("work", after=FROM_START, limit=1_000, timeout_ms=0)
    return await store.queues(), await store.counts("work"), await Queue(store, "work").job("kept").record(), events


@contextlib.asynccontextmanager
async def refused(store: SqliteStore, error: type[BullpenError], code: str, *words: str) -> AsyncIterator[None]:
    """The block raises this error, which has these words, and leaves the store as it was."""
    before = await _all_of(store)
    with pytest.raises(error) as caught:
        yield
    check_error(caught.value, error, code, *words)
    assert await _all_of(store) == before


def check_error(found: BullpenError, error: type[BullpenError], code: str, *words: str) -> None:
    assert type(found) is error
    assert found.code == code
    for word in words:
        assert word in str(found)


# ── what is not there ────────────────────────────────────────────────────────────────────

JOB_CALLS: dict[str, Callable[[Job[Any]], Awaitable[object]]] = {
    "record": lambda job: job.record(),
    "data": lambda job: job.data(),
    "result": lambda job: job.result(10),
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


@pytest.mark.parametrize("job_id", ["nobody", "12345", "9" * 30, ""], ids=["explicit", "number", "huge", "empty"])
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


# ── names and ids ────────────────────────────────────────────────────────────────────────


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


# ── data ─────────────────────────────────────────────────────────────────────────────────


def _endless() -> list[Any]:
    endless: list[Any] = []
    endless.append(endless)
    return endless


@pytest.mark.parametrize(
    "data, word",
    [
        (object(), "object"),
        ({"f": print}, "builtin_function"),
        ({(1, 2): 3}, "keys"),
        (SURROGATE, "surrogates"),
        (_endless(), "recursion"),
    ],
    ids=["object", "function", "tuple as key", "surrogate", "endless"],
)
async def test_data_that_is_not_json(queue: Queue, store: SqliteStore, data: Any, word: str) -> None:
    async with refused(store, BadData, "bad-data", "data cannot be written as JSON", word):
        await queue.add("mail", data)
    async with refused(store, BadData, "bad-data", "data cannot be written as JSON", word):
        await queue.job("kept").update_data(data)
    async with refused(store, BadData, "bad-data", "progress cannot be written as JSON", word):
        await queue.job("kept").set_progress(data)


@dataclasses.dataclass
class Price:
    amount: float


@pytest.mark.parametrize(
    "data, place",
    [
        (float("nan"), "data is"),
        ({"a": [1, {"b": float("nan")}]}, "data['a'][1]['b'] is"),
        ([None, (0, float("inf"))], "data[1][1] is"),
        ({"deep": {"er": -float("inf")}}, "data['deep']['er'] is"),
        ({"price": Price(float("nan"))}, "data['price'].amount is"),
    ],
)
async def test_nan_and_infinity_are_found_wherever_they_hide(
    queue: Queue, store: SqliteStore, data: Any, place: str
) -> None:
    """JSON has neither; to send null instead would lose them in silence."""
    async with refused(store, BadData, "bad-data", place):
        await queue.add("mail", data)


async def test_null_is_no_nan(queue: Queue) -> None:
    job = await queue.add("mail", {"a": None, "b": ["null", 1.5]})
    assert await job.data() == {"a": None, "b": ["null", 1.5]}


async def test_a_payload_that_is_too_large(queue: Queue, store: SqliteStore) -> None:
    words = ("data", "1,002 bytes", "1,000")
    async with refused(store, PayloadTooLarge, "payload-too-large", *words):
        await queue.add("mail", "x" * 1_000)
    async with refused(store, PayloadTooLarge, "payload-too-large", *words):
        await queue.job("kept").update_data("x" * 1_000)
    assert (await queue.add("mail", "x" * 998)).outcome == "added"


async def test_a_payload_is_measured_in_bytes(queue: Queue, store: SqliteStore) -> None:
    async with refused(store, PayloadTooLarge, "payload-too-large", "1,002 bytes"):
        await queue.add("mail", "ä" * 500)


# ── options ──────────────────────────────────────────────────────────────────────────────

NAN, ENDLESS, AGES = float("nan"), float("inf"), 10**400


@pytest.mark.parametrize(
    "option, value",
    [
        *[("delay", value) for value in (-1, -0.001, NAN, ENDLESS, AGES, 1e300, "5", None, True, timedelta(-1))],
        *[("timeout", value) for value in (0, -1, NAN, AGES, "5", False, timedelta(0))],
        *[("priority", value) for value in (-1, 2_097_152, 1.5, "1", None, True)],
        *[("attempts", value) for value in (0, -1, 1_000_001, 1.5, "1", None, True)],
        *[("keep_logs", value) for value in (-1, 1_000_001, "1", None)],
        *[("keep_stacks", value) for value in (-1, 1_001, "1", None)],
        *[("lifo", value) for value in ("yes", 1, None)],
        *[("backoff", value) for value in (-1, NAN, AGES, "fast", None, {"kind": "fixed"})],
        *[("start_by", value) for value in (-1, NAN, AGES, "noon", datetime(2030, 1, 1))],  # noqa: DTZ001
        *[("run_at", value) for value in ("noon", 5, datetime(2030, 1, 1))],  # noqa: DTZ001
        *[("tags", value) for value in ("mail", None, 5, [1], [""], [SURROGATE], {"mail"}, iter(["mail"]))],
        *[("headers", value) for value in (None, ["a"], {"a": 1}, {1: "a"}, {"": "a"}, {"a": SURROGATE})],
        *[(option, value) for option in ("tenant", "workspace") for value in ("", 5, SURROGATE, ["acme"])],
        ("workspace", "without a tenant"),
        *[("dedup", value) for value in ("", 5, SURROGATE, {"id": "a"})],
        *[("keep_completed", value) for value in (None, 5, {"count": 5})],
        *[("keep_failed", value) for value in (None, 5, {"count": 5})],
    ],
    ids=_short,
)
async def test_a_bad_option(queue: Queue, store: SqliteStore, option: str, value: Any) -> None:
    """Told under the option's name; a job that no worker could read never gets into the store."""
    options: dict[str, Any] = {option: value}
    async with refused(store, BadOption, "bad-option", f"{option}: "):
        await queue.add("mail", **options)


@pytest.mark.parametrize(
    "given, near",
    [("attemps", "attempts"), ("prioriy", "priority"), ("keepCompleted", "keep_completed"), ("runAt", "run_at")],
)
async def test_an_unknown_option_with_the_one_that_was_meant(
    queue: Queue, store: SqliteStore, given: str, near: str
) -> None:
    options: dict[str, Any] = {given: 3}
    async with refused(store, BadOption, "bad-option", f"{given}: unknown option; did you mean {near}?"):
        await queue.add("mail", **options)


async def test_an_unknown_option_like_no_other_lists_them_all(queue: Queue, store: SqliteStore) -> None:
    options: dict[str, Any] = {"zzz": 3}
    async with refused(store, BadOption, "bad-option", "zzz: unknown option; known are", "delay", "keep_failed"):
        await queue.add("mail", **options)


async def test_a_time_without_its_zone(queue: Queue, store: SqliteStore) -> None:
    naive = datetime(2030, 1, 2, 3, 4)  # noqa: DTZ001
    async with refused(store, BadOption, "bad-option", "run_at: 2030-01-02T03:04:00 has no time zone"):
        await queue.add("mail", run_at=naive)
    async with refused(store, BadOption, "bad-option", "start_by: 2030-01-02T03:04:00 has no time zone"):
        await queue.add("mail", start_by=naive)


async def test_delay_and_run_at_together(queue: Queue, store: SqliteStore) -> None:
    async with refused(store, BadOption, "bad-option", "run_at: give delay or run_at, not both"):
        await queue.add("mail", delay=5, run_at=datetime(2030, 1, 1, tzinfo=UTC))


async def test_the_last_moment_of_the_calendar_is_a_time_like_any_other(queue: Queue) -> None:
    end = datetime.max.replace(tzinfo=timezone(timedelta(hours=-12)))
    job = await queue.add("mail", run_at=end, start_by=end)
    assert (await job.record()).state == State.DELAYED


def _call(function: Callable[..., object], *args: Any, **options: Any) -> Callable[[], object]:
    return partial(function, *args, **options)


@pytest.mark.parametrize(
    "make, word",
    [
        (_call(fixed, -1), "backoff: -1"),
        (_call(fixed, NAN), "backoff: nan"),
        (_call(fixed, "5"), "backoff: seconds or a timedelta, not '5'"),
        (_call(fixed, 5, jitter=1.1), "jitter: a share from 0 to 1, not 1.1"),
        (_call(fixed, 5, jitter=-0.1), "jitter: "),
        (_call(fixed, 5, jitter=NAN), "jitter: "),
        (_call(fixed, 5, jitter=True), "jitter: "),
        (_call(exponential, AGES), "backoff: "),
        (_call(exponential, 5, max_delay=-1), "max_delay: -1"),
        (_call(exponential, 5, jitter="much"), "jitter: "),
        (_call(custom, ""), "backoff: ''"),
        (_call(custom, "fixed"), "backoff: 'fixed'"),
        (_call(custom, 5), "backoff: 5"),
        (_call(custom, SURROGATE), "backoff: "),
        (_call(custom, "mine", -1), "backoff: -1"),
        (_call(keep, -1), "keep: count"),
        (_call(keep, 1.5), "keep: count"),
        (_call(keep, True), "keep: count"),
        (_call(keep, 10**30), "keep: count"),
        (_call(keep, age=-1), "keep: age: -1"),
        (_call(keep, age=AGES), "keep: age"),
        (_call(dedup, ""), "dedup: id"),
        (_call(dedup, 5), "dedup: id"),
        (_call(dedup, SURROGATE), "dedup: id"),
        (_call(dedup, "a", ttl=0), "dedup: ttl"),
        (_call(dedup, "a", ttl=-1), "dedup: ttl"),
        (_call(dedup, "a", ttl=AGES), "dedup: ttl"),
        (_call(dedup, "a", extend=True), "dedup: extend"),
        (_call(dedup, "a", ttl=5, extend="yes"), "dedup: extend"),
        (_call(dedup, "a", replace="yes"), "dedup: replace"),
        (_call(dedup, "a", keep_last_if_active=1), "dedup: keep_last_if_active"),
        (_call(dedup, "a", keep_last_if_active=True, ttl=5), "dedup: keep_last_if_active"),
        (_call(dedup, "a", keep_last_if_active=True, replace=True), "dedup: keep_last_if_active"),
        (_call(debounce, "a", 0), "dedup: ttl"),
        (_call(debounce, "", 5), "dedup: id"),
        (_call(JobOptions, attempts=0), "attempts: "),
    ],
    ids=_short,
)
def test_a_bad_argument_of_what_makes_an_option(make: Callable[[], object], word: str) -> None:
    with pytest.raises(BadOption) as caught:
        make()
    check_error(caught.value, BadOption, "bad-option", word)


@pytest.mark.parametrize("priority", [-1, 2_097_152, 1.5, True, "1"])
async def test_a_bad_change_of_priority(queue: Queue, store: SqliteStore, priority: Anything) -> None:
    async with refused(store, BadOption, "bad-option", "priority: ", repr(priority)):
        await queue.job("kept").change_priority(priority)


@pytest.mark.parametrize("delay", [-1, NAN, AGES, "5"], ids=_short)
async def test_a_bad_change_of_delay(queue: Queue, store: SqliteStore, delay: Anything) -> None:
    async with refused(store, BadOption, "bad-option", "delay: "):
        await queue.job("kept").change_delay(delay)


async def test_a_bad_state_limit_or_age_for_a_look_at_a_queue(queue: Queue, store: SqliteStore) -> None:
    async with refused(store, BadOption, "bad-option", "state: ", "'done'", "waiting-children"):
        await queue.jobs("done")
    async with refused(store, BadOption, "bad-option", "limit: ", "0"):
        await queue.jobs("waiting", limit=0)
    async with refused(store, BadOption, "bad-option", "older_than: -1"):
        await queue.clean("waiting", older_than=-1)
    async with refused(store, BadOption, "bad-option", "state: ", "'done'"):
        await queue.retry_all("done")


async def test_a_job_made_by_hand_is_checked_as_well(queue: Queue, store: SqliteStore) -> None:
    """`add_bulk` and `add_all` take what `prepare` made; what was not made by it must be as sound."""
    good = queue.prepare("mail")
    data: Anything = "{}"
    async with refused(store, BadId, "bad-id", "'77'"):
        await queue.add_bulk([good, NewJob("work", "mail", id="77")])
    async with refused(store, BadName, "bad-name", "job name ''"):
        await add_all([(queue, good), (queue, NewJob("work", ""))])
    async with refused(store, BadData, "bad-data", "jobs[1]", "str"):
        await queue.add_bulk([good, NewJob("work", "mail", data=data)])


# ── cursors ──────────────────────────────────────────────────────────────────────────────


@pytest.mark.parametrize("cursor", ["", "x", "1", "1,2,3", "1,x", f"{2**63},1", "9" * 5_000, f"{'9' * 5_000},1"])
async def test_a_page_cursor_that_no_page_gave(queue: Queue, store: SqliteStore, cursor: str) -> None:
    async with refused(store, BadOption, "bad-option", "cursor: ", cursor[:20]):
        await queue.jobs("waiting", cursor=cursor)


@pytest.mark.parametrize("cursor", ["x", "-1", "1.5", "٣", "99", "9" * 30, "9" * 5_000])
async def test_an_event_cursor_that_no_event_gave(queue: Queue, store: SqliteStore, cursor: str) -> None:
    async with refused(store, BadOption, "bad-option", "cursor: ", cursor[:20]):
        await anext(aiter(QueueEvents(store, "work", after=cursor)))


# ── codecs ───────────────────────────────────────────────────────────────────────────────


class Zip:
    name = "zip"

    def encode(self, plain: bytes) -> bytes:
        return zlib.compress(plain)

    def decode(self, coded: bytes) -> bytes:
        return zlib.decompress(coded)


class OtherZip(Zip):
    name = "other-zip"


@pytest.mark.parametrize("codec", [None, OtherZip()], ids=["no codec", "another"])
async def test_a_payload_that_was_written_with_a_codec_we_do_not_have(
    queue: Queue, store: SqliteStore, codec: Zip | None
) -> None:
    """It is refused rather than read as nonsense, and stays for who can read it."""
    coded = await Queue(store, "work", codec=Zip()).add("secret", {"n": 7})
    async with refused(store, CodecMissing, "codec-missing", "data", "'zip'"):
        await Queue(store, "work", codec=codec).job(coded.id).data()
    assert await Queue(store, "work", codec=Zip()).job(coded.id).data() == {"n": 7}


# ── workers ──────────────────────────────────────────────────────────────────────────────


async def _coroutine(ctx: Context) -> None: ...


class _Holder:
    def method(self, ctx: Context) -> None: ...


def _closure() -> Callable[[Context], None]:
    return lambda ctx: None


@pytest.mark.parametrize(
    "handlers, word", [({}, "at least one queue"), ({"mail": 5}, "mail"), ({"mail": None}, "None")]
)
async def test_a_handler_that_is_none(queue: Queue, store: SqliteStore, handlers: Anything, word: str) -> None:
    async with refused(store, BadHandler, "bad-handler", word):
        Worker(store, handlers)


async def test_a_handler_by_name_that_is_none(queue: Queue, store: SqliteStore) -> None:
    handlers: Anything = {"mail": {"send": "send"}}
    async with refused(store, BadHandler, "bad-handler", "mail/send is not callable: 'send'"):
        Worker(store, handlers)


@pytest.mark.parametrize(
    "function, word",
    [
        (lambda ctx: None, "<lambda>"),
        (_closure(), "<locals>"),
        (_coroutine, "_coroutine"),
        (_Holder().method, "define it at module level"),
        (partial(print, "a"), "partial"),
        (5, "5"),
        (None, "None"),
    ],
    ids=["lambda", "closure", "coroutine", "method", "partial", "number", "none"],
)
def test_a_handler_that_another_process_could_not_find(function: Anything, word: str) -> None:
    """Told when the worker is made, not when the first job fails."""
    with pytest.raises(BadHandler) as caught:
        in_process(function)
    check_error(caught.value, BadHandler, "bad-handler", word)


@pytest.mark.parametrize(
    "option, value",
    [
        *[("concurrency", value) for value in (0, -1, 1.5, "5", True, ["mail"], {"mail": 0}, {"mail": "5"})],
        *[("lease", value) for value in (0, -1, NAN, AGES, "30", None, True)],
        *[("timeout", value) for value in (0, -1, NAN, "30")],
        *[("timeout_grace", value) for value in (0, "5")],
        *[("grace", value) for value in (-1, NAN, "5")],
        *[("max_stalled", value) for value in (-1, 1.5, "2", None, True)],
        *[("max_jobs", value) for value in (0, -1, 1.5, "5", True)],
        *[("max_memory_mb", value) for value in (0, -1, 1.5, "5", True)],
        *[("unhandled_delay", value) for value in (0, "5")],
        *[("block_warning", value) for value in (0, "5")],
    ],
    ids=_short,
)
def test_a_bad_worker_option(option: str, value: Any) -> None:
    options: dict[str, Any] = {option: value}
    with pytest.raises(BadOption) as caught:
        WorkerOptions(**options)
    check_error(caught.value, BadOption, "bad-option", option)


@pytest.mark.parametrize("value", ["0", "-1", "1.5", "many", "", " ", "1e3"])
async def test_a_bad_concurrency_in_the_environment(
    queue: Queue, store: SqliteStore, monkeypatch: pytest.MonkeyPatch, value: str
) -> None:
    monkeypatch.setenv("BULLPEN_CONCURRENCY_WEB_MAIL", value)
    async with refused(store, BadOption, "bad-option", "BULLPEN_CONCURRENCY_WEB_MAIL", repr(value)):
        Worker(store, {"web-mail": print})


def test_a_good_concurrency_in_the_environment(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("BULLPEN_CONCURRENCY_WEB_MAIL", " 12 ")
    assert WorkerOptions().slots("web.mail") == 12
    assert WorkerOptions(concurrency={"web.mail": 3}).slots("web.mail") == 3
    assert WorkerOptions().slots("mail") == 5


# ── files ────────────────────────────────────────────────────────────────────────────────


async def _jobs_in(path: Path) -> list[str]:
    store = SqliteStore(path)
    await store.open()
    found = [job.id for job in (await Queue(store, "work").jobs("waiting")).jobs]
    await store.close()
    return found


async def _file_with_one_job(path: Path) -> None:
    store = SqliteStore(path)
    await store.open()
    await Queue(store, "work").add("mail", {"n": 1}, id="kept")
    await store.close()


async def test_a_file_of_garbage(path: Path) -> None:
    path.write_bytes(b"this was never a database " * 400)
    before = path.read_bytes()
    with pytest.raises(StoreCorrupt) as caught:
        await SqliteStore(path).open()
    check_error(caught.value, StoreCorrupt, "store-corrupt", str(path), "restore a backup")
    assert path.read_bytes() == before


async def test_a_file_with_a_damaged_page(path: Path) -> None:
    """Told as such by whoever touches it; what lies elsewhere is still readable."""
    await _file_with_one_job(path)
    db = sqlite3.connect(path)
    (page,) = db.execute("SELECT rootpage FROM sqlite_schema WHERE name = 'body'").fetchone()
    (size,) = db.execute("PRAGMA page_size").fetchone()
    db.close()
    with path.open("r+b") as file:
        file.seek((page - 1) * size)
        file.write(b"\xff" * size)
    store = SqliteStore(path)
    await store.open()
    queue = Queue(store, "work")
    for touching in (
        queue.job("kept").record(),
        queue.add("mail"),
        store.claim({"work": 1}, worker="w", lease_ms=30_000, request="1"),
    ):
        with pytest.raises(StoreCorrupt) as caught:
            await touching
        check_error(caught.value, StoreCorrupt, "store-corrupt", str(path))
    assert (await queue.counts()).waiting == 1
    await store.close()


async def test_a_folder_in_place_of_a_file(tmp_path: Path) -> None:
    folder = tmp_path / "queues"
    folder.mkdir()
    with pytest.raises(StoreReadOnly) as caught:
        await SqliteStore(folder).open()
    check_error(caught.value, StoreReadOnly, "store-read-only", str(folder))
    assert list(folder.iterdir()) == []


async def test_a_file_in_place_of_a_folder(path: Path) -> None:
    path.write_text("a file")
    below = path / "queue.db"
    with pytest.raises(StoreReadOnly) as caught:
        await SqliteStore(below).open()
    check_error(caught.value, StoreReadOnly, "store-read-only", str(below))
    assert path.read_text() == "a file"


@pytest.mark.parametrize(
    "folder_mode, file_mode", [(0o755, 0o444), (0o777, 0o444), (0o755, 0o666)], ids=["both", "file", "folder"]
)
async def test_a_place_without_the_right_to_write(folder_mode: int, file_mode: int) -> None:
    """Permissions do not bind root, so another user tries."""
    with tempfile.TemporaryDirectory() as name:
        path = Path(name) / "queue.db"
        await _file_with_one_job(path)
        path.chmod(file_mode)
        Path(name).chmod(folder_mode)
        error = json.loads(await run(command(programs.open_without_rights, path)))
        assert error["code"] == "store-read-only"
        assert str(path) in error["message"]
        if os.geteuid() != 0:
            Path(name).chmod(0o755)
            path.chmod(0o644)
        assert await _jobs_in(path) == ["kept"]


# ── disks ────────────────────────────────────────────────────────────────────────────────


@pytest.fixture(scope="module")
def own_mounts() -> list[str]:
    words = programs.with_own_mounts()
    if words is None:
        pytest.skip("needs the right to mount a small file system in a name space of its own")
    return words


async def test_a_read_only_disk(own_mounts: list[str], tmp_path: Path) -> None:
    answer = json.loads(await run([*own_mounts, *command(programs.open_on_a_read_only_disk, tmp_path)]))
    assert {file: error["code"] for file, error in answer["errors"].items()} == {
        "known": "store-read-only",
        "new": "store-read-only",
    }
    assert str(tmp_path / "queue.db") in answer["errors"]["known"]["message"]
    assert answer["found"] == ["kept", "later"]


async def test_a_disk_that_fills_up(own_mounts: list[str], tmp_path: Path) -> None:
    """The producer is told that its job was not taken, earlier ones are intact, and with room it goes on."""
    answer = json.loads(await run([*own_mounts, *command(programs.fill_a_disk, tmp_path)]))
    assert answer["code"] == "store-full"
    assert re.search(r"queue\.db: the disk is full; nothing was written", answer["message"])
    assert len(answer["added"]) > 5
    assert answer["counted"] == len(answer["added"])
    assert answer["intact"] == [*answer["added"], answer["later"]]


async def test_opening_on_a_disk_that_is_full(own_mounts: list[str], tmp_path: Path) -> None:
    """However little room is left: it opens or is refused, and the job is there once there is room."""
    answer = json.loads(await run([*own_mounts, *command(programs.open_on_a_full_disk, tmp_path)]))
    first, *_, last = answer["errors"]
    assert {error["code"] for error in answer["errors"] if error is not None} == {"store-full"}
    assert str(tmp_path / "queue.db") in first["message"]
    assert last is None
    assert answer["found"] == "kept"


async def test_claiming_on_a_disk_that_is_full(own_mounts: list[str], tmp_path: Path) -> None:
    """To note that the claim arrived needs no room: that was taken when the store was opened."""
    assert (await run([*own_mounts, *command(programs.claim_on_a_full_disk, tmp_path)])).split() == ["1"]


# ── versions ─────────────────────────────────────────────────────────────────────────────


def _set_version(path: Path, version: int) -> None:
    db = sqlite3.connect(path, isolation_level=None)
    db.execute(f"PRAGMA user_version = {version}")
    db.close()


async def test_a_file_of_a_newer_version(path: Path) -> None:
    await _file_with_one_job(path)
    _set_version(path, 999)
    before = path.read_bytes()
    with pytest.raises(StoreTooNew) as caught:
        await SqliteStore(path).open()
    check_error(caught.value, StoreTooNew, "store-too-new", str(path), "999", "upgrade")
    assert path.read_bytes() == before


async def test_a_file_that_is_migrated_under_an_older_process(store: SqliteStore, path: Path) -> None:
    """A newer Bullpen was started beside this one: from then on this one refuses, reading and writing."""
    queue = Queue(store, "work")
    await queue.add("mail", id="kept")
    before = await _all_of(store)
    _set_version(path, 999)
    for asked in (
        queue.add("mail"),
        queue.counts(),
        queue.job("kept").record(),
        queue.job("kept").remove(),
        store.claim({"work": 1}, worker="w", lease_ms=30_000, request="1"),
        store.wait(["work"], timeout_ms=0),
    ):
        with pytest.raises(StoreTooNew) as caught:
            await asked
        check_error(caught.value, StoreTooNew, "store-too-new", str(path), "999", "upgrade")
    _set_version(path, 1)
    assert await _all_of(store) == before
    assert (await queue.add("mail")).outcome == "added"
