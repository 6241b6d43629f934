"""Options of jobs, and looks at a queue."""

from collections.abc import Callable
from datetime import UTC, datetime, timedelta, timezone
from functools import partial
from typing import Any

import pytest

from bullpen import (
    BadData,
    BadId,
    BadName,
    BadOption,
    JobOptions,
    NewJob,
    Queue,
    SqliteStore,
    State,
    add_all,
    custom,
    debounce,
    dedup,
    exponential,
    fixed,
    keep,
)
from tests.bad_input.refusing import AGES, ENDLESS, NAN, SURROGATE, Anything, check_error, refused, short


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
    ids=short,
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
    ids=short,
)
def test_a_bad_argument_of_what_makes_an_option(make: Callable[[], object], word: str) -> None:
    with pytest.raises(BadOption) as caught:
        make()
    check_error(caught.value, BadOption, "bad-option", word)


@pytest.mark.parametrize("priority", [-1, 2_097_152, 1.5, True, "1"])
async def test_a_bad_change_of_priority(queue: Queue, store: SqliteStore, priority: Anything) -> None:
    async with refused(store, BadOption, "bad-option", "priority: ", repr(priority)):
        await queue.job("kept").change_priority(priority)


@pytest.mark.parametrize("delay", [-1, NAN, AGES, "5"], ids=short)
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
    async with refused(store, BadData, "bad-data", "job: data", "str"):
        await queue.add_prepared(NewJob("work", "mail", data=data))
    async with refused(store, BadOption, "bad-option", "'elsewhere'", "'work'"):
        await queue.add_prepared(NewJob("elsewhere", "mail"))
