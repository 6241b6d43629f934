"""Runs as the API and the dashboard see them: lists, one with its tasks, and its log from any place on."""

from collections.abc import Sequence
from typing import Any

from sqlalchemy import Row, func, select, tuple_
from sqlalchemy.ext.asyncio import AsyncConnection

from bullpen.errors import BadOption, RecordMissing
from bullpen.records.database import Database
from bullpen.records.model.texts import rows_of
from bullpen.records.paging import number_in, place_in
from bullpen.records.runs.moving import RUN_COLUMNS, TASK_COLUMNS, read_event, read_run, read_task
from bullpen.records.runs.searching import ASKS, RunFilter, find
from bullpen.records.runs.words import (
    FINAL,
    HowFar,
    ProgressEvent,
    ProgressKind,
    Run,
    RunPage,
    Task,
    TaskState,
    UnderWay,
)
from bullpen.records.tables.runs import progress as progress_table
from bullpen.records.tables.runs import run as run_table
from bullpen.records.tables.runs import task as task_table

_LIMIT = 500
_LAST_BEGUN = 50


class Runs:
    """What is asked of runs; they are changed by `RunsOn`."""

    def __init__(self, database: Database) -> None:
        self._database = database

    async def get(self, run_id: str, *, tenant: str | None = None) -> Run:
        """RecordMissing, also for another tenant's: nobody learns that it is there."""
        query = select(*RUN_COLUMNS).where(run_table.c.id == run_id)
        if tenant is not None:
            query = query.where(run_table.c.tenant == tenant)
        async with self._database.reading(brief=True) as connection:
            row = (await connection.execute(query)).one_or_none()
        if row is None:
            raise RecordMissing(f"no run {run_id!r}")
        return read_run(row)

    async def task(self, task_id: str, *, tenant: str | None = None) -> Task:
        """RecordMissing, also for another tenant's."""
        query = select(*TASK_COLUMNS).where(task_table.c.id == task_id)
        if tenant is not None:
            query = query.where(task_table.c.tenant == tenant)
        async with self._database.reading(brief=True) as connection:
            row = (await connection.execute(query)).one_or_none()
        if row is None:
            raise RecordMissing(f"no task {task_id!r}")
        return read_task(row)

    async def tasks(self, run_id: str) -> list[Task]:
        """Of a run, as they were made: the first is the run's own."""
        query = select(*TASK_COLUMNS).where(task_table.c.run == run_id)
        async with self._database.reading(brief=True) as connection:
            rows = (await connection.execute(query.order_by(task_table.c.created_ms, task_table.c.id))).all()
        # A task that others were made by stands before them, also within a millisecond.
        return sorted(map(read_task, rows), key=lambda task: task.parent is not None)

    async def page(
        self,
        *,
        tenant: str | None = None,
        workspace: str | None = None,
        state: TaskState | None = None,
        is_asking: bool = False,
        text: str | None = None,
        limit: int = 50,
        cursor: str | None = None,
    ) -> RunPage:
        """The newest first; all tenants' if none is named. `is_asking`: those only that wait for a person.

        `text`: those that have all these words, or words that begin so, in ids, kind, prompt, asker or error.
        """
        if not 1 <= limit <= _LIMIT:
            raise BadOption(f"limit: from 1 to {_LIMIT}, not {limit}")
        wanted = RunFilter(tenant=tenant, workspace=workspace, state=state, is_asking=is_asking)
        async with self._database.reading(brief=True) as connection:
            if text is None:
                found = await _newest(connection, wanted, limit + 1, cursor)
            else:
                before = None if cursor is None else number_in(cursor)
                self._database.go_aside(connection)
                found = await find(self._database, connection, wanted, text, limit + 1, before=before)
        if len(found) <= limit:
            return RunPage(tuple(map(read_run, found)), None)
        last = found[limit - 1]
        place = f"{last.created_ms}~{last.id}" if text is None else str(last.number)
        return RunPage(tuple(map(read_run, found[:limit])), place)

    async def events(self, run_id: str, *, after: int = 0, limit: int = 1_000) -> list[ProgressEvent]:
        """What happened after this number, in order."""
        query = select(progress_table).where(progress_table.c.run == run_id, progress_table.c.number > after)
        async with self._database.reading(brief=True) as connection:
            rows = (await connection.execute(query.order_by(progress_table.c.number).limit(limit))).all()
        return list(map(read_event, rows))

    async def told(self, run_ids: Sequence[str]) -> dict[str, HowFar]:
        """How far each is: one question for all that are listened to."""
        query = select(run_table.c.id, run_table.c.told, run_table.c.state).where(run_table.c.id.in_(run_ids))
        async with self._database.reading(brief=True) as connection:
            rows = (await connection.execute(query)).all()
        return {row.id: HowFar(row.told, TaskState(row.state)) for row in rows}

    async def first_tasks(self, run_ids: Sequence[str]) -> dict[str, Task]:
        """The task that each of these runs began with."""
        first = (task_table.c.run.in_(run_ids), task_table.c.parent.is_(None))
        async with self._database.reading(brief=True) as connection:
            rows = (await connection.execute(select(*TASK_COLUMNS).where(*first))).all()
        return {row.run: read_task(row) for row in rows}

    async def asking(self, run_ids: Sequence[str]) -> set[str]:
        """Those of these runs in which a person is asked, by whichever of their tasks."""
        async with self._database.reading(brief=True) as connection:
            rows = await connection.execute(select(task_table.c.run).where(task_table.c.run.in_(run_ids), ASKS))
            return {row.run for row in rows}

    async def retries(self, tasks: Sequence[Task]) -> dict[str, int]:
        """How often each was put back to be gone on with, by the logs of their runs; none for never."""
        lines = (
            progress_table.c.run.in_({task.run for task in tasks}),
            progress_table.c.kind == ProgressKind.JOB_RETRYING,
            progress_table.c.task.in_([task.id for task in tasks]),
        )
        query = select(progress_table.c.task, func.count()).where(*lines).group_by(progress_table.c.task)
        async with self._database.reading(brief=True) as connection:
            rows = (await connection.execute(query)).all()
        return {row[0]: row[1] for row in rows}

    async def usual_ms(self, queue: str) -> float | None:
        """How long tasks of a queue take, by the last that began and are over; None if there are none."""
        columns = (task_table.c.started_ms, task_table.c.finished_ms)
        begun = (task_table.c.queue == queue, task_table.c.started_ms.is_not(None))
        last = select(*columns).where(*begun).order_by(task_table.c.started_ms.desc()).limit(_LAST_BEGUN).subquery()
        query = select(func.avg(last.c.finished_ms - last.c.started_ms))
        async with self._database.reading(brief=True) as connection:
            found = (await connection.execute(query)).scalar_one()
        return None if found is None else float(found)

    async def under_way(self) -> dict[TaskState, UnderWay]:
        """How many runs and tasks are in each state that is not final. By an index: what is over costs nothing."""
        going = [state for state in TaskState if state not in FINAL]
        counts = (func.count().filter(task_table.c.parent.is_(None)), func.count())
        query = select(task_table.c.state, *counts).where(task_table.c.state.in_(going))
        async with self._database.reading() as connection:
            rows = (await connection.execute(query.group_by(task_table.c.state))).all()
        return dict.fromkeys(going, UnderWay(0, 0)) | {TaskState(state): UnderWay(*found) for state, *found in rows}

    async def stale(self, *, before_ms: int, after: str = "", limit: int = 100) -> list[Task]:
        """Tasks that should go on and have not changed their state since, by id, those after this one."""
        going = [state for state in TaskState if state not in FINAL]
        unchanged = (task_table.c.state.in_(going), task_table.c.changed_ms <= before_ms)
        query = select(*TASK_COLUMNS).where(*unchanged, task_table.c.id > after)
        async with self._database.reading(brief=True) as connection:
            rows = (await connection.execute(query.order_by(task_table.c.id).limit(limit))).all()
        return [read_task(row) for row in rows]


async def _newest(connection: AsyncConnection, wanted: RunFilter, limit: int, cursor: str | None) -> Sequence[Row[Any]]:
    place = (run_table.c.created_ms, run_table.c.id)
    query = wanted.narrow(select(*RUN_COLUMNS)).order_by(*(column.desc() for column in place)).limit(limit)
    if cursor is not None:
        query = query.where(tuple_(*place) < tuple_(*place_in(cursor)))
    return await rows_of(connection, query)
