"""Tasks whose job ended while no handler was at work: they are ended on record too, and what they held goes back.

A job fails by itself if it lost its worker too often, ran beyond the worker's own limit, or was cancelled by whoever
operates the queue; it may also be removed. A worker ends a task on record before it ends its job, so that one whose
job is over first is one that nobody will end.

One that lost its worker too often goes on if it got further meanwhile: what ends it is to lose them all at one step.
"""

import logging
from collections.abc import Awaitable, Callable, Sequence

import msgspec

from bullpen.agents.ending import Ending
from bullpen.agents.family import Ender
from bullpen.agents.loop.words import Stop
from bullpen.agents.redacting import Redactor
from bullpen.agents.words import TaskProblem, TaskResult, problem_at, to_plain
from bullpen.errors import AgentError, BillingError, JobMissing, QueueMissing, WrongState
from bullpen.job.record import FailureKind, JobRecord, JobRef
from bullpen.job.state import FINISHED
from bullpen.observing import Observers
from bullpen.records.outbox_rows import OutboxRows
from bullpen.records.records import Records
from bullpen.records.runs.moving import RunsOn
from bullpen.records.runs.words import NewProgress, ProgressKind, Task, TaskState
from bullpen.stores.base import Store

UNCHANGED_MS = 15_000
_PAGE = 100
_DONE = (ProgressKind.LLM_COMPLETED, ProgressKind.TOOL_COMPLETED, ProgressKind.TOOL_FAILED)
"""Told with what is on record: a worker that dies goes on behind it."""
_GOES_ON = "goes_on"
_STOPS = {FailureKind.CANCELLED: Stop.CANCELLED, FailureKind.TIMEOUT: Stop.TIMEOUT}

logger = logging.getLogger("bullpen.agents")


class Rescuer:
    """Looks at a page of tasks whenever it is asked to. Several may do so at once."""

    def __init__(
        self,
        records: Records,
        store: Store,
        *,
        unchanged_ms: int | None = None,
        redactor: Redactor | None = None,
        observers: Observers | None = None,
        ended: Callable[[Task], Awaitable[None]] | None = None,
    ) -> None:
        self._records = records
        self._store = store
        self._unchanged_ms = UNCHANGED_MS if unchanged_ms is None else unchanged_ms
        observers = Observers() if observers is None else observers
        self._ender = Ender(records.database, store, redactor or Redactor(), observers)
        self._ended = ended
        """Told of each task that was ended: another may wait for it."""
        self._last_seen = ""

    async def rescue(self) -> list[TaskResult]:
        """Look at the next page of tasks that have not changed for a while; those that were ended."""
        before_ms = self._records.database.clock.now_ms() - self._unchanged_ms
        tasks = await self._records.runs.stale(before_ms=before_ms, after=self._last_seen, limit=_PAGE)
        self._last_seen = tasks[-1].id if len(tasks) == _PAGE else ""
        return [result for task in await self._under_way(tasks) for result in await self._look_after(task)]

    async def _under_way(self, tasks: Sequence[Task]) -> list[Task]:
        """Less those that have no job yet. Asked before the jobs: what left the outbox was added before that."""
        going = [task for task in tasks if task.state is not TaskState.PENDING]
        waiting = await OutboxRows(self._records.database.engine).among([task.id for task in going])
        return [task for task in going if task.id not in waiting]

    async def _look_after(self, task: Task) -> list[TaskResult]:
        try:
            job = await self._store.job(JobRef(task.queue, task.id))
        except (JobMissing, QueueMissing):
            job = None
        if job is not None and job.state not in FINISHED:
            return []
        if job is not None and await self._goes_on(task, job):
            return []
        ending = _ending_of(job)
        try:
            ended = await self._ender.end(task, ending, reason="the task that made it is over")
        except (BillingError, msgspec.DecodeError):
            logger.exception("task %s cannot be ended", task.id)
            return []  # a person must look at its books or its journal; the others are not to wait for that
        if not ended:
            return []  # it has just ended
        logger.warning("task %s was ended as %s: %s", task.id, ending.state, ending.problem)
        if self._ended is not None:
            await self._ended(task)
        return ended

    async def _goes_on(self, task: Task, job: JobRecord) -> bool:
        """Whether its job was put back, with fresh attempts: each time takes one more step that was done."""
        if job.failure is None or job.failure.kind is not FailureKind.STALLED:
            return False
        async with self._records.database.reading(brief=True) as connection:
            runs = RunsOn(connection, self._records.database)
            done = await runs.last_told(task, *_DONE)
            again = [line for line in await runs.told_of(task, ProgressKind.JOB_RETRYING) if _GOES_ON in line.data]
        if done is None or (again and again[-1].number > done.number):
            return False
        try:
            await self._store.retry(job.ref)
        except (JobMissing, QueueMissing, WrongState):
            return True  # somebody else has just put it back
        # Told after it: whoever dies in between leaves a task that may go on once more, not one that is lost.
        told = NewProgress(ProgressKind.JOB_RETRYING, {"error": to_plain(_ending_of(job).problem), _GOES_ON: True})
        async with self._records.database.writing(brief=True) as connection:
            await RunsOn(connection, self._records.database).tell(task.run, task.id, [told])
        logger.warning("task %s goes on at its step: its job %s", task.id, job.failure.message)
        return True


def _ending_of(job: JobRecord | None) -> Ending:
    failure = None if job is None else job.failure
    if failure is not None and failure.kind in _STOPS:
        stop = _STOPS[failure.kind]
        return Ending(stop, problem_at(stop))
    if job is None:
        message = "its job is gone from the queue"
    else:
        message = f"its job ended without it: {'completed' if failure is None else failure.message}"
    safe = AgentError.safe_message
    return Ending(
        Stop.ERROR, TaskProblem(code="E999", message=message, retryable=True, user_facing_message=safe)
    )  # fmt: skip
