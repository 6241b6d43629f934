"""What a process counts of the jobs that it adds and runs.

`docs/reference/metrics.md` has a line for each, and which metric of other systems it stands for.
"""

import contextlib
import time
from collections.abc import Iterator

from bullpen.errors import BadOption
from bullpen.job.record import CrashKind, FailureKind, JobRecord, JobRef
from bullpen.job.trees import flatten
from bullpen.job.verdicts import (
    AwaitChildren,
    Cancelled,
    Completed,
    Failed,
    Limited,
    Parked,
    Postponed,
    Released,
    Retry,
    Verdict,
)
from bullpen.observing import Adding, Attempt, StepAtWork
from bullpen.stores.base import Rescued
from bullpen.telemetry.agent_metrics import AgentMetrics
from bullpen.telemetry.registry import Bounded, Metric, Registry

WAITS_S = (0.005, 0.025, 0.1, 0.5, 1, 5, 15, 60, 300, 900, 3600, 14400, 86400)
DURATIONS_S = (0.005, 0.025, 0.1, 0.5, 1, 5, 10, 30, 60, 120, 300, 600, 1800, 3600, 7200)
ATTEMPTS = (1, 2, 3, 5, 10, 20)
MAX_NAMES = 100
"""Job names that stand in labels by themselves: an application has that many job types, a mistake has more."""

_SET_ASIDE = {
    Postponed: "postponed",
    Parked: "parked",
    AwaitChildren: "children",
    Limited: "limited",
}


class Metrics(AgentMetrics):
    """Counts for one process. Give it to `Bullpen(telemetry=[…])`; `text()` is what Prometheus reads.

    With `tenants=N`, what is counted by job also has the tenant as a label: the first N of them by
    name, all others as `other`. Without, no tenant is named.
    """

    def __init__(self, *, tenants: int = 0) -> None:
        if isinstance(tenants, bool) or not isinstance(tenants, int) or tenants < 0:
            raise BadOption(f"tenants: a whole number of 0 or more, not {tenants!r}")
        self._names = Bounded(MAX_NAMES)
        self._tenants = Bounded(tenants)
        self.registry = registry = Registry()
        whose = ("tenant",) if tenants else ()
        job, queue = ("queue", "name", *whose), ("queue", *whose)
        self.added = registry.counter("bullpen_jobs_added_total", "Jobs that this process added.", job)
        self.started = registry.counter("bullpen_jobs_started_total", "Attempts that began here.", job)
        self.finished = registry.counter(
            "bullpen_jobs_total", "Jobs that ended here: completed, failed, cancelled or expired.", (*job, "outcome")
        )
        self.retries = registry.counter(
            "bullpen_job_retries_total", "Failed attempts that another follows, by kind of failure.", (*job, "reason")
        )
        self.set_aside = registry.counter(
            "bullpen_jobs_set_aside_total", "Attempts that ended early and used none up.", (*queue, "reason")
        )
        self.wait = registry.histogram(
            "bullpen_job_wait_seconds", "From runnable to the first start.", queue, buckets=WAITS_S
        )
        self.duration = registry.histogram(
            "bullpen_job_duration_seconds", "How long an attempt ran.", job, buckets=DURATIONS_S
        )
        self.attempts = registry.histogram(
            "bullpen_job_attempts", "Attempts that a finished job took.", queue, buckets=ATTEMPTS
        )
        self.steps = registry.counter("bullpen_steps_total", "Durable steps that were called.", ("kind", "outcome"))
        self.stalled = registry.counter(
            "bullpen_jobs_stalled_total", "Jobs of lost workers that this one rescued.", ("queue", "outcome")
        )
        self.crashes = registry.counter(
            "bullpen_job_crashes_total", "Jobs that lost their worker or process, by kind.", ("queue", "kind")
        )
        self.leases_lost = registry.counter(
            "bullpen_leases_lost_total", "Verdicts that came too late: another worker had the job.", ("queue",)
        )
        self.processes_died = registry.counter(
            "bullpen_worker_processes_died_total", "Worker processes that ended unasked, by kind.", ("kind",)
        )
        super().__init__(registry)

    def text(self) -> str:
        """All that was counted so far, as Prometheus reads it."""
        return self.registry.text()

    @property
    def metrics(self) -> list[Metric]:
        return self.registry.metrics

    # ── looking on ───────────────────────────────────────────────────────────────────────

    @contextlib.contextmanager
    def adding(self, adding: Adding) -> Iterator[None]:
        yield
        for node in flatten(adding.jobs):  # what was refused raised before this
            job = node.job
            self.added.inc(job.queue, self._names.of(job.name), *self._whose(job.spec.tenant))

    @contextlib.contextmanager
    def attempting(self, attempt: Attempt) -> Iterator[None]:
        job = attempt.job
        labels = self._job(job)
        self.started.inc(*labels)
        if job.epoch <= 1 and job.started_ms is not None:
            waited_ms = job.started_ms - job.added_ms - job.spec.delay_ms
            self.wait.observe(max(0, waited_ms) / 1000, job.queue, *self._whose(job.tenant))
        begun = time.monotonic()
        try:
            yield
        finally:
            self.duration.observe(time.monotonic() - begun, *labels)

    @contextlib.contextmanager
    def stepping(self, step: StepAtWork) -> Iterator[None]:
        try:
            yield
        except BaseException:
            self.steps.inc(step.kind, "failed")
            raise
        self.steps.inc(step.kind, "done")

    def settled(self, job: JobRecord, verdict: Verdict) -> None:
        match verdict:
            case Completed():
                self._finish(job, "completed")
            case Failed():
                self._finish(job, "failed")
            case Cancelled():
                self._finish(job, "cancelled")
            case Retry(failure):
                self.retries.inc(*self._job(job), failure.kind)
            case Released(crash):
                if crash is not None:
                    self.crashes.inc(job.queue, crash)
            case _:
                self.set_aside.inc(job.queue, *self._whose(job.tenant), _SET_ASIDE[type(verdict)])

    def failed_unrun(self, job: JobRecord) -> None:
        kind = FailureKind.ERROR if job.failure is None else job.failure.kind
        outcome = kind.value if kind in (FailureKind.CANCELLED, FailureKind.EXPIRED) else "failed"
        self.finished.inc(*self._job(job), outcome)

    def lease_lost(self, ref: JobRef) -> None:
        self.leases_lost.inc(ref.queue)

    def rescued(self, rescued: Rescued) -> None:
        for ref in rescued.recovered:
            self.stalled.inc(ref.queue, "recovered")
        for ref in rescued.failed:
            self.stalled.inc(ref.queue, "failed")

    def process_died(self, kind: CrashKind, rescued: Rescued) -> None:
        self.processes_died.inc(kind)
        for ref in (*rescued.recovered, *rescued.failed):
            self.crashes.inc(ref.queue, kind)

    def _finish(self, job: JobRecord, outcome: str) -> None:
        self.finished.inc(*self._job(job), outcome)
        self.attempts.observe(job.attempts_made + 1, job.queue, *self._whose(job.tenant))

    # ── labels ───────────────────────────────────────────────────────────────────────────

    def _job(self, job: JobRecord) -> tuple[str, ...]:
        return (job.queue, self._names.of(job.name), *self._whose(job.tenant))

    def _whose(self, tenant: str | None) -> tuple[str, ...]:
        if not self._tenants.limit:
            return ()
        return ("" if tenant is None else self._tenants.of(tenant),)
