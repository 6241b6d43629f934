"""What becomes of a job, by what its handler does."""

import asyncio
import threading
import time

import pytest

from bullpen import (
    Context,
    CrashKind,
    FailureKind,
    JobFailed,
    Postpone,
    Queue,
    RetryPolicy,
    State,
    Unrecoverable,
    WorkerOptions,
    custom,
    exponential,
    in_process,
)
from tests.worker import in_other_process
from tests.worker.conftest import StartWorker
from tests.worker.waiting import until


async def test_an_async_handler_returns_its_result(queue: Queue, start_worker: StartWorker) -> None:
    async def double(ctx: Context) -> int:
        await asyncio.sleep(0)
        return int(ctx.data["n"]) * 2

    start_worker({"work": double})
    job = await queue.add("double", {"n": 21})
    assert await job.result(10) == 42


async def test_a_sync_handler_runs_in_a_thread(queue: Queue, start_worker: StartWorker) -> None:
    def where(ctx: Context) -> bool:
        return threading.current_thread() is threading.main_thread()

    start_worker({"work": where})
    job = await queue.add("where")
    assert await job.result(10) is False


async def test_sync_handlers_run_side_by_side(queue: Queue, start_worker: StartWorker) -> None:
    """As many threads as slots: each waits for the other, so one after the other would never end."""
    both = threading.Barrier(2, timeout=10)

    start_worker({"work": lambda ctx: both.wait() >= 0}, WorkerOptions(concurrency=2))
    jobs = [await queue.add("meet"), await queue.add("meet")]
    assert [await job.result(10) for job in jobs] == [True, True]


async def test_a_process_handler_runs_in_another_process(queue: Queue, start_worker: StartWorker) -> None:
    import os

    start_worker({"work": in_process(in_other_process.describe)})
    job = await queue.add("describe", {"n": 3})
    result = await job.result(20)
    assert result["n"] == 3
    assert result["pid"] != os.getpid()
    assert await job.logs() == ("hello from the other process",)
    assert (await job.record()).progress == b'{"done":1}'


async def test_a_process_handler_s_error_is_told_with_its_stack(queue: Queue, start_worker: StartWorker) -> None:
    start_worker({"work": in_process(in_other_process.fail)})
    job = await queue.add("fail")
    with pytest.raises(JobFailed, match="no such luck"):
        await job.result(20)
    record = await job.record()
    assert record.failure is not None
    assert record.failure.type == "LookupError"
    assert "in fail" in record.stacks[0]


async def test_a_process_that_dies_is_a_crash_not_an_attempt(queue: Queue, start_worker: StartWorker) -> None:
    """A segfault is counted by its kind until the limit, whatever attempts there are."""
    start_worker({"work": in_process(in_other_process.die)}, WorkerOptions(max_stalled=1))
    job = await queue.add("die", attempts=5)
    with pytest.raises(JobFailed, match="lost its worker 2 times"):
        await job.result(30)
    record = await job.record()
    assert record.failure is not None
    assert (record.failure.kind, record.attempts_made) == (FailureKind.STALLED, 0)
    assert record.crashes == {CrashKind.KILLED: 2}
    assert await job.logs() == ("its process was ended by SIGSEGV",) * 2


async def test_a_failed_attempt_is_tried_again(queue: Queue, start_worker: StartWorker) -> None:
    async def second_time_lucky(ctx: Context) -> int:
        if ctx.attempt < 3:
            raise ConnectionError("away")
        return ctx.attempt

    start_worker({"work": second_time_lucky})
    job = await queue.add("lucky", attempts=3, backoff=exponential(0.01))
    assert await job.result(10) == 3
    assert len((await job.record()).stacks) == 2


async def test_the_last_attempt_fails_the_job(queue: Queue, start_worker: StartWorker) -> None:
    async def never(ctx: Context) -> None:
        raise ConnectionError("away")

    start_worker({"work": never})
    job = await queue.add("never", attempts=2)
    with pytest.raises(JobFailed, match="away"):
        await job.result(10)
    record = await job.record()
    assert (record.state, record.attempts_made) == (State.FAILED, 2)


async def test_an_unrecoverable_error_fails_at_once(queue: Queue, start_worker: StartWorker) -> None:
    async def hopeless(ctx: Context) -> None:
        raise Unrecoverable("the account is closed")

    start_worker({"work": hopeless})
    job = await queue.add("hopeless", attempts=5)
    with pytest.raises(JobFailed, match="account is closed"):
        await job.result(10)
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
        await job.result(10)
    assert (await job.record()).attempts_made == attempts_made


async def test_a_custom_backoff_decides(queue: Queue, start_worker: StartWorker) -> None:
    async def fail(ctx: Context) -> None:
        raise OSError("away")

    start_worker({"work": fail}, WorkerOptions(backoffs={"twice": lambda made, failure: 0 if made < 2 else -1}))
    job = await queue.add("fail", attempts=10, backoff=custom("twice"))
    with pytest.raises(JobFailed):
        await job.result(10)
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
    assert await job.result(10) == "done"
    assert seen == [1, 1]


async def test_a_job_nobody_handles_is_parked(queue: Queue, start_worker: StartWorker) -> None:
    """It is delayed, says why, and its attempts are whole."""

    async def known(ctx: Context) -> None: ...

    start_worker({"work": {"known": known}})
    job = await queue.add("unknown")
    record = await until(job.record, lambda record: record.state == State.DELAYED)
    assert record.note == "no handler for 'unknown' on this worker"
    assert record.attempts_made == 0


async def test_follow_up_jobs_come_with_the_completion(queue: Queue, start_worker: StartWorker) -> None:
    async def first(ctx: Context) -> None:
        ctx.then(queue.prepare("second", {"after": ctx.id}, id="follow-up"))

    async def second(ctx: Context) -> str:
        return str(ctx.data["after"])

    start_worker({"work": {"first": first, "second": second}})
    job = await queue.add("first")
    await job.result(10)
    assert await queue.job("follow-up").result(10) == job.id


async def test_words_reach_the_store_before_the_verdict(queue: Queue, start_worker: StartWorker) -> None:
    async def talk(ctx: Context) -> None:
        ctx.log("one")
        ctx.progress(50)
        ctx.log("two")

    start_worker({"work": talk})
    job = await queue.add("talk")
    await job.result(10)
    assert await job.logs() == ("one", "two")
    assert (await job.record()).progress == b"50"


async def test_an_async_handler_is_timed_out_at_its_await(queue: Queue, start_worker: StartWorker) -> None:
    async def slow(ctx: Context) -> None:
        await asyncio.Event().wait()

    start_worker({"work": slow})
    job = await queue.add("slow", timeout=0.05)
    with pytest.raises(JobFailed, match=r"timed out after 0\.05 s"):
        await job.result(10)
    record = await job.record()
    assert record.failure is not None
    assert (record.failure.kind, record.attempts_made) == (FailureKind.TIMEOUT, 1)


async def test_a_process_is_killed_at_its_timeout(queue: Queue, start_worker: StartWorker) -> None:
    start_worker({"work": in_process(in_other_process.block)})
    job = await queue.add("block", timeout=0.5)
    with pytest.raises(JobFailed, match="timed out"):
        await job.result(30)


async def test_a_thread_that_looks_stops_at_its_timeout(queue: Queue, start_worker: StartWorker) -> None:
    def polite(ctx: Context) -> None:
        while True:
            ctx.check_cancelled()
            time.sleep(0.001)

    start_worker({"work": polite})
    job = await queue.add("polite", timeout=0.05)
    with pytest.raises(JobFailed, match="timed out"):
        await job.result(10)


async def test_a_handler_s_own_cancelled_error_is_its_failure(queue: Queue, start_worker: StartWorker) -> None:
    """Something that the handler awaited was cancelled: the job fails, it does not vanish."""

    async def confused(ctx: Context) -> None:
        raise asyncio.CancelledError

    start_worker({"work": confused})
    job = await queue.add("confused")
    with pytest.raises(JobFailed, match="CancelledError"):
        await job.result(10)


async def test_a_handler_that_exits_fails_its_job_only(queue: Queue, start_worker: StartWorker) -> None:
    async def leave(ctx: Context) -> None:
        if ctx.data == "exit":
            raise SystemExit(3)

    start_worker({"work": leave})
    job = await queue.add("leave", "exit")
    with pytest.raises(JobFailed, match="3"):
        await job.result(10)
    assert await (await queue.add("leave", "stay")).result(10) is None


async def test_a_result_that_is_no_json_fails_the_job(queue: Queue, start_worker: StartWorker) -> None:
    async def strange(ctx: Context) -> object:
        return object()

    start_worker({"work": strange})
    job = await queue.add("strange", attempts=3)
    with pytest.raises(JobFailed, match="result cannot be written as JSON"):
        await job.result(10)
    assert (await job.record()).attempts_made == 1, "its effects must not be repeated"


async def test_a_result_that_is_too_large_fails_the_job(queue: Queue, start_worker: StartWorker) -> None:
    async def verbose(ctx: Context) -> str:
        return "x" * 100

    start_worker({"work": verbose}, WorkerOptions(max_result_bytes=50))
    job = await queue.add("verbose", attempts=3)
    with pytest.raises(JobFailed, match="result is 102 bytes"):
        await job.result(10)
    assert (await job.record()).attempts_made == 1


async def test_slots_are_not_exceeded(queue: Queue, start_worker: StartWorker) -> None:
    running = peak = 0

    async def count(ctx: Context) -> None:
        nonlocal running, peak
        running += 1
        peak = max(peak, running)
        await asyncio.sleep(0.001)
        running -= 1

    start_worker({"work": count}, WorkerOptions(concurrency=3))
    jobs = await queue.add_bulk([queue.prepare("count") for _ in range(50)])
    for job in jobs:
        await job.result(20)
    assert peak == 3


async def test_one_worker_serves_several_queues(queue: Queue, start_worker: StartWorker) -> None:
    other = Queue(queue.store, "other")

    async def name_of_queue(ctx: Context) -> str:
        return ctx.job.queue

    start_worker({"work": name_of_queue, "other": name_of_queue}, WorkerOptions(concurrency={"work": 1, "other": 2}))
    assert await (await queue.add("x")).result(10) == "work"
    assert await (await other.add("x")).result(10) == "other"


async def test_a_paused_worker_claims_nothing(queue: Queue, start_worker: StartWorker) -> None:
    async def work(ctx: Context) -> int:
        return 1

    worker = start_worker({"work": work})
    assert await (await queue.add("x")).result(10) == 1
    worker.pause()
    job = await queue.add("x")
    assert (await job.record()).state == State.WAITING
    worker.resume()
    assert await job.result(10) == 1
