"""What a handler is given: the job, and ways to speak about it while it runs.

The same in async handlers, threads and processes, but for durable steps. `log`, `progress` and `then` return at once
from any thread; lines and progress reach the store in batches, before the job is settled.
"""

import logging
from collections.abc import Mapping
from typing import Any, Protocol

from bullpen.errors import JobCancelled
from bullpen.job.record import JobRecord
from bullpen.job.spec import NewJob
from bullpen.worker.durable import Durable, StepsOfJob


class Reporter(Protocol):
    """Where a context's words go: to the store's outbox, or through a pipe to the parent process."""

    def log(self, line: str) -> None: ...

    def progress(self, value: Any) -> None: ...

    def then(self, job: NewJob) -> None: ...


class Context(Durable):
    """What a handler is given: its job, the data, and the ways to report on it."""

    def __init__(self, job: JobRecord, data: Any, reporter: Reporter, steps: StepsOfJob | None = None) -> None:
        self.job = job
        self.data = data
        """The payload, as Python values."""
        self._reporter = reporter
        self._steps = steps
        self._cancel_reason: str | None = None

    @property
    def id(self) -> str:
        return self.job.id

    @property
    def name(self) -> str:
        return self.job.name

    @property
    def attempt(self) -> int:
        """1 for the first try."""
        return self.job.attempts_made + 1

    @property
    def epoch(self) -> int:
        """Grows with each activation: hand it to whatever must refuse an older one."""
        return self.job.epoch

    @property
    def tenant(self) -> str | None:
        return self.job.tenant

    @property
    def headers(self) -> Mapping[str, str]:
        """Trace context and what else travels beside the data."""
        return self.job.spec.headers

    @property
    def logger(self) -> "logging.LoggerAdapter[logging.Logger]":
        """The program's log, with the job's ids on each record."""
        job = self.job
        ids = {"job_id": job.id, "queue": job.queue, "job_name": job.name, "tenant": job.tenant}
        return logging.LoggerAdapter(logging.getLogger("bullpen.job"), ids)

    def log(self, line: str) -> None:
        """Add a line to the job's own log, which people read beside the job."""
        self._reporter.log(line)

    def progress(self, value: Any) -> None:
        """Say how far the job is: a number or an object."""
        self._reporter.progress(value)

    def then(self, job: NewJob) -> None:
        """Add this prepared job (`queue.prepare(…)`) if and when this one completes, in the same step."""
        self._reporter.then(job)

    # ── cancellation ─────────────────────────────────────────────────────────────────────

    @property
    def cancelled(self) -> bool:
        """Whether someone asked this job to stop. Async handlers are also cancelled at their next await."""
        return self._cancel_reason is not None

    @property
    def cancel_reason(self) -> str | None:
        return self._cancel_reason

    def _is_to_stop(self) -> bool:
        return self.cancelled

    def check_cancelled(self) -> None:
        """Raise JobCancelled if the job is to stop: for loops in threads and processes."""
        if self._cancel_reason is not None:
            raise JobCancelled(self._cancel_reason)

    def mark_cancelled(self, reason: str) -> None:
        """For the runtime: let the handler see that it is to stop."""
        self._cancel_reason = reason
