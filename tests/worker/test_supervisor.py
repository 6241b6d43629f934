"""A supervisor replaces processes, and tells how they ended."""

import asyncio
import contextlib
import errno
import os
import signal
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from bullpen import (
    BadHandler,
    BadOption,
    CrashKind,
    Ended,
    FailureKind,
    JobFailed,
    Queue,
    State,
    Supervisor,
    Worker,
    WorkerOptions,
)
from bullpen.worker.oom import OomWatch
from tests.worker.waiting import until


async def test_a_killed_process_is_replaced_and_its_job_told_apart(
    queue: Queue, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A job that kills its process is tried again as often as allowed, then fails as stalled; no attempt is used."""
    monkeypatch.setenv("FLEET_MAX_STALLED", "1")
    supervisor = Supervisor("tests.worker.fleet:make_misbehaving_worker", processes=2)
    running = asyncio.create_task(supervisor.run())
    poison = await queue.add("poison", {"how": "kill"}, attempts=5)
    with pytest.raises(JobFailed, match="lost its worker"):
        await poison.result(60)
    record = await poison.record()
    assert record.failure is not None
    assert (record.failure.kind, record.attempts_made) == (FailureKind.STALLED, 0)
    assert record.crashes == {CrashKind.KILLED: 2}
    good = await queue.add("good", {"how": "well"})
    assert await good.result(60) != os.getpid()
    supervisor.stop()
    await running


async def test_a_process_is_recycled_after_its_share_of_jobs(queue: Queue, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("FLEET_MAX_JOBS", "3")
    supervisor = Supervisor("tests.worker.fleet:make_misbehaving_worker", processes=1)
    running = asyncio.create_task(supervisor.run())
    jobs = [await queue.add("good", {"how": "well"}) for _ in range(10)]
    pids = {await job.result(60) for job in jobs}
    assert len(pids) > 1
    assert {tuple((await job.record()).crashes) for job in jobs} <= {(), ("deploy",)}
    supervisor.stop()
    await running


async def test_a_process_that_grows_too_large_is_recycled(queue: Queue, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("FLEET_MAX_MEMORY", "1")  # any Python is larger
    supervisor = Supervisor("tests.worker.fleet:make_misbehaving_worker", processes=1)
    running = asyncio.create_task(supervisor.run())

    job = await queue.add("good", {"how": "well"})

    async def replaced() -> int:
        return supervisor.replaced

    await until(replaced, lambda count: count >= 1)
    assert await job.result(60) != os.getpid()
    supervisor.stop()
    await running


async def test_a_worker_that_is_too_large_from_the_start_works_and_says_so(
    queue: Queue, caplog: pytest.LogCaptureFixture
) -> None:
    """The next process would be as large: without a job in between, they would only follow on each other."""
    worker = Worker(queue.store, {"work": lambda _: "done"}, WorkerOptions(max_memory_mb=1))
    running = asyncio.create_task(worker.run())  # awaited below

    async def said() -> str:
        return caplog.text

    await until(said, lambda text: "max_memory_mb is 1" in text or running.done(), 20)
    assert not running.done()
    assert await (await queue.add("work")).result(20) == "done"
    async with asyncio.timeout(20):
        assert await running == Ended.RECYCLED


async def test_stop_ends_all_processes(queue: Queue) -> None:
    supervisor = Supervisor("tests.worker.fleet:make_worker", processes=2)
    running = asyncio.create_task(supervisor.run())
    await until(queue.store.workers, lambda workers: [worker.state for worker in workers] == ["ready", "ready"])
    processes = list(supervisor.running.values())
    supervisor.stop()
    await running
    assert [process.returncode for process in processes] == [0, 0]


@contextlib.contextmanager
def supervising(factory: str) -> Iterator[subprocess.Popen[bytes]]:
    """A supervisor in a process and a group of its own, as a terminal or systemd has it."""
    command = [sys.executable, "-m", "tests.worker.supervising", factory]
    supervisor = subprocess.Popen(command, start_new_session=True)
    try:
        yield supervisor
    finally:
        supervisor.kill()
        supervisor.wait()


@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM])
async def test_a_signal_to_all_of_them_is_one_signal(queue: Queue, number: signal.Signals) -> None:
    """A terminal tells a whole group, systemd each process, and the supervisor passes it on: what runs completes."""
    with supervising("tests.worker.fleet:make_misbehaving_worker") as supervisor:
        job = await queue.add("work", {"how": "take a second"})
        await until(job.logs, lambda lines: "begun" in lines)
        (worker,) = await queue.store.workers()
        os.kill(worker.pid, number)
        os.killpg(supervisor.pid, number)
        assert await asyncio.to_thread(supervisor.wait, 60) == 0
        assert await job.result(1) == worker.pid
    assert (await job.record()).crashes == {}


async def test_workers_end_with_a_supervisor_that_is_killed(queue: Queue) -> None:
    """Nobody would pass on a stop to them, nor start another in their place: they finish what they have."""
    with supervising("tests.worker.fleet:make_misbehaving_worker") as supervisor:
        job = await queue.add("work", {"how": "take a second"})
        await until(job.logs, lambda lines: "begun" in lines)
        supervisor.kill()
        await until(queue.store.workers, lambda workers: [worker.state for worker in workers] == ["stopped"])
    assert (await job.record()).state == State.COMPLETED


async def test_a_fork_that_fails_is_tried_again_and_the_others_go_on(
    queue: Queue, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The machine has no process to give away for a moment."""
    refusals = [BlockingIOError(errno.EAGAIN, "Resource temporarily unavailable")]
    start = asyncio.create_subprocess_exec

    async def refuse_once(*arguments: Any, **options: Any) -> asyncio.subprocess.Process:
        if refusals:
            raise refusals.pop()
        return await start(*arguments, **options)

    monkeypatch.setattr(asyncio, "create_subprocess_exec", refuse_once)
    supervisor = Supervisor("tests.worker.fleet:make_worker", processes=2)
    running = asyncio.create_task(supervisor.run())
    await until(queue.store.workers, lambda workers: [worker.state for worker in workers] == ["ready", "ready"])
    supervisor.stop()
    await running


async def test_a_cancelled_supervisor_leaves_no_process_behind(queue: Queue) -> None:
    supervisor = Supervisor("tests.worker.fleet:make_worker", processes=2)
    running = asyncio.create_task(supervisor.run())
    await until(queue.store.workers, lambda workers: [worker.state for worker in workers] == ["ready", "ready"])
    processes = list(supervisor.running.values())
    running.cancel()
    with pytest.raises(asyncio.CancelledError):
        await running
    assert [process.returncode for process in processes] == [0, 0]


def test_a_kill_for_memory_is_told_from_others(tmp_path: Path) -> None:
    """The kernel's count grew: it was memory. It did not: it was someone else."""
    counter = tmp_path / "memory.events"
    counter.write_text("low 0\noom 1\noom_kill 4\n")
    watch = OomWatch((tmp_path / "missing", counter))
    assert watch.happened() is False
    counter.write_text("low 0\noom 2\noom_kill 5\n")
    assert watch.happened() is True
    assert watch.happened() is False


def test_two_kills_for_memory_at_once_are_two(tmp_path: Path) -> None:
    counter = tmp_path / "memory.events"
    counter.write_text("oom_kill 4\n")
    watch = OomWatch((counter,))
    counter.write_text("oom_kill 6\n")
    assert [watch.happened() for _ in range(3)] == [True, True, False]


def test_refuses_a_factory_that_makes_no_worker() -> None:
    with pytest.raises(BadHandler, match="returned str, not a Worker"):
        Supervisor("os:getcwd")


def test_refuses_no_processes() -> None:
    with pytest.raises(BadOption, match="processes"):
        Supervisor("tests.worker.fleet:make_worker", processes=0)
