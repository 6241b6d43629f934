"""A call took effect and its answer was lost: by a kill right after the commit, or by a cut on the way back."""

import asyncio
import signal
import sys
from collections.abc import AsyncIterator, Mapping, Sequence
from pathlib import Path

import pytest

from bullpen import Context, CrashLimits, NewJob, Queue, SqliteStore, State, StoreUnavailable, Worker, WorkerOptions
from bullpen.job.record import Lease
from bullpen.job.verdicts import Completed, Settlement
from bullpen.stores.base import Added, AddOutcome, Exchanged, Renewal, SettleOutcome

_DIE_AFTER_COMMIT = """
import asyncio, os, signal, sys
from bullpen.job.record import JobRef, Lease
from bullpen.job.spec import NewJob
from bullpen.job.verdicts import Completed, Settlement
from bullpen.stores.sqlite import SqliteStore, writer

async def main(path, call):
    store = SqliteStore(path)
    await store.open()
    writer._deliver = lambda group: os.kill(os.getpid(), signal.SIGKILL)
    await eval(call)

asyncio.run(main(*sys.argv[1:]))
"""


async def die_in(path: Path, call: str) -> None:
    """Make this call in a process that is killed once it is committed, before it is answered."""
    process = await asyncio.create_subprocess_exec(sys.executable, "-c", _DIE_AFTER_COMMIT, str(path), call)
    assert await process.wait() == -signal.SIGKILL


@pytest.fixture
async def store(tmp_path: Path) -> AsyncIterator[SqliteStore]:
    store = SqliteStore(tmp_path / "queue.db")
    await store.open()
    yield store
    await store.close()


async def claim(store: SqliteStore, request: str = "claim") -> Lease:
    claimed = await store.claim({"q": 1}, worker="w", lease_ms=30_000, request=request)
    return claimed.jobs[0].lease


async def test_add_killed_after_its_commit_adds_once(store: SqliteStore, tmp_path: Path) -> None:
    await die_in(tmp_path / "queue.db", 'store.add([NewJob("q", "n")], request="r")')
    (added,) = await store.add([NewJob("q", "n")], request="r")
    assert added.outcome == AddOutcome.ADDED
    assert (await store.counts("q")).waiting == 1


async def test_claim_killed_after_its_commit_is_no_stall(store: SqliteStore, tmp_path: Path) -> None:
    """The next sweep, a second later at most, hands the job back as if it had never been claimed."""
    (added,) = await store.add([NewJob("q", "n")], request="r")
    await die_in(tmp_path / "queue.db", 'store.claim({"q": 1}, worker="dead", lease_ms=30_000, request="c")')
    assert (await store.counts("q")).active == 1
    rescued = await store.rescue(["q"], limits=CrashLimits(total=0))
    assert [ref.id for ref in rescued.recovered] == [added.id]
    job = await store.job(rescued.recovered[0])
    assert (job.state, job.crashes, job.attempts_made) == (State.WAITING, {}, 0)


async def test_settle_killed_after_its_commit_settles_once(store: SqliteStore, tmp_path: Path) -> None:
    await store.add([NewJob("q", "n")], request="r")
    lease = await claim(store)
    settlement = f"Settlement(Lease(JobRef('q', '1'), {lease.token!r}, 1), Completed(b'1'))"
    await die_in(tmp_path / "queue.db", f"store.settle([{settlement}], request='s')")
    assert (await store.job(lease.ref)).result == b"1"
    again = [Settlement(lease, Completed(b"2"))]
    assert list(await store.settle(again, request="s")) == [SettleOutcome.SETTLED]
    assert list(await store.settle(again, request="another")) == [SettleOutcome.LEASE_LOST]
    assert (await store.job(lease.ref)).result == b"1"


async def test_exchange_killed_after_its_commit_keeps_both_halves(store: SqliteStore, tmp_path: Path) -> None:
    await store.add([NewJob("q", "n"), NewJob("q", "n")], request="r")
    lease = await claim(store)
    settlement = f"Settlement(Lease(JobRef('q', '1'), {lease.token!r}, 1), Completed(b'1'))"
    await die_in(
        tmp_path / "queue.db",
        f"store.exchange([{settlement}], {{'q': 1}}, worker='dead', lease_ms=30_000, request='x')",
    )
    assert (await store.job(lease.ref)).state == State.COMPLETED
    await store.rescue(["q"], limits=CrashLimits(total=0))
    counts = await store.counts("q")
    assert (counts.waiting, counts.active, counts.completed, counts.failed) == (1, 0, 1, 0)


async def test_renew_killed_after_its_commit_holds(store: SqliteStore, tmp_path: Path) -> None:
    await store.add([NewJob("q", "n")], request="r")
    lease = await claim(store)
    await die_in(tmp_path / "queue.db", f"store.renew([Lease(JobRef('q', '1'), {lease.token!r}, 1)], lease_ms=60_000)")
    assert list(await store.renew([lease], lease_ms=60_000)) == [Renewal.HELD]


class LossyStore(SqliteStore):
    """Every second answer of add and exchange is lost on its way: the call took effect, the caller gets an error."""

    path: Path
    calls = 0

    def another(self) -> "LossyStore":
        return LossyStore(self._path)

    async def add(self, jobs: Sequence[NewJob], *, request: str) -> Sequence[Added]:
        answer = await super().add(jobs, request=request)
        self._lose_every_second()
        return answer

    async def exchange(
        self,
        settlements: Sequence[Settlement],
        wants: Mapping[str, int],
        *,
        worker: str,
        lease_ms: int,
        request: str,
        at_most: int | None = None,
    ) -> Exchanged:
        answer = await super().exchange(
            settlements, wants, worker=worker, lease_ms=lease_ms, request=request, at_most=at_most
        )
        self._lose_every_second()
        return answer

    def _lose_every_second(self) -> None:
        LossyStore.calls += 1
        if LossyStore.calls % 2:
            raise StoreUnavailable("the connection was cut")


async def test_a_worker_that_loses_every_second_answer_does_each_job_once(tmp_path: Path) -> None:
    """No job runs twice, none is stranded, no stall is counted."""
    store = SqliteStore(tmp_path / "queue.db")
    await store.open()
    queue = Queue(store, "q")
    runs: list[str] = []

    async def count(ctx: Context) -> None:
        runs.append(ctx.id)

    jobs = await queue.add_bulk([queue.prepare("n") for _ in range(40)])
    worker = Worker(LossyStore(tmp_path / "queue.db"), {"q": count}, WorkerOptions(concurrency=4))
    working = asyncio.create_task(worker.run())
    for job in jobs:
        await job.result(60)
    worker.stop()
    await working
    assert sorted(runs) == sorted(job.id for job in jobs)
    assert all([(await job.record()).crashes == {} for job in jobs])
    await store.close()
