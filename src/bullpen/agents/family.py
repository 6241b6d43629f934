"""A task ends after those that it made: they spend its credits, which go back to its payer with its end.

Whoever ends a task looks for those within the transaction that ends it, and holds its journal there. A fan-out is
written under the same journal: it is seen, or refused.
"""

import contextlib

from bullpen.agents.ending import ChildrenGoOn, Ending, end_activation, end_from_outside, end_of
from bullpen.agents.loop.recorder import Recorder
from bullpen.agents.loop.words import Stop
from bullpen.agents.redacting import Redactor
from bullpen.agents.words import TaskResult, problem_at
from bullpen.errors import JobMissing, QueueMissing, WrongState
from bullpen.job.record import JobRef
from bullpen.observing import Observers
from bullpen.records.database import Database
from bullpen.records.runs.words import Task
from bullpen.stores.base import Store

CANCELLED = Ending(Stop.CANCELLED, problem_at(Stop.CANCELLED))


class Ender:
    """Ends tasks with those that they made. The records are first: from then on nothing that a worker does counts."""

    def __init__(self, database: Database, store: Store, redactor: Redactor, observers: Observers) -> None:
        self._database = database
        self._store = store
        self._redact = redactor.all_in
        self._observers = observers

    async def end(self, task: Task, ending: Ending, *, reason: str) -> list[TaskResult]:
        """Whoever works on it. Those that were ended, the task itself last, unless it came to its end by itself."""
        ended: list[TaskResult] = []
        while True:
            try:
                result = await end_from_outside(self._database, task.id, ending, redact=self._redact)
            except ChildrenGoOn as going:
                for child in going.children:
                    ended += await self.end(child, CANCELLED, reason=reason)
            except WrongState:
                return ended
            else:
                self._observers.task_ended(end_of(task, result))
                # Its job may not be there yet, and will find the task over; or it has ended.
                with contextlib.suppress(JobMissing, QueueMissing, WrongState):
                    await self._store.cancel(JobRef(task.queue, task.id), reason=reason)
                return [*ended, result]

    async def end_own(self, recorder: Recorder, task: Task, ending: Ending) -> TaskResult:
        """By the worker that has it. LeaseLost if another has it, or it has ended."""
        while True:
            try:
                result = await end_activation(recorder, self._database, task, ending, redact=self._redact)
            except ChildrenGoOn as going:
                for child in going.children:
                    await self.end(child, CANCELLED, reason="the task that made it is over")
            else:
                self._observers.task_ended(end_of(task, result))
                return result
