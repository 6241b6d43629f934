"""Runs and tasks within the caller's transaction: made, moved from state to state, and told of.

Whoever journals a step tells of it in the same transaction, so that the log of a run is its journal in other words.
"""

from collections.abc import Iterable, Sequence
from typing import Any

import msgspec
from sqlalchemy import ColumnElement, Row, func, insert, literal_column, select, update
from sqlalchemy.ext.asyncio import AsyncConnection

from bullpen.errors import RecordMissing, WrongState
from bullpen.job.spec import NewJob
from bullpen.records import outbox
from bullpen.records.chained import Link, Part, run_alone
from bullpen.records.database import Database
from bullpen.records.prepared import Followed, Parameters, Prepared
from bullpen.records.runs import wording
from bullpen.records.runs.words import BEFORE, FINAL, NewProgress, ProgressEvent, ProgressKind, Run, Task, TaskState
from bullpen.records.tables.outbox import OutboxRow
from bullpen.records.tables.runs import progress as progress_table
from bullpen.records.tables.runs import run as run_table
from bullpen.records.tables.runs import task as task_table

_encode = msgspec.json.Encoder().encode
_TASK = [task_table.c[name] for name in Task.__struct_fields__]
_RUN = [run_table.c[name] for name in Run.__struct_fields__]


_NEW_RUN = ["id", "tenant", "workspace", "created_by", "state", "told", "created_ms"]
_NEW_TASK = ["id", "run", "tenant", "parent", "kind", "state", "queue", "prompt", "terms", "created_ms", "changed_ms"]
_NEW_JOB = ["job_id", "queue", "job", "written_ms", "held_until_ms"]


class Statements:
    """Those of a submission and of a step."""

    def __init__(self, database: Database) -> None:
        self.create = Prepared(database, _numbered(database), columns=_NEW_RUN)
        self.create_task = Prepared(database, insert(task_table), columns=_NEW_TASK)
        self.send = Prepared(database, insert(OutboxRow), columns=_NEW_JOB)
        self.tell = Followed(database, _longer, progress_table, counted={"number": "told"})


def _numbered(database: Database) -> Any:
    """An insert of a run with the next number."""
    if database.is_postgres:
        return insert(run_table)  # it counts by itself
    before = run_table.alias("before")
    last = func.coalesce(func.max(before.c.number), literal_column("0"))
    return insert(run_table).values(number=select(last + literal_column("1")).scalar_subquery())


def _longer(parameter: Parameters, *only_if: ColumnElement[bool]) -> Any:
    longer = update(run_table).where(run_table.c.id == parameter("run"), *only_if)
    return longer.values(told=run_table.c.told + parameter("lines")).returning(run_table.c.told)


class RunsOn:
    """Changes runs on a connection of the caller's, whose transaction decides whether it happened."""

    def __init__(self, connection: AsyncConnection, database: Database) -> None:
        self._connection = connection
        self._database = database
        self._statements = database.own(Statements)
        self._words = database.own(wording.Statements)
        self._begun: dict[str, list[str]] = {}
        """Words of runs that have no task yet, for which they are written with the words of that: once."""
        self._now_ms = database.clock.now_ms()

    async def create(
        self,
        run_id: str,
        tenant: str,
        *,
        created_by: str,
        workspace: str | None = None,
        state: TaskState = TaskState.PENDING,
    ) -> None:
        """Its state is that of its first task; it is found by words once that is there."""
        values = {
            "id": run_id,
            "tenant": tenant,
            "workspace": workspace,
            "created_by": created_by,
            "state": state,
            "told": 0,
            "created_ms": self._now_ms,
        }
        await self._statements.create.run(self._connection, [values])
        self._begun[run_id] = wording.words_of_run(run_id, tenant=tenant, workspace=workspace, created_by=created_by)

    async def create_task(
        self,
        run_id: str,
        task_id: str,
        *,
        tenant: str,
        kind: str,
        queue: str,
        prompt: str,
        terms: bytes,
        parent: str | None = None,
        state: TaskState = TaskState.PENDING,
    ) -> None:
        """One whose job is not under way in the same transaction is `pending`; `move` it when it is.

        A run is found by what its first task is asked, and by the names of others where `name_parts` tells them.
        """
        values = {
            "id": task_id,
            "run": run_id,
            "tenant": tenant,
            "parent": parent,
            "kind": kind,
            "state": state,
            "queue": queue,
            "prompt": prompt,
            "terms": terms,
            "created_ms": self._now_ms,
            "changed_ms": self._now_ms,
        }
        await self._statements.create_task.run(self._connection, [values])
        if parent is None:
            words = [*await self._words_of(run_id), *wording.words_of_task(task_id, kind=kind, prompt=prompt)]
            await self._words.put.run(self._connection, [{"run": run_id, "words": " ".join(words)}])

    async def name_parts(self, run_id: str, task_ids: Sequence[str], kind: str) -> None:
        """Let the run be found by these tasks that others made."""
        await self._add_words(run_id, wording.words_of_parts(task_ids, kind=kind))

    async def send(self, job: NewJob) -> None:
        """The job of a task, which is added once this is committed."""
        await self._statements.send.run(self._connection, [outbox.row_of(job)])

    async def move(
        self,
        task_id: str,
        state: TaskState,
        *told: NewProgress,
        outcome: bytes | None = None,
        question: dict[str, Any] | None = None,
        problem: str = "",
    ) -> Task:
        """Its new standing, told of. RecordMissing; WrongState if it cannot come to this state from where it is.

        `problem` is why it came to no answer, in words by which its run is found.
        """
        values: dict[str, Any] = {"state": state, "changed_ms": self._now_ms, "question": question}
        if state.is_final:
            values |= {"finished_ms": self._now_ms, "outcome": outcome}
        moved = await self._connection.execute(
            update(task_table)
            .where(task_table.c.id == task_id, task_table.c.state.in_(BEFORE[state]))
            .values(**values)
            .returning(*_TASK)
        )
        if (row := moved.one_or_none()) is None:
            there = await self.task(task_id)
            raise WrongState(f"task {task_id!r} is {there.state}, and cannot become {state}")
        task = read_task(row)
        if state is TaskState.RUNNING and task.started_ms is None:
            started = update(task_table).where(task_table.c.id == task_id).values(started_ms=self._now_ms)
            await self._connection.execute(started)
            task = msgspec.structs.replace(task, started_ms=self._now_ms)
        if task.parent is None:
            await self._move_run(task)
            await self._add_words(task.run, wording.words_of_end(state, problem))
        await self.tell(task.run, task.id, told)
        return task

    async def _move_run(self, task: Task) -> None:
        values = {"state": task.state, "finished_ms": task.finished_ms}
        await self._connection.execute(update(run_table).where(run_table.c.id == task.run).values(**values))

    async def _words_of(self, run_id: str) -> list[str]:
        if (begun := self._begun.pop(run_id, None)) is not None:
            return begun
        columns = [run_table.c[name] for name in ("tenant", "workspace", "created_by")]
        found = await self._connection.execute(select(*columns).where(run_table.c.id == run_id))
        return wording.words_of_run(run_id, **found.one()._asdict())

    async def _add_words(self, run_id: str, words: Sequence[str]) -> None:
        if words:
            await self._words.add.run(self._connection, [{"run": run_id, "words": " ".join(words)}])

    async def task(self, task_id: str) -> Task:
        found = await self._connection.execute(select(*_TASK).where(task_table.c.id == task_id))
        if (row := found.one_or_none()) is None:
            raise RecordMissing(f"no task {task_id!r}")
        return read_task(row)

    async def children_going(self, task: Task) -> list[Task]:
        """Those that it made and that are not over. Who holds its journal knows that there will be no others."""
        made = (task_table.c.run == task.run, task_table.c.parent == task.id, task_table.c.state.not_in(FINAL))
        rows = await self._connection.execute(select(*_TASK).where(*made).order_by(task_table.c.id))
        return list(map(read_task, rows))

    async def last_told(self, task: Task, *kinds: ProgressKind) -> ProgressEvent | None:
        """The last line of the run's log that is about this task; of these kinds, if any are named."""
        lines = [progress_table.c.run == task.run, progress_table.c.task == task.id]
        if kinds:
            lines.append(progress_table.c.kind.in_(kinds))
        query = select(progress_table).where(*lines).order_by(progress_table.c.number.desc()).limit(1)
        row = (await self._connection.execute(query)).one_or_none()
        return None if row is None else read_event(row)

    async def told_of(self, task: Task, kind: ProgressKind) -> list[ProgressEvent]:
        """All lines of this kind that are about this task, in order."""
        lines = (progress_table.c.run == task.run, progress_table.c.task == task.id, progress_table.c.kind == kind)
        rows = await self._connection.execute(select(progress_table).where(*lines).order_by(progress_table.c.number))
        return list(map(read_event, rows))

    async def tell(self, run_id: str, task_id: str, told: Iterable[NewProgress]) -> None:
        """Put these at the end of the run's log."""
        if lines := list(told):
            await run_alone(self._connection, self._database, self.telling(run_id, task_id, lines))

    def telling(self, run_id: str, task_id: str, lines: Sequence[NewProgress]) -> Part[None]:
        """`tell` as a part of a chain."""

        async def otherwise(_: int) -> None:
            raise RecordMissing(f"no run {run_id!r}")

        # The run's row gives the numbers: two tasks of a run take turns, and no number is left out.
        count = {"run": run_id, "lines": len(lines)}
        rows = [
            {
                "run": run_id,
                "number": n - len(lines),
                "task": task_id,
                "kind": one.kind,
                "at_ms": self._now_ms,
                "data": _encode(one.data),
            }
            for n, one in enumerate(lines, 1)
        ]
        return Part([Link(self._statements.tell, f"run:{run_id}", count, rows)], otherwise)


def read_event(row: Row[Any]) -> ProgressEvent:
    values = dict(row._mapping)  # noqa: SLF001 - its public name, in SQLAlchemy's way
    return ProgressEvent(**values | {"kind": ProgressKind(row.kind), "data": msgspec.json.decode(row.data)})


def read_task(row: Row[Any]) -> Task:
    values = dict(row._mapping)  # noqa: SLF001 - its public name, in SQLAlchemy's way
    return Task(**values | {"state": TaskState(row.state)})


def read_run(row: Row[Any]) -> Run:
    values = {name: getattr(row, name) for name in Run.__struct_fields__}
    return Run(**values | {"state": TaskState(row.state)})


RUN_COLUMNS, TASK_COLUMNS = _RUN, _TASK
