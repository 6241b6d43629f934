"""`bullpen agent`: a daemon that runs a command for each job, as a process of its own."""

import asyncio
import contextlib
import os
import signal
import sys
from collections.abc import AsyncIterator
from pathlib import Path

import pytest

from bullpen.job.record import CrashKind, CrashLimits, FailureKind, JobRecord, JobRef
from bullpen.job.state import State
from bullpen.worker.signals import tell
from tests.remote.serving import QUEUE, Served
from tests.support.places import only_on_sqlite
from tests.worker.waiting import until

pytestmark = only_on_sqlite  # that the stores are alike is shown by the other tests, at less cost


@contextlib.asynccontextmanager
async def agent(
    served: Served, script: str, *options: str, token: str | None = None
) -> AsyncIterator[asyncio.subprocess.Process]:
    """A daemon whose command is this shell script; told to stop at the end of the block, if it runs still."""
    process = await asyncio.create_subprocess_exec(
        sys.executable, "-m", "bullpen.cli", "agent", "--server", served.url, "--queue", QUEUE, *options,
        "--", "/bin/sh", "-c", script,
        env={**os.environ, "BULLPEN_TOKEN": token or await served.key()},
        stderr=asyncio.subprocess.PIPE,
    )  # fmt: skip
    try:
        yield process
    finally:
        if process.returncode is None:
            process.terminate()
        await process.communicate()


async def ended(served: Served, ref: JobRef) -> JobRecord:
    return await until(lambda: served.store.job(ref), lambda job: job.state in (State.COMPLETED, State.FAILED))


async def test_a_command_completes_its_job(served: Served) -> None:
    """What it reads is the data, what it prints the log, the progress and the result."""
    ref = await served.add()
    async with agent(served, 'read data; echo "job $BULLPEN_JOB_ID"; echo "::progress 50"; echo "::result $data"'):
        job = await ended(served, ref)
    assert (job.state, job.result, job.progress) == (State.COMPLETED, b'{"n":1}', b"50")
    assert (await served.store.logs(ref)).lines == (f"job {ref.id}",)


async def test_its_times_are_durations(served: Served) -> None:
    """As everywhere on the command line: 500ms, 5m, 2h, or a number of seconds."""
    ref = await served.add()
    async with agent(served, "sleep 600", "--timeout", "500ms", "--grace", "1.5", "--lease", "1m"):
        job = await ended(served, ref)
    assert job.failure is not None
    assert job.failure.kind == FailureKind.TIMEOUT


async def test_many_lines_at_once_all_arrive_in_order(served: Served) -> None:
    """More than the server takes in one call, in lines and in bytes."""
    ref = await served.add(keep_logs=6_000)
    async with agent(served, "seq 5000; seq 300 | xargs printf '%05000d\\n'"):
        await ended(served, ref)
    lines = [line for start in range(0, 6_000, 1_000) for line in (await served.store.logs(ref, start=start)).lines]
    assert lines == [str(n) for n in range(1, 5_001)] + [f"{n:05000}" for n in range(1, 301)]


@pytest.mark.parametrize("code, attempts, kind", [(3, 2, FailureKind.ERROR), (65, 1, FailureKind.UNRECOVERABLE)])
async def test_its_exit_code_fails_the_attempt_or_the_job(
    served: Served, code: int, attempts: int, kind: FailureKind
) -> None:
    ref = await served.add(attempts=2)
    async with agent(served, f"echo no disk >&2; exit {code}"):
        job = await ended(served, ref)
    assert job.failure is not None
    assert (job.attempts_made, job.failure.kind, job.failure.type) == (attempts, kind, "CommandFailed")
    assert job.failure.message == f"exit code {code}: no disk"


@pytest.mark.parametrize("end", ["cancel", "timeout"])
async def test_a_command_whose_job_is_to_stop_is_ended(served: Served, tmp_path: Path, end: str) -> None:
    """With all that it started."""
    # Long enough for a busy machine to start the command, which is to be met in the midst of its work.
    ref = await served.add(timeout_ms=5_000 if end == "timeout" else None)
    async with agent(served, f"sleep 600 & echo $! > {tmp_path}/pid; echo started; wait"):
        await until(lambda: served.store.logs(ref), lambda logs: logs.total > 0)
        if end == "cancel":
            await served.store.cancel(ref, reason="no more")
        job = await ended(served, ref)
        await until(lambda: _is_alive(int((tmp_path / "pid").read_text())), lambda alive: not alive)
    assert job.failure is not None
    assert job.failure.kind == (FailureKind.CANCELLED if end == "cancel" else FailureKind.TIMEOUT)


async def test_a_command_whose_lease_is_lost_is_ended(served: Served, tmp_path: Path) -> None:
    """Another answers for the job now."""
    ref = await served.add()
    async with agent(served, f"echo $$ > {tmp_path}/$BULLPEN_EPOCH; echo started; exec sleep 600", "--lease", "1"):
        record = await until(lambda: served.store.job(ref), lambda job: job.state == State.ACTIVE)
        await until(lambda: served.store.logs(ref), lambda logs: logs.total > 0)
        assert record.worker is not None
        await served.store.report_crash(record.worker, CrashKind.KILLED, limits=CrashLimits())
        await until(lambda: _is_alive(int((tmp_path / "1").read_text())), lambda alive: not alive)


async def test_told_to_stop_it_finishes_what_runs_and_takes_no_more(served: Served, tmp_path: Path) -> None:
    """And leaves with 0."""
    first = await served.add()
    script = f"echo started; while [ ! -e {tmp_path}/go ]; do sleep 0.02; done; echo '::result 1'"
    async with agent(served, script) as process:
        await until(lambda: served.store.logs(first), lambda logs: logs.total > 0)
        process.send_signal(signal.SIGTERM)
        await until(served.store.workers, lambda found: found[0].state == "draining")
        second = await served.add()
        (tmp_path / "go").touch()
        assert await process.wait() == 0
    assert (await served.store.job(first)).result == b"1"
    assert (await served.store.job(second)).state == State.WAITING


async def test_told_to_hurry_it_hands_back_what_runs(served: Served) -> None:
    """No attempt is used."""
    ref = await served.add()
    async with agent(served, "echo started; exec sleep 600") as process:
        await until(lambda: served.store.logs(ref), lambda logs: logs.total > 0)

        async def ended_by_one_more() -> int | None:
            """One that comes within a second of the first is the same one, heard again."""
            tell(process, signal.SIGTERM)
            return process.returncode

        assert await until(ended_by_one_more, lambda code: code is not None, 20) == 0
    job = await served.store.job(ref)
    assert (job.state, job.attempts_made, job.stalls) == (State.WAITING, 0, 0)


async def test_a_token_that_is_refused_is_told_in_one_line(served: Served) -> None:
    """And is not shown."""
    async with agent(served, "true", token="bp_none_such") as process:
        _, said = await process.communicate()
    assert process.returncode == 1
    assert said.decode().splitlines()[-1].endswith("[remote-refused]")
    assert "none_such" not in said.decode()


async def _is_alive(pid: int) -> bool:
    try:
        return Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[0] not in "ZX"
    except OSError:
        return False
