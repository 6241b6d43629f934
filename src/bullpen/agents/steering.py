"""Acting on runs from outside: stop them, answer their questions, wake who waits."""

import contextlib

import msgspec

from bullpen.agents.family import CANCELLED, Ender
from bullpen.agents.loop.words import Answer
from bullpen.agents.research import CHILDREN
from bullpen.agents.words import TaskResult
from bullpen.app import Bullpen
from bullpen.errors import JobMissing, RecordMissing, WrongState
from bullpen.records.journal import JournalOn
from bullpen.records.records import Records
from bullpen.records.runs.words import Task


class Steering:
    """Changes the records first, and then tells the job: whoever works on it finds out by either."""

    def __init__(self, pen: Bullpen, records: Records, ender: Ender) -> None:
        self._pen = pen
        self._records = records
        self._ender = ender

    async def cancel(self, run_id: str, *, tenant: str | None = None, reason: str = "") -> list[TaskResult]:
        """End all its tasks, wherever they are: what they have not spent goes back. WrongState if it is over."""
        records = self._records
        run = await records.runs.get(run_id, tenant=tenant)
        if run.state.is_final:
            raise WrongState(f"run {run_id!r} is {run.state}")
        first = (await records.runs.first_tasks([run_id]))[run_id]
        return await self._ender.end(first, CANCELLED, reason=reason or "the run was cancelled")

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
