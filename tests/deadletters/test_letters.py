"""Finding, grouping, retrying, removing and exporting failed jobs."""

import asyncio
import json
from collections.abc import Sequence

import pytest

from bullpen import (
    BadName,
    BadOption,
    Bullpen,
    DeadFilter,
    DeadLetters,
    Failure,
    FailureKind,
    JobRef,
    NewJob,
    QueueMissing,
    State,
    Store,
)
from bullpen.testing.clock import ManualClock
from tests.deadletters.failing import STACK, fail, fail_waiting


async def _fail_many(store: Store, how_many: int, queue: str = "mail") -> None:
    await store.add([NewJob(queue, f"kind-{n % 2}") for n in range(how_many)], request=f"add {queue}")
    await fail_waiting(store, [Failure(f"broken {n}", type="ValueError") for n in range(how_many)], queue)


async def test_each_part_of_a_filter_narrows(store: Store, letters: DeadLetters, clock: ManualClock) -> None:
    first = await fail(
        store,
        tenant="acme",
        workspace="research",
        tags=["vip", "eu"],
        failure=Failure("user 42 is gone", type="LookupError"),
    )
    clock.advance(1_000)
    middle_ms = clock.now_ms()
    second = await fail(store, name="remind", failure=Failure("too slow", FailureKind.TIMEOUT, "TimeoutError"))
    clock.advance(1_000)
    third = await fail(store, queue="bills", name="bill", tenant="globex", failure=Failure("user 7 is gone"))
    (of_third,) = await letters.groups(DeadFilter(queue="bills"))

    async def found(**wanted: object) -> list[JobRef]:
        return sorted(job.ref for job in await letters.find(DeadFilter(**wanted)))  # type: ignore[arg-type]

    assert await found() == sorted([first, second, third])
    assert await found(queue="bills") == [third]
    assert await found(name="remind") == [second]
    assert await found(tenant="acme") == [first]
    assert await found(workspace="research") == [first]
    assert await found(tenant="globex", workspace="research") == []
    assert await found(tag="eu") == [first]
    assert await found(error="is gone") == sorted([first, third])
    assert await found(error="LookupError") == [first]
    assert await found(error="Lookup") == [], "a type is exact"
    assert await found(kind="timeout") == [second]
    assert await found(since_ms=middle_ms) == sorted([second, third])
    assert await found(until_ms=middle_ms) == [first]
    assert await found(since_ms=middle_ms, until_ms=middle_ms + 1) == [second]
    assert await found(fingerprint=of_third.fingerprint) == [third]
    assert await found(error="is gone", tenant="globex") == [third]
    assert await found(error="is gone", tenant="nobody") == []


async def test_the_newest_come_first_and_no_more_than_asked(
    store: Store, letters: DeadLetters, clock: ManualClock
) -> None:
    refs = []
    for _ in range(5):
        refs.append(await fail(store))
        clock.advance(10)
    assert [job.ref for job in await letters.find(limit=3)] == refs[:1:-1]


async def test_only_failed_jobs_are_dead(store: Store, letters: DeadLetters) -> None:
    await store.add([NewJob("mail", "waiting")], request="add")
    assert await letters.find() == []
    assert await letters.groups() == []
    assert await letters.retry() == await letters.purge() == 0


async def test_groups_are_the_reasons(store: Store, letters: DeadLetters, clock: ManualClock) -> None:
    """The most frequent first, each with the span of time, and its newest job to look at."""
    start_ms = clock.now_ms()
    refs = []
    for number in range(3):
        refs.append(await fail(store, failure=Failure(f"user {number} is gone", type="LookupError", stack=STACK)))
        clock.advance(1_000)
    rare = await fail(store, name="remind", failure=Failure("timed out", FailureKind.TIMEOUT, "TimeoutError"))
    often, seldom = await letters.groups()
    assert (often.count, often.name, often.queue, often.kind) == (3, "welcome", "mail", FailureKind.ERROR)
    assert (often.message, often.sample) == ("user 2 is gone", refs[2])
    assert (often.oldest_ms, often.newest_ms) == (start_ms, start_ms + 2_000)
    assert (seldom.count, seldom.kind, seldom.sample) == (1, FailureKind.TIMEOUT, rare)
    assert [job.ref for job in await letters.find(DeadFilter(fingerprint=seldom.fingerprint))] == [rare]


async def test_a_retry_gives_fresh_attempts_and_is_noted(store: Store, letters: DeadLetters) -> None:
    ref = await fail(store, attempts=1)
    other = await fail(store, name="remind")
    assert await letters.retry(DeadFilter(name="welcome")) == 1
    job = await store.job(ref)
    assert (job.state, job.attempts_made) == (State.WAITING, 0)
    assert any("retried" in line for line in (await store.logs(ref)).lines)
    assert (await store.job(other)).state == State.FAILED


@pytest.mark.parametrize("act", ["retry", "purge"])
async def test_more_than_a_page_is_acted_on_whole(store: Store, letters: DeadLetters, act: str) -> None:
    """Pages shift as jobs leave them; none is skipped, and what does not match stays."""
    await _fail_many(store, 1_300)
    await _fail_many(store, 20, "bills")
    assert await getattr(letters, act)(DeadFilter(queue="mail", name="kind-1")) == 650
    counts = await store.counts("mail")
    assert (counts.failed, counts.waiting) == (650, 650 if act == "retry" else 0)
    assert {job.name for job in await letters.find(DeadFilter(queue="mail"), limit=1_000)} == {"kind-0"}
    assert await getattr(letters, act)() == 670


async def test_a_limit_takes_the_oldest(store: Store, letters: DeadLetters, clock: ManualClock) -> None:
    refs = []
    for _ in range(4):
        refs.append(await fail(store))
        clock.advance(10)
    assert await letters.purge(limit=3) == 3
    assert [job.ref for job in await letters.find()] == refs[3:]


async def test_a_job_that_fails_again_at_once_is_not_retried_for_ever(
    store: Store, letters: DeadLetters, clock: ManualClock, monkeypatch: pytest.MonkeyPatch
) -> None:
    """What failed after the retry began is left for the next one."""
    await _fail_many(store, 600)
    retry = store.retry

    async def retry_and_fail_again(ref: JobRef) -> None:
        await retry(ref)
        clock.advance(1)
        await fail_waiting(store, [Failure("again")])

    monkeypatch.setattr(store, "retry", retry_and_fail_again)
    async with asyncio.timeout(60):
        assert await letters.retry() == 600
    assert (await store.counts("mail")).failed == 600


async def test_a_job_that_another_took_is_not_counted(
    store: Store, letters: DeadLetters, monkeypatch: pytest.MonkeyPatch
) -> None:
    gone, retried, left = [await fail(store) for _ in range(3)]
    jobs = store.jobs

    async def look_and_lose(queue: str, state: State, **page: object) -> object:
        found = await jobs(queue, state, **page)  # type: ignore[arg-type]
        if page["limit"] != 1:
            await store.remove(gone)
            await store.retry(retried)
        return found

    monkeypatch.setattr(store, "jobs", look_and_lose)
    assert await letters.retry() == 1
    assert (await store.job(left)).state == State.WAITING


async def test_an_export_is_plain_and_complete(store: Store, letters: DeadLetters, clock: ManualClock) -> None:
    now_ms = clock.now_ms()
    ref = await fail(
        store,
        data={"user_id": 42},
        tenant="acme",
        workspace="research",
        tags=["vip"],
        failure=Failure("no such user", FailureKind.UNRECOVERABLE, "ValueError", STACK),
    )
    (line,) = [json.loads(json.dumps(one)) async for one in letters.export()]
    (group,) = await letters.groups()
    assert line == {
        "id": ref.id,
        "queue": "mail",
        "name": "welcome",
        "data": {"user_id": 42},
        "failure": {"message": "no such user", "kind": "unrecoverable", "type": "ValueError"},
        "fingerprint": group.fingerprint,
        "stack": STACK,
        "attempts": {"made": 1, "allowed": 1, "crashes": {}},
        "times": {"added_ms": now_ms, "started_ms": now_ms, "failed_ms": now_ms},
        "tenant": "acme",
        "workspace": "research",
        "tags": ["vip"],
    }


async def test_an_export_without_the_codec_shows_what_is_stored(store: Store) -> None:
    """The rest of the line is worth having."""

    class Backwards:
        name = "backwards"

        def encode(self, plain: bytes) -> bytes:
            return plain[::-1]

        def decode(self, coded: bytes) -> bytes:
            return coded[::-1]

    pen = Bullpen(store, codec=Backwards())
    await pen.queue("mail").add("welcome", {"user_id": 42})
    await fail_waiting(store, [Failure("broken")])
    assert [line["data"] async for line in pen.dead_letters.export()] == [{"user_id": 42}]
    (blind,) = [line["data"] async for line in DeadLetters(store).export()]
    assert "backwards" in blind
    assert "user_id" not in blind


async def test_queues_bound_what_is_seen(store: Store) -> None:
    await fail(store)
    bill = await fail(store, queue="bills")
    some = DeadLetters(store, ["bills", "not-there-yet"])
    assert [job.ref for job in await some.find()] == [bill]
    with pytest.raises(BadOption, match="'mail' is not one of bills, not-there-yet"):
        await some.find(DeadFilter(queue="mail"))
    with pytest.raises(QueueMissing):
        await DeadLetters(store).find(DeadFilter(queue="mali"))


@pytest.mark.parametrize(
    "wrong",
    [
        {"name": ""},
        {"tenant": 3},
        {"workspace": ""},
        {"kind": "sad"},
        {"since_ms": "today"},
        {"until_ms": 1.5},
        {"error": ""},
    ],
    ids=lambda wrong: next(iter(wrong)),
)
def test_a_wrong_filter_is_refused_by_name(wrong: dict[str, object]) -> None:
    with pytest.raises(BadOption, match=next(iter(wrong))):
        DeadFilter(**wrong)  # type: ignore[arg-type]
    with pytest.raises(BadName):
        DeadFilter(queue="a:b")


@pytest.mark.parametrize("limit", [0, -1, True, "many"])
async def test_a_wrong_limit_is_refused(letters: DeadLetters, limit: int) -> None:
    verbs: Sequence[object] = (letters.find, letters.retry, letters.purge)
    for verb in verbs:
        with pytest.raises(BadOption, match="limit"):
            await verb(limit=limit)  # type: ignore[operator]
