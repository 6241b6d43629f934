"""Acting on runs from outside: stop them, answer their questions, wake who waits."""

import contextlib

import msgspec

from bullpen.agents.ending import Ending, end_from_outside, end_of
from bullpen.agents.loop.words import Answer, Stop
from bullpen.agents.redacting import Redactor
from bullpen.agents.research import CHILDREN
from bullpen.agents.words import TaskResult, problem_at
from bullpen.app import Bullpen
from bullpen.errors import JobMissing, RecordMissing, WrongState
from bullpen.records.journal import JournalOn
from bullpen.records.records import Records
from bullpen.records.runs.words import Task


class Steering:
    """Changes the records first, and then tells the job: whoever works on it finds out by either."""

    def __init__(self, pen: Bullpen, records: Records, redactor: Redactor) -> None:
        self._pen = pen
        self._records = records
        self._redactor = redactor

    async def cancel(self, run_id: str, *, tenant: str | None = None, reason: str = "") -> list[TaskResult]:
        """End all its tasks, wherever they are: what they have not spent goes back. WrongState if it is over."""
        records = self._records
        run = await records.runs.get(run_id, tenant=tenant)
        if run.state.is_final:
            raise WrongState(f"run {run_id!r} is {run.state}")
        # Those that a task made before the task itself, whose credits they spend.
        going = [task for task in reversed(await records.runs.tasks(run_id)) if not task.state.is_final]
        ended = [await self._cancel_task(records, task, reason) for task in going]
        return [result for result in ended if result is not None]

    async def _cancel_task(self, records: Records, task: Task, reason: str) -> TaskResult | None:
        """None if it has just come to its end by itself."""
        # The records first: from then on nothing that its worker does counts.
        ending = Ending(Stop.CANCELLED, problem_at(Stop.CANCELLED))
        try:
            result = await end_from_outside(records.database, task.id, ending, redact=self._redactor.all_in)
        except WrongState:
            return None
        self._pen.telemetry.task_ended(end_of(task, result))
        # Its job may not be there yet, and will find the task over; or it has just ended.
        with contextlib.suppress(JobMissing, WrongState):
            await self._pen.queue(task.queue).job(task.id).cancel(reason or "the run was cancelled")
        return result

    async def answer(self, task_id: str, answer: Answer, *, tenant: str | None = None) -> None:
        """Say what became of the call that a task asks about, and let it go on. WrongState if it does not ask."""
        records = self._records
        task = await records.runs.task(task_id, tenant=tenant)
        if task.question is None:
            raise WrongState(f"task {task_id!r} asks nothing")
        signal = str(task.question["signal"])
        async with records.database.writing(brief=True) as connection:
            try:
                await JournalOn(connection, records.database).signal(task.id, signal, msgspec.json.encode(answer))
            except RecordMissing as missing:
                raise WrongState(f"task {task_id!r} asks nothing") from missing
        await self._pen.queue(task.queue).job(task.id).signal(signal)

    async def wake_parent(self, task: Task) -> None:
        """The last task of a fan-out to end tells the one that made them."""
        if task.parent is None:
            return
        tasks = await self._records.runs.tasks(task.run)
        siblings = [one for one in tasks if one.parent == task.parent]
        if all(one.state.is_final for one in siblings):
            parent = next(one for one in tasks if one.id == task.parent)
            with contextlib.suppress(JobMissing, WrongState):  # it is over already
                await self._pen.queue(parent.queue).job(parent.id).signal(CHILDREN)
