"""A task that cannot go on at present, for no fault of its own: it waits in its line, with no attempt used.

The run is told once what it waits for. If that did not come within the time that the task may take, it fails: unless
that is no more than its turn.
"""

import abc
from typing import Any, ClassVar

from sqlalchemy.ext.asyncio import AsyncConnection

from bullpen.agents.ending import Ending
from bullpen.agents.loop.words import Stop
from bullpen.agents.words import TaskTerms, problem_of
from bullpen.errors import BullpenError
from bullpen.job.verdicts import Parked
from bullpen.records.database import Database
from bullpen.records.runs.moving import RunsOn
from bullpen.records.runs.words import NewProgress, ProgressKind, Task, TaskState


class Wait(abc.ABC):
    """One look at such a task: what the run is told, when to look again, and whether it waited long enough."""

    told_as: ClassVar[str]
    """Under which name the line of the log has what is waited for."""

    def __init__(self, database: Database, task: Task, terms: TaskTerms) -> None:
        self._database = database
        self._task = task
        self.most_ms = round(terms.timeout_s * 1000)
        self.now_ms = database.clock.now_ms()
        self.since_ms = self.now_ms

    @property
    @abc.abstractmethod
    def message(self) -> str:
        """For whoever reads the log, or looks at the job."""

    @abc.abstractmethod
    def adds_to(self, known: Any) -> bool:
        """Whether there is more to tell than what was; None if nothing was."""

    @abc.abstractmethod
    def told(self) -> Any:
        """What is waited for, as the log has it."""

    @property
    @abc.abstractmethod
    def pause_ms(self) -> int:
        """Until the next look."""

    @abc.abstractmethod
    def error(self) -> BullpenError:
        """For whoever waited so long in vain."""

    async def note(self, connection: AsyncConnection) -> None:
        """Tell of it in this transaction, unless the last look did."""
        runs = RunsOn(connection, self._database)
        known = None
        last = await runs.last_told(self._task)
        if last is not None and last.kind is ProgressKind.JOB_SUSPENDED and self.told_as in last.data:
            known = last.data[self.told_as]
            self.since_ms = last.data["since_ms"]
        if not self.adds_to(known):
            return
        data = {"message": self.message, self.told_as: self.told(), "since_ms": self.since_ms}
        await runs.move(self._task.id, TaskState.QUEUED, NewProgress(ProgressKind.JOB_SUSPENDED, data))

    @property
    def over_ms(self) -> int | None:
        """When it has waited long enough; None if it may for ever."""
        return self.since_ms + self.most_ms

    @property
    def is_over(self) -> bool:
        return self.over_ms is not None and self.now_ms >= self.over_ms

    def parked(self) -> Parked:
        look_ms = self.now_ms + self.pause_ms
        return Parked(look_ms if self.over_ms is None else min(look_ms, self.over_ms), note=self.message)

    def ending(self) -> Ending:
        return Ending(Stop.ERROR, problem_of(self.error()))
