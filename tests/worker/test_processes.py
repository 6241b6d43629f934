"""Handlers in processes of their own that say what cannot be kept, and processes that end between two jobs."""

import os
import signal
from pathlib import Path

import pytest

from bullpen import CrashKind, JobFailed, Queue, WorkerOptions, in_process
from bullpen.worker.memory import resident_mb
from bullpen.worker.processes import Processes
from tests.worker import in_other_process
from tests.worker.conftest import StartWorker
from tests.worker.waiting import until

MISBEHAVE = {"work": in_process(in_other_process.misbehave)}
ONE = WorkerOptions(concurrency=1, timeout=30)


@pytest.mark.parametrize(
    "data, message, keeps_process",
    [
        ("endless progress", "progress is NaN", True),
        ("huge progress", "progress is 300,002 bytes", True),
        ("bad follow-up", "Expected `str`, got `int`", False),
        ("no result", "result cannot be written as JSON", True),
        ("no unicode", "result cannot be written as JSON", True),
        ("error that is no unicode", r"no file \\udcff", True),
        ("huge code", "cannot be printed", True),
    ],
)
async def test_what_cannot_be_kept_fails_its_job_and_no_other(
    queue: Queue, start_worker: StartWorker, data: str, message: str, keeps_process: bool
) -> None:
    """No crash is counted, and no process is left at work on a job that is over."""
    start_worker(MISBEHAVE, ONE)
    first = await (await queue.add("first", "pid")).result(60)
    job = await queue.add("bad", data)
    with pytest.raises(JobFailed, match=message):
        await job.result(20)
    assert (await job.record()).crashes == {}
    second = await (await queue.add("second", "pid")).result(60)
    assert (first == second) is keeps_process
    assert keeps_process or not _lives(first)


async def test_a_process_that_ended_idle_costs_the_next_job_nothing(queue: Queue, start_worker: StartWorker) -> None:
    start_worker(MISBEHAVE, ONE)
    first = await (await queue.add("first", "pid")).result(60)
    os.kill(first, signal.SIGKILL)
    job = await queue.add("second", "pid")
    assert await job.result(20) != first
    assert CrashKind.KILLED not in (await job.record()).crashes


async def test_a_stop_that_reaches_a_process_is_the_worker_s_affair(
    queue: Queue, start_worker: StartWorker, tmp_path: Path
) -> None:
    """A terminal and systemd tell every process: the job completes, and what it has begun itself can be ended."""
    start_worker({"work": in_process(in_other_process.work_until)}, ONE)
    go = tmp_path / "go"
    job = await queue.add("work", str(go))
    (pid,) = await until(job.logs, bool)
    os.kill(int(pid), signal.SIGTERM)
    os.kill(int(pid), signal.SIGINT)
    go.touch()
    assert await job.result(60) == int(pid)
    assert (await job.record()).crashes == {}


async def test_programs_that_a_handler_started_end_with_its_process(queue: Queue, start_worker: StartWorker) -> None:
    """After a cancel as after a crash: nobody would stop them any more."""
    start_worker({"work": in_process(in_other_process.call_a_program)}, WorkerOptions(max_stalled=0))
    cancelled, crashed = await queue.add("cancelled"), await queue.add("crashed", "and die")
    pids = [int(line) for job in (cancelled, crashed) for line in await until(job.logs, bool) if line.isdecimal()]
    await cancelled.cancel()
    for job in (cancelled, crashed):
        with pytest.raises(JobFailed):
            await job.result(20)

    async def living() -> list[int]:
        return [pid for pid in pids if _lives(pid)]

    assert len(pids) == 2
    await until(living, lambda living: not living, 10)


async def test_a_process_that_a_job_left_too_large_is_replaced(queue: Queue, start_worker: StartWorker) -> None:
    """The limit is the worker's, which goes on."""
    limit_mb = resident_mb() + 200  # so that the worker stays well below it
    start_worker(MISBEHAVE, WorkerOptions(concurrency=1, max_memory_mb=limit_mb))
    first = await (await queue.add("small", "pid")).result(60)
    second = await (await queue.add("large", {"eat_mb": limit_mb})).result(60)
    assert second == first
    assert await (await queue.add("next", "pid")).result(60) != first

    async def lives() -> bool:
        return _lives(first)

    await until(lives, lambda lives: not lives)


def _lives(pid: int) -> bool:
    try:
        os.kill(pid, 0)
    except ProcessLookupError:
        return False
    return True


async def test_all_processes_are_closed_though_jobs_take_out_theirs_meanwhile() -> None:
    processes = Processes()
    closed: list[object] = []

    class Ending:
        async def kill(self) -> None:
            processes._all.discard(self)
            closed.append(self)

    processes._all = {Ending(), Ending(), Ending()}  # type: ignore[arg-type]  # stand for processes
    await processes.close()
    assert len(closed) == 3
