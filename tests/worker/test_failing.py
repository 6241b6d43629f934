"""What becomes of a job whose handler fails: another attempt, the end, or a later time."""

import asyncio
from typing import Any

import pytest

from bullpen import (
    Context,
    Failure,
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
from bullpen.worker.running import Run, Stop, StopCause
from tests.worker.conftest import StartWorker
from tests.worker.waiting import until


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


class UnprintableError(Exception):
    def __str__(self) -> str:
        raise RuntimeError("no words")


class TouchyError(Exception):
    @property
    def response(self) -> object:
        raise RuntimeError("the request has not been sent")


class Panic(BaseException):
    """As extensions in Rust raise it."""


@pytest.mark.parametrize(
    "error, message",
    [
        (OSError("no file \udcff"), r"no file \\udcff"),
        (UnprintableError(), "UnprintableError, which cannot be printed: RuntimeError"),
        (TouchyError("touched"), "touched"),
        (Panic("unwrapped a None"), "unwrapped a None"),
        (BaseExceptionGroup("both", [Panic("one"), OSError("two")]), "both"),
        (Postpone(float("nan")), "NaN"),
    ],
)
@pytest.mark.parametrize("where", ["loop", "thread"])
async def test_whatever_a_handler_raises_its_job_fails_and_its_slot_is_free(
    queue: Queue, start_worker: StartWorker, error: BaseException, message: str, where: str
) -> None:
    def fail(ctx: Context) -> None:
        if ctx.data == "fail":
            raise error

    async def fail_on_the_loop(ctx: Context) -> None:
        fail(ctx)

    start_worker({"work": fail if where == "thread" else fail_on_the_loop}, WorkerOptions(concurrency=1))
    job = await queue.add("fail", "fail")
    with pytest.raises(JobFailed, match=message):
        await job.result(20)
    assert await (await queue.add("next", "work")).result(20) is None


@pytest.mark.parametrize("answer", [float("nan"), float("inf"), None, "soon", RuntimeError("broken")])
async def test_a_custom_backoff_that_fails_costs_no_attempt(
    queue: Queue, start_worker: StartWorker, answer: Any
) -> None:
    """Each attempt is made, as with a fixed backoff; an endless wait is a long one."""

    def backoff(made: int, failure: Failure) -> float:
        if isinstance(answer, Exception):
            raise answer
        return answer  # type: ignore[no-any-return]  # whatever it is

    async def fail(ctx: Context) -> None:
        raise OSError("away")

    start_worker({"work": fail}, WorkerOptions(backoffs={"broken": backoff}))
    job = await queue.add("fail", attempts=2, backoff=custom("broken", base=0.01))
    if answer == float("inf"):
        record = await until(job.record, lambda record: record.state == State.DELAYED)
        assert record.attempts_made == 1
    else:
        with pytest.raises(JobFailed, match="away"):
            await job.result(20)
        assert (await job.record()).attempts_made == 2


async def test_a_handler_that_cancels_its_own_task_fails_its_job_only(queue: Queue, start_worker: StartWorker) -> None:
    async def confused(ctx: Context) -> None:
        task = asyncio.current_task()
        if ctx.data == "cancel" and task is not None:
            task.cancel()
            await asyncio.sleep(60)

    start_worker({"work": confused}, WorkerOptions(concurrency=1))
    job = await queue.add("confused", "cancel")
    with pytest.raises(JobFailed, match="CancelledError"):
        await job.result(20)
    assert await (await queue.add("confused", "work")).result(20) is None


async def test_lines_that_are_no_unicode_are_kept_escaped(queue: Queue, start_worker: StartWorker) -> None:
    async def talk(ctx: Context) -> None:
        ctx.log("no file \udcff")

    start_worker({"work": talk}, WorkerOptions(concurrency=1))
    job = await queue.add("talk")
    await job.result(20)
    assert await job.logs() == ("no file \\udcff",)


async def test_a_run_that_is_stopped_before_it_begins_frees_its_slot(queue: Queue, start_worker: StartWorker) -> None:
    """Its task is cancelled before its first turn, so that nothing of it ever runs."""

    async def work(ctx: Context) -> str:
        return "done"

    worker = start_worker({"work": work}, WorkerOptions(concurrency=1))
    enter = worker._book.enter
    stopped: list[Run] = []

    def stop_at_once(run: Run) -> None:
        enter(run)
        if not stopped:
            stopped.append(run)
            asyncio.get_running_loop().call_soon(run.ask_to_stop, Stop(StopCause.CANCELLED, "no longer needed"))

    worker._book.enter = stop_at_once  # type: ignore[method-assign]  # the moment at which the lease thread may ask
    job = await queue.add("work")
    with pytest.raises(JobFailed, match="no longer needed"):
        await job.result(20)
    assert await (await queue.add("work")).result(20) == "done"


class WrongKey:
    name = "aes"

    def encode(self, plain: bytes) -> bytes:
        return plain

    def decode(self, coded: bytes) -> bytes:
        raise RuntimeError("not written with this key")


async def test_data_that_a_codec_cannot_read_fails_its_job_only(queue: Queue, start_worker: StartWorker) -> None:
    async def work(ctx: Context) -> None: ...

    start_worker({"work": work}, WorkerOptions(codec=WrongKey()))
    job = await Queue(queue.store, "work", codec=WrongKey()).add("secret", {"a": 1})
    with pytest.raises(JobFailed, match="not written with this key"):
        await job.result(20)
