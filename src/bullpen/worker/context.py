"""What a handler is given: the job, and ways to speak about it while it runs.

The same in async handlers, threads and processes, but for durable steps. `log`, `progress` and `then` return at once
from any thread; lines and progress reach the store in batches, before the job is settled.
"""

import asyncio
import logging
from collections.abc import Coroutine, Mapping, Sequence
from typing import Any, NoReturn, TypeVar

from bullpen.errors import JobCancelled, RateLimited, UsageError
from bullpen.job.record import JobRecord, JobRef
from bullpen.job.spec import NewJob
from bullpen.job.trees import check_children, check_trees, with_ids
from bullpen.stores.base import ChildState
from bullpen.worker.desk import Desk, FixedDesk
from bullpen.worker.durable import Durable, StepsOfJob
from bullpen.worker.family import ChildOutcome, Family, wait_unless_done

T = TypeVar("T")


class Context(Durable):
    """What a handler is given: its job, the data, and the ways to report on it."""

    def __init__(self, job: JobRecord, data: Any, desk: Desk) -> None:
        self.job = job
        self.data = data
        """The payload, as Python values."""
        self._desk = desk
        self._cancel_reason: str | None = None
        self._is_cancel_asked = False
        self._loop: asyncio.AbstractEventLoop | None = None
        """The worker's, for a handler in a thread."""

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
    def workspace(self) -> str | None:
        """The part of the tenant that it belongs to."""
        return self.job.spec.workspace

    @property
    def group(self) -> str | None:
        """The group of the queue in which it waited its turn."""
        return self.job.spec.group

    @property
    def headers(self) -> Mapping[str, str]:
        """Trace context and what else travels beside the data."""
        return self.job.spec.headers

    @property
    def logger(self) -> "logging.LoggerAdapter[logging.Logger]":
        """The program's log, with the job's ids on each record."""
        job = self.job
        whose = {"tenant": job.tenant, "workspace": job.spec.workspace}
        ids = {"job_id": job.id, "queue": job.queue, "job_name": job.name, **whose}
        return logging.LoggerAdapter(logging.getLogger("bullpen.job"), ids)

    def log(self, line: str) -> None:
        """Add a line to the job's own log, which people read beside the job."""
        self._desk.reporter.log(line)

    def progress(self, value: Any) -> None:
        """Say how far the job is: a number or an object."""
        self._desk.reporter.progress(value)

    def then(self, job: NewJob) -> None:
        """Add this prepared job (`queue.prepare(…)`) if and when this one completes, in the same step."""
        check_trees([job])
        self._desk.reporter.then(with_ids(job))

    # ── children ─────────────────────────────────────────────────────────────────────────

    async def children(self) -> list[ChildOutcome]:
        """The job's children, as they were added, and what became of each."""
        return await self._relatives.children()

    async def child_results(self) -> dict[JobRef, Any]:
        """The results of those that completed, as they were added."""
        return {child.ref: child.result for child in await self.children() if child.state == ChildState.COMPLETED}

    async def previous(self) -> Any:
        """The result of the one child: of the step before this one in a chain. None if it has none."""
        results = list((await self.child_results()).values())
        if len(results) > 1:
            raise UsageError(f"previous: job {self.job.ref} has {len(results)} results; ask for child_results")
        return results[0] if results else None

    async def add_children(self, jobs: Sequence[NewJob]) -> list[JobRef]:
        """Add these prepared jobs as children of this one, all or none.

        In another activation of the same job they are added again: the n-th child that has no id of
        its own is the same each time, and is added once. LeaseLost if the job is no longer ours.
        """
        check_children(jobs)
        return await self._relatives.add(jobs)

    async def await_children(self) -> None:
        """Go on if no child is pending. Else leave the handler, which runs again from its start when none is.

        No attempt is used, and no slot while it waits.
        """
        wait_unless_done(await self.children())

    def blocking(self, call: Coroutine[Any, Any, T]) -> T:
        """For plain functions in threads: wait for one of these calls, as in `ctx.blocking(ctx.children())`."""
        if self._loop is None:
            call.close()
            raise UsageError("blocking: this handler does not run in a thread of a worker")
        return asyncio.run_coroutine_threadsafe(call, self._loop).result()

    @property
    def _relatives(self) -> Family:
        family = self._desk.family
        if family is None:
            raise UsageError("children: a handler in a process of its own cannot ask for them; use an async one")
        return family

    def limited(self, delay: float, *, whole_queue: bool = False) -> NoReturn:
        """Say that a limit was met elsewhere, as with HTTP 429: no job of the group starts for so many seconds.

        Of the queue, where the job has no group or that is asked for. This job runs again then, and
        no attempt is used. Raises RateLimited: nothing after it is run.
        """
        raise RateLimited(delay, whole_queue=whole_queue)

    # ── cancellation ─────────────────────────────────────────────────────────────────────

    @property
    def cancelled(self) -> bool:
        """Whether someone asked this job to stop. Async handlers are also cancelled at their next await."""
        return self._cancel_reason is not None

    @property
    def is_cancel_asked(self) -> bool:
        """Whether somebody cancelled the job itself: not its worker that stops, or a time that is over."""
        return self._is_cancel_asked

    @property
    def cancel_reason(self) -> str | None:
        return self._cancel_reason

    def _is_to_stop(self) -> bool:
        return self.cancelled

    def check_cancelled(self) -> None:
        """Raise JobCancelled if the job is to stop: for loops in threads and processes."""
        if self._cancel_reason is not None:
            raise JobCancelled(self._cancel_reason)

    def _steps_of_job(self) -> StepsOfJob | None:
        return self._desk.steps

    def forbid_steps(self) -> None:
        """For the runtime: durable steps cannot be used in this call."""
        self._desk = FixedDesk(self._desk.reporter, None, self._desk.family)

    def mark_in_thread(self, loop: asyncio.AbstractEventLoop) -> None:
        """For the runtime: let `blocking` work."""
        self._loop = loop

    def mark_cancelled(self, reason: str, *, is_asked: bool = True) -> None:
        """For the runtime: let the handler see that it is to stop."""
        self._cancel_reason = reason
        self._is_cancel_asked = is_asked
