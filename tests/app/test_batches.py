"""Jobs that are done together and settled one by one."""

import asyncio
import threading
from collections.abc import Sequence

import pytest

from bullpen import BadHandler, BadOption, Bullpen, Call, Context, FailureKind, Job, JobFailed, State, WorkerOptions
from bullpen.jobtypes.jobtype import AsyncJobType
from tests.app.conftest import StartWorker

MANY = WorkerOptions(concurrency=20)


def _declared(pen: Bullpen) -> "AsyncJobType[[int], int]":
    @pen.job(queue="embed", attempts=2)
    async def embed(ctx: Context, number: int) -> int:
        raise AssertionError("the batch does it")

    return embed


async def _add(embed: "AsyncJobType[[int], int]", numbers: Sequence[int]) -> list[Job[int]]:
    return [await embed.add(number) for number in numbers]


async def test_a_batch_is_as_large_as_it_may_be(pen: Bullpen, start_worker: StartWorker) -> None:
    """Twelve jobs that are there already make two batches of five, and the rest goes after the wait."""
    sizes: list[int] = []
    embed = _declared(pen)

    @embed.batch(5, wait=0.2)
    async def embed_all(calls: list[Call]) -> list[int]:
        sizes.append(len(calls))
        return [call.arguments["number"] * 10 for call in calls]

    jobs = await _add(embed, range(12))
    start_worker(options=MANY)
    assert [await job.result(timeout=60) for job in jobs] == [n * 10 for n in range(12)]
    assert sizes == [5, 5, 2]


async def test_a_lone_job_does_not_wait_for_ever(pen: Bullpen, start_worker: StartWorker) -> None:
    embed = _declared(pen)

    @embed.batch(100, wait=0.01)
    def embed_all(calls: list[Call]) -> list[str]:
        return [threading.current_thread().name for _ in calls]

    start_worker(options=MANY)
    job = await pen.queue("embed").add("embed", {"number": 1})
    assert await job.result(timeout=60) != threading.main_thread().name


async def test_one_of_a_batch_may_fail_alone(pen: Bullpen, start_worker: StartWorker) -> None:
    """Its attempt is counted and it is tried again; the others are done."""
    seen: list[list[int]] = []
    embed = _declared(pen)

    @embed.batch(3, wait=0.2)
    async def embed_all(calls: list[Call]) -> list[int | Exception]:
        numbers = [call.arguments["number"] for call in calls]
        seen.append(numbers)
        return [ValueError("bad number") if number == 2 else number for number in numbers]

    jobs = await _add(embed, [1, 2, 3])
    start_worker(options=MANY)
    assert await jobs[0].result(timeout=60) == 1
    assert await jobs[2].result(timeout=60) == 3
    with pytest.raises(JobFailed, match="bad number"):
        await jobs[1].result(timeout=60)
    assert [(await job.record()).attempts_made for job in jobs] == [1, 2, 1]
    assert seen == [[1, 2, 3], [2]]


async def test_an_error_of_the_batch_is_each_jobs_error(pen: Bullpen, start_worker: StartWorker) -> None:
    embed = _declared(pen)

    @embed.batch(3, wait=0.2)
    async def embed_all(calls: list[Call]) -> list[int]:
        raise ConnectionError("the model is away")

    jobs = await _add(embed, [1, 2, 3])
    start_worker(options=MANY)
    for job in jobs:
        with pytest.raises(JobFailed, match="the model is away"):
            await job.result(timeout=60)
        assert (await job.record()).attempts_made == 2


async def test_a_wrong_number_of_results_fails_all_at_once(pen: Bullpen, start_worker: StartWorker) -> None:
    """Which result belongs to whom cannot be known, and will not be known at the next attempt."""
    embed = _declared(pen)

    @embed.batch(3, wait=0.2)
    async def embed_all(calls: list[Call]) -> list[int]:
        return [1]

    jobs = await _add(embed, [1, 2, 3])
    start_worker(options=MANY)
    for job in jobs:
        with pytest.raises(JobFailed, match="a batch of 3 wants a list of as many results"):
            await job.result(timeout=60)
        failure = (await job.record()).failure
        assert failure is not None
        assert failure.kind == FailureKind.UNRECOVERABLE


async def test_a_batch_that_ends_the_program_or_is_cancelled_fails_its_jobs(
    pen: Bullpen, start_worker: StartWorker
) -> None:
    """Neither hangs the jobs nor takes the worker along."""
    embed = _declared(pen)

    @embed.batch(1)
    async def embed_all(calls: list[Call]) -> list[int]:
        if calls[0].arguments["number"] == 1:
            raise SystemExit(1)
        raise asyncio.CancelledError

    jobs = await _add(embed, [1, 2])
    start_worker(options=MANY)
    for job in jobs:
        with pytest.raises(JobFailed):
            await job.result(timeout=60)


async def test_a_job_that_is_cancelled_before_its_batch_begins_leaves_it(
    pen: Bullpen, start_worker: StartWorker
) -> None:
    seen: list[list[int]] = []
    running = asyncio.Event()
    embed = _declared(pen)

    @pen.job(queue="embed")
    async def mark(ctx: Context) -> None:
        running.set()

    @embed.batch(2, wait=60)
    async def embed_all(calls: list[Call]) -> list[int]:
        seen.append([call.arguments["number"] for call in calls])
        return [0 for _ in calls]

    first = await embed.add(1)
    start_worker(options=MANY)
    await mark.add()
    await running.wait()
    await first.cancel("changed my mind")
    with pytest.raises(JobFailed, match="changed my mind"):
        await first.result(timeout=60)
    jobs = await _add(embed, [2, 3])
    for job in jobs:
        await job.result(timeout=60)
    assert seen == [[2, 3]]
    assert (await first.record()).state == State.FAILED


async def test_each_worker_gathers_its_own(pen: Bullpen) -> None:
    """A worker's batches live on its own event loop: a second worker of the process gets none of them."""
    embed = _declared(pen)

    @embed.batch(2, wait=0.01)
    async def embed_all(calls: list[Call]) -> list[int]:
        return [call.arguments["number"] for call in calls]

    job = await embed.add(1)

    def work_elsewhere() -> None:
        async def work() -> None:
            worker = pen.worker()
            working = asyncio.create_task(worker.run())
            store = pen.store.another()
            await store.open()
            while (await store.job(job.ref)).state != State.COMPLETED:
                await asyncio.sleep(0.01)
            worker.stop_now()
            await working
            await store.close()

        asyncio.run(work())

    await asyncio.to_thread(work_elsewhere)
    assert await job.result(timeout=60) == 1


async def test_what_a_batch_cannot_be(pen: Bullpen) -> None:
    embed = _declared(pen)
    for size in (0, -1, True, "3"):
        with pytest.raises(BadOption, match="size"):
            embed.batch(size)(lambda calls: [])  # type: ignore[arg-type]
    with pytest.raises(BadOption, match="wait"):
        embed.batch(3, wait=-1)(lambda calls: [])

    @pen.job(in_process=True)
    def far(ctx: Context) -> None: ...

    with pytest.raises(BadHandler, match="in_process"):
        far.batch(3)
