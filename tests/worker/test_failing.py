"""What becomes of a job whose handler fails: another attempt, the end, or a later time."""

import asyncio

import pytest

from bullpen import (
    Context,
    JobFailed,
    Postpone,
    Queue,
    RetryPolicy,
    State,
    Unrecoverable,
    WorkerOptions,
    custom,
    exponential,
)
from tests.worker.conftest import StartWorker


async def test_a_failed_attempt_is_tried_again(queue: Queue, start_worker: StartWorker) -> None:
    async def second_time_lucky(ctx: Context) -> int:
        if ctx.attempt < 3:
            raise ConnectionError("away")
        return ctx.attempt

    start_worker({"work": second_time_lucky})
    job = await queue.add("lucky", attempts=3, backoff=exponential(0.01))
    assert await job.result(60) == 3
    assert len((await job.record()).stacks) == 2


async def test_the_last_attempt_fails_the_job(queue: Queue, start_worker: StartWorker) -> None:
    async def never(ctx: Context) -> None:
        raise ConnectionError("away")

    start_worker({"work": never})
    job = await queue.add("never", attempts=2)
    with pytest.raises(JobFailed, match="away"):
        await job.result(60)
    record = await job.record()
    assert (record.state, record.attempts_made) == (State.FAILED, 2)


async def test_an_unrecoverable_error_fails_at_once(queue: Queue, start_worker: StartWorker) -> None:
    async def hopeless(ctx: Context) -> None:
        raise Unrecoverable("the account is closed")

    start_worker({"work": hopeless})
    job = await queue.add("hopeless", attempts=5)
    with pytest.raises(JobFailed, match="account is closed"):
        await job.result(60)
    assert (await job.record()).attempts_made == 1


class HttpError(Exception):
    def __init__(self, status_code: int) -> None:
        super().__init__(f"HTTP {status_code}")
        self.status_code = status_code


class CodedError(Exception):
    code = "quota"


class OpinionatedError(Exception):
    retryable = False


@pytest.mark.parametrize(
    "error, attempts_made",
    [
        (HttpError(404), 1),
        (HttpError(429), 2),
        (HttpError(503), 2),
        (CodedError("over"), 1),
        (OpinionatedError("no"), 1),
        (KeyError("type"), 1),
        (OSError("unknown"), 2),
    ],
)
async def test_errors_are_classified(
    queue: Queue, start_worker: StartWorker, error: Exception, attempts_made: int
) -> None:
    async def fail(ctx: Context) -> None:
        raise error

    policy = RetryPolicy(never=(KeyError,), never_codes=frozenset({"quota"}))
    start_worker({"work": fail}, WorkerOptions(retry_policy=policy))
    job = await queue.add("fail", attempts=2)
    with pytest.raises(JobFailed):
        await job.result(60)
    assert (await job.record()).attempts_made == attempts_made


async def test_a_custom_backoff_decides(queue: Queue, start_worker: StartWorker) -> None:
    async def fail(ctx: Context) -> None:
        raise OSError("away")

    start_worker({"work": fail}, WorkerOptions(backoffs={"twice": lambda made, failure: 0 if made < 2 else -1}))
    job = await queue.add("fail", attempts=10, backoff=custom("twice"))
    with pytest.raises(JobFailed):
        await job.result(60)
    assert (await job.record()).attempts_made == 2


async def test_a_postponed_job_uses_no_attempt(queue: Queue, start_worker: StartWorker) -> None:
    seen: list[int] = []

    async def not_now(ctx: Context) -> str:
        seen.append(ctx.attempt)
        if len(seen) == 1:
            raise Postpone(0.01, "the shop is closed")
        return "done"

    start_worker({"work": not_now})
    job = await queue.add("shop")
    assert await job.result(60) == "done"
    assert seen == [1, 1]


async def test_a_handler_s_own_cancelled_error_is_its_failure(queue: Queue, start_worker: StartWorker) -> None:
    """Something that the handler awaited was cancelled: the job fails, it does not vanish."""

    async def confused(ctx: Context) -> None:
        raise asyncio.CancelledError

    start_worker({"work": confused})
    job = await queue.add("confused")
    with pytest.raises(JobFailed, match="CancelledError"):
        await job.result(60)


async def test_a_handler_that_exits_fails_its_job_only(queue: Queue, start_worker: StartWorker) -> None:
    async def leave(ctx: Context) -> None:
        if ctx.data == "exit":
            raise SystemExit(3)

    start_worker({"work": leave})
    job = await queue.add("leave", "exit")
    with pytest.raises(JobFailed, match="3"):
        await job.result(60)
    assert await (await queue.add("leave", "stay")).result(60) is None


async def test_a_result_that_is_no_json_fails_the_job(queue: Queue, start_worker: StartWorker) -> None:
    async def strange(ctx: Context) -> object:
        return object()

    start_worker({"work": strange})
    job = await queue.add("strange", attempts=3)
    with pytest.raises(JobFailed, match="result cannot be written as JSON"):
        await job.result(60)
    assert (await job.record()).attempts_made == 1, "its effects must not be repeated"


async def test_a_result_that_is_too_large_fails_the_job(queue: Queue, start_worker: StartWorker) -> None:
    async def verbose(ctx: Context) -> str:
        return "x" * 100

    start_worker({"work": verbose}, WorkerOptions(max_result_bytes=50))
    job = await queue.add("verbose", attempts=3)
    with pytest.raises(JobFailed, match="result is 102 bytes"):
        await job.result(60)
    assert (await job.record()).attempts_made == 1
