"""The jobs that carry tasks: a job type in each of the agents' queues, and the job of one task."""

from collections.abc import Awaitable, Callable
from typing import Any

from bullpen.agents.kinds import QUEUES
from bullpen.agents.submitting import Prepared, new_task_id
from bullpen.app import Bullpen
from bullpen.job.spec import NewJob
from bullpen.jobtypes.jobtype import AsyncJobType
from bullpen.worker.context import Context

JOB = "task"
"""What jobs that carry tasks are called."""
_MARGIN_S = 60

Do = Callable[[Context, str], Awaitable[dict[str, Any]]]
"""Does the task of this id as far as it goes."""


class TaskJobs:
    """Declares them in the application when it is made."""

    def __init__(self, pen: Bullpen, do: Do) -> None:
        self._types = {queue: _declare(pen, queue, do) for queue in QUEUES}

    def job_of(self, prepared: Prepared, tenant: str) -> NewJob:
        """The job that carries a task of this tenant; its id is the task's."""
        way = prepared.route
        task_id = new_task_id()
        options = self._types[way.queue].options(
            id=task_id,
            tenant=tenant,
            workspace=prepared.terms.workspace,
            group=tenant,
            priority=way.priority,
            attempts=way.attempts,
            # The task ends itself in time; a worker's usual limit is much shorter.
            timeout=prepared.terms.timeout_s + _MARGIN_S,
        )
        return options.prepare(task_id=task_id)


def _declare(pen: Bullpen, queue: str, do: Do) -> AsyncJobType[..., dict[str, Any]]:
    async def task(ctx: Context, task_id: str) -> dict[str, Any]:
        """Do a task of an agent as far as it goes."""
        return await do(ctx, task_id)

    rules = QUEUES[queue]
    declare = pen.job(
        queue=queue,
        name=JOB,
        concurrency=rules.concurrency,
        attempts=1 + rules.retries,
        backoff=rules.backoff,
    )
    declared: AsyncJobType[..., dict[str, Any]] = declare(task)
    return declared
