"""What is counted while real workers run real jobs."""

import asyncio
from pathlib import Path

import pytest

from bullpen import Bullpen, Context, JobFailed, JobRef, Postpone, SqliteStore
from bullpen.errors import BadOption
from bullpen.job.record import CrashKind, Failure, FailureKind, JobRecord
from bullpen.job.spec import JobSpec
from bullpen.job.state import State
from bullpen.job.verdicts import Released
from bullpen.observing import Observer
from bullpen.stores.base import Rescued
from bullpen.telemetry.metrics import MAX_NAMES, Metrics
from tests.telemetry.conftest import MakePen, Work


def _record(name: str = "welcome", tenant: str | None = None, failure: Failure | None = None) -> JobRecord:
    spec = JobSpec(tenant=tenant)
    return JobRecord(JobRef("mail", "1"), name, b"{}", State.ACTIVE, spec, failure=failure)


async def test_jobs_are_counted_by_how_they_ended(make_pen: MakePen, work: Work) -> None:
    metrics = Metrics()
    pen = make_pen(metrics)

    @pen.job(queue="mail")
    async def good(ctx: Context) -> int:
        return await ctx.step("one", lambda: 1, returns=int)

    @pen.job(queue="mail", attempts=2)
    async def bad(ctx: Context) -> None:
        raise ValueError("no")

    @pen.job(queue="mail")
    async def late(ctx: Context) -> None:
        if ctx.epoch == 1:
            raise Postpone(0)

    work(pen)
    for job in [await good.add() for _ in range(3)]:
        await job.result(timeout=60)
    await (await late.add()).result(timeout=60)
    with pytest.raises(JobFailed):
        await (await bad.add()).result(timeout=60)
    while metrics.finished.value("mail", "bad", "failed") == 0:  # told after the settlement came back
        await asyncio.sleep(0)
    assert metrics.added.value("mail", "good") == 3
    assert metrics.finished.value("mail", "good", "completed") == 3
    assert metrics.finished.value("mail", "bad", "failed") == 1
    assert metrics.started.value("mail", "bad") == 2
    assert metrics.retries.value("mail", "bad", "error") == 1
    assert metrics.set_aside.value("mail", "postponed") == 1
    assert metrics.steps.value("step", "done") == 3
    text = metrics.text()
    assert 'bullpen_job_duration_seconds_count{queue="mail",name="good"} 3' in text
    assert 'bullpen_job_wait_seconds_count{queue="mail"} 5' in text
    assert 'bullpen_job_attempts_bucket{queue="mail",le="1"} 4' in text


def test_what_happens_without_a_handler_is_counted_too() -> None:
    metrics = Metrics()
    metrics.failed_unrun(_record(failure=Failure("gone", FailureKind.EXPIRED)))
    metrics.failed_unrun(_record(failure=Failure("lost", FailureKind.STALLED)))
    metrics.rescued(Rescued((JobRef("mail", "1"),), (JobRef("mail", "2"),)))
    metrics.process_died(CrashKind.OUT_OF_MEMORY, Rescued((JobRef("mail", "3"),)))
    metrics.settled(_record(), Released(CrashKind.DEPLOY))
    metrics.lease_lost(JobRef("mail", "4"))
    assert metrics.finished.value("mail", "welcome", "expired") == 1
    assert metrics.finished.value("mail", "welcome", "failed") == 1
    assert metrics.stalled.value("mail", "recovered") == 1
    assert metrics.stalled.value("mail", "failed") == 1
    assert metrics.crashes.value("mail", "out-of-memory") == 1
    assert metrics.crashes.value("mail", "deploy") == 1
    assert metrics.processes_died.value("out-of-memory") == 1
    assert metrics.leases_lost.value("mail") == 1


def test_tenants_are_named_on_request_only_and_few() -> None:
    silent, told = Metrics(), Metrics(tenants=2)
    for tenant in ("acme", "globex", "initech", "acme", None):
        silent.failed_unrun(_record(tenant=tenant))
        told.failed_unrun(_record(tenant=tenant))
    assert "acme" not in silent.text()
    assert told.finished.value("mail", "welcome", "acme", "failed") == 2
    assert told.finished.value("mail", "welcome", "globex", "failed") == 1
    assert told.finished.value("mail", "welcome", "other", "failed") == 1
    assert told.finished.value("mail", "welcome", "", "failed") == 1


def test_job_names_are_bounded() -> None:
    """A program that puts an id into the name of each job does not fill Prometheus."""
    metrics = Metrics()
    for n in range(MAX_NAMES + 10):
        metrics.failed_unrun(_record(f"job-{n}"))
    assert metrics.finished.value("mail", "other", "failed") == 10


def test_a_wrong_number_of_tenants_is_refused() -> None:
    with pytest.raises(BadOption, match="tenants"):
        Metrics(tenants=-1)


async def test_an_observer_that_fails_harms_no_job(make_pen: MakePen, work: Work) -> None:
    class Broken(Observer):
        def __getattribute__(self, name: str) -> object:
            if name in ("adding", "attempting", "stepping", "settled"):
                raise RuntimeError(name)
            return super().__getattribute__(name)

    metrics = Metrics()
    pen = make_pen(Broken(), metrics)

    @pen.job
    async def good(ctx: Context) -> int:
        return await ctx.step("one", lambda: 1, returns=int)

    work(pen)
    assert await (await good.add()).result(timeout=60) == 1
    assert metrics.started.value("default", "good") == 1


def test_where_nobody_looks_on_a_list_is_empty(tmp_path: Path) -> None:
    """The rooms below ask whether a list is empty, and no more: they hold no telemetry."""
    pen = Bullpen(SqliteStore(tmp_path / "queue.db"))
    assert not pen.telemetry
    assert not pen.queue("mail").observers
    assert pen.queue("mail").observers is pen.telemetry
    assert pen.worker_options().observers is pen.telemetry
