"""Limits that a job type declares for itself."""

import asyncio
import logging

import pytest

from bullpen import BadOption, Bullpen, Context, QueueLimits, WorkerOptions, rate
from tests.app.conftest import StartWorker


async def test_a_type_s_concurrency_holds_on_all_workers(pen: Bullpen, start_worker: StartWorker) -> None:
    """The limit is in the store, so that two workers with slots enough keep it together."""
    running, most = 0, 0

    @pen.job(queue="search", concurrency=2, rate=rate(1_000, per=60))
    async def search(ctx: Context, n: int) -> int:
        nonlocal running, most
        running += 1
        most = max(most, running)
        await asyncio.sleep(0)
        running -= 1
        return n

    for _ in range(2):
        start_worker(options=WorkerOptions(concurrency=10))
    jobs = [await search.add(n) for n in range(20)]
    assert [await job.result(timeout=60) for job in jobs] == list(range(20))
    assert most <= 2
    standing = await pen.queue("search").limits()
    assert standing.limits == QueueLimits(concurrency=2, rate_max=1_000, rate_ms=60_000)


async def test_what_an_operator_set_stands(
    pen: Bullpen, start_worker: StartWorker, caplog: pytest.LogCaptureFixture
) -> None:
    """A restart of a worker does not undo it; the log says that they differ."""

    @pen.job(queue="search", concurrency=2)
    async def search(ctx: Context) -> str:
        return "done"

    await pen.queue("search").set_limits(concurrency=7)
    with caplog.at_level(logging.WARNING, logger="bullpen.worker"):
        start_worker()
        job = await search.add()
        assert await job.result(timeout=60) == "done"
    assert (await pen.queue("search").limits()).limits == QueueLimits(concurrency=7)
    assert "queue search keeps its limits" in caplog.text


@pytest.mark.parametrize("limited_first", [True, False])
def test_a_limited_type_needs_a_queue_of_its_own(limited_first: bool) -> None:
    pen = Bullpen("sqlite:unused.db")

    async def search(ctx: Context) -> None: ...
    async def index(ctx: Context) -> None: ...

    limited = pen.job(queue="shared", concurrency=2)
    plain = pen.job(queue="shared")
    first, second = ((limited, search), (plain, index)) if limited_first else ((plain, index), (limited, search))
    first[0](first[1])
    with pytest.raises(BadOption, match=r"concurrency and rate of search: .* 'shared' is shared with index"):
        second[0](second[1])


@pytest.mark.parametrize("wrong", [{"concurrency": 0}, {"concurrency": True}, {"rate": 5}])
def test_refuses_limits_that_are_none(wrong: dict[str, int]) -> None:
    pen = Bullpen("sqlite:unused.db")
    with pytest.raises(BadOption, match=f"{next(iter(wrong))}: "):
        pen.job(queue="search", **wrong)  # type: ignore[call-overload]  # that is the point
