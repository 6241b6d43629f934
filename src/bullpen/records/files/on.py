"""Files and checkpoints on a transaction of the caller's, which decides whether it happened."""

import uuid
from collections.abc import Collection, Sequence
from typing import Any

from sqlalchemy import Row, delete, func, insert, select, union, update
from sqlalchemy.ext.asyncio import AsyncConnection

from bullpen.errors import RecordMissing, WrongState
from bullpen.records.blobs.blobs import Blobs
from bullpen.records.database import Database
from bullpen.records.files.holding import hold
from bullpen.records.files.words import Checkpoint, FileKind, FileType, RunFile
from bullpen.records.runs.moving import RunsOn
from bullpen.records.runs.words import NewProgress, ProgressKind
from bullpen.records.tables.files import checkpoint as checkpoint_table
from bullpen.records.tables.files import file as file_table
from bullpen.records.tables.files import part as part_table

FILE_COLUMNS = [file_table.c[name] for name in RunFile.__struct_fields__]
CHECKPOINT_COLUMNS = [checkpoint_table.c[name] for name in Checkpoint.__struct_fields__]


class FilesOn:
    """Changes files on one connection."""

    def __init__(self, connection: AsyncConnection, database: Database, blobs: Blobs) -> None:
        self._connection = connection
        self._database = database
        self._blobs = blobs
        self._now_ms = database.clock.now_ms()

    async def add(self, new: RunFile, *, key: str | None = None) -> None:
        """A row, and an event where a task made it. BlobMissing if its blob was removed meanwhile."""
        await hold(self._connection, self._database, self._blobs, [new.sha256])
        values = {name: getattr(new, name) for name in RunFile.__struct_fields__}
        await self._connection.execute(insert(file_table), values | {"key": key})
        if new.run is not None and new.task is not None:
            told = NewProgress(
                ProgressKind.ARTIFACT_CREATED,
                {"id": new.id, "name": new.name, "type": new.type, "mime": new.mime, "size": new.size},
            )
            await RunsOn(self._connection, self._database).tell(new.run, new.task, [told])

    async def artifact(self, task_id: str, key: str, name: str) -> RunFile | None:
        """The one that this call made under this name."""
        columns = (file_table.c.task == task_id, file_table.c.key == key, file_table.c.name == name)
        row = (await self._connection.execute(select(*FILE_COLUMNS).where(*columns))).one_or_none()
        return None if row is None else read_file(row)

    async def attach(self, run_id: str, file_ids: Sequence[str], *, tenant: str) -> list[RunFile]:
        """Give a run these inputs, which stay as long as it does. RecordMissing, also for another tenant's.

        One that another run was given, or made, is the new run's too, under an id of its own.
        """
        return [await self._attach(run_id, file_id, tenant) for file_id in dict.fromkeys(file_ids)]

    async def _attach(self, run_id: str, file_id: str, tenant: str) -> RunFile:
        mine = (file_table.c.id == file_id, file_table.c.tenant == tenant)
        # Only an input is without a run.
        free = update(file_table).where(*mine, file_table.c.run.is_(None), self._not_over())
        taken = await self._connection.execute(free.values(run=run_id, expires_ms=None).returning(*FILE_COLUMNS))
        if (row := taken.one_or_none()) is not None:
            return read_file(row)
        found = await self._connection.execute(select(*FILE_COLUMNS).where(*mine, self._not_over()))
        if (row := found.one_or_none()) is None:
            raise RecordMissing(f"no file {file_id!r}")
        there = read_file(row)
        if there.run == run_id:
            return there
        values = {name: getattr(there, name) for name in RunFile.__struct_fields__}
        values |= {"id": new_id("file"), "run": run_id, "created_ms": self._now_ms, "expires_ms": None}
        values |= {"kind": FileKind.INPUT, "task": None}
        await self.add(copy := RunFile(**values))
        return copy

    async def remove_unused(self, file_id: str, *, tenant: str | None) -> None:
        """An input that no run was given. RecordMissing, also for another tenant's; WrongState for any other file."""
        mine = [file_table.c.id == file_id, self._not_over()]
        if tenant is not None:
            mine.append(file_table.c.tenant == tenant)
        unused = (file_table.c.kind == FileKind.INPUT, file_table.c.run.is_(None))
        if (await self._connection.execute(delete(file_table).where(*mine, *unused))).rowcount:
            return
        run = (await self._connection.execute(select(file_table.c.run).where(*mine))).scalar_one_or_none()
        if run is None:
            raise RecordMissing(f"no file {file_id!r}")
        raise WrongState(f"file {file_id!r} belongs to run {run!r}, and stays as long as that")

    def _not_over(self) -> Any:
        return file_table.c.expires_ms.is_(None) | (file_table.c.expires_ms > self._now_ms)

    async def save_checkpoint(
        self,
        task_id: str,
        place: int,
        *,
        sha256: str,
        size: int,
        parts: Collection[str] = (),
        is_first: bool = False,
    ) -> Checkpoint:
        """The task's newest from now on. It may count on what those before it name; if it is the first, they go.

        BlobMissing if a blob was removed before it was named; RecordMissing if there is no such task.
        """
        await hold(self._connection, self._database, self._blobs, sorted({sha256, *parts}))
        if is_first:
            await self._connection.execute(delete(checkpoint_table).where(checkpoint_table.c.task == task_id))
        return await self._add_checkpoint(task_id, place, sha256=sha256, size=size, parts=parts)

    async def _add_checkpoint(
        self, task_id: str, place: int, *, sha256: str, size: int, parts: Collection[str]
    ) -> Checkpoint:
        task = await RunsOn(self._connection, self._database).task(task_id)
        saved = Checkpoint(
            id=new_id("checkpoint"),
            task=task_id,
            place=place,
            sha256=sha256,
            size=size,
            created_ms=self._now_ms,
            expires_ms=None,
        )
        last = select(func.coalesce(func.max(checkpoint_table.c.number), 0)).where(checkpoint_table.c.task == task_id)
        values = {name: getattr(saved, name) for name in Checkpoint.__struct_fields__}
        values["number"] = (await self._connection.execute(last)).scalar_one() + 1
        await self._connection.execute(insert(checkpoint_table), values)
        if rows := [{"checkpoint": saved.id, "sha256": one} for one in sorted(set(parts))]:
            await self._connection.execute(insert(part_table), rows)
        told = NewProgress(ProgressKind.CHECKPOINT_SAVED, {"id": saved.id, "place": place, "size": size})
        await RunsOn(self._connection, self._database).tell(task.run, task_id, [told])
        return saved

    async def checkpoint(self, task_id: str, *, before: int | None = None) -> Checkpoint | None:
        """The newest of a task; or of its steps before this place."""
        query = select(*CHECKPOINT_COLUMNS).where(checkpoint_table.c.task == task_id)
        if before is not None:
            query = query.where(checkpoint_table.c.place < before)
        newest = query.order_by(checkpoint_table.c.number.desc()).limit(1)
        row = (await self._connection.execute(newest)).one_or_none()
        return None if row is None else Checkpoint(**row._mapping)  # noqa: SLF001 - its public name

    async def copy_checkpoint(self, task_id: str, new_task_id: str, *, before: int) -> bool:
        """Give another task the workspace as it was before this place, if anything was in it.

        False if what was in it is gone: it is not kept for ever.
        """
        await hold(self._connection, self._database, self._blobs, [])  # what rows name now is there to be named again
        there = await self.checkpoint(task_id, before=before)
        if there is None:
            return not await self._was_saved(task_id, before=before)
        parts = await self._named_until(there) - {there.sha256}
        await self._add_checkpoint(new_task_id, there.place, sha256=there.sha256, size=there.size, parts=parts)
        return True

    async def _was_saved(self, task_id: str, *, before: int) -> bool:
        """Whether the task ever had a checkpoint of a step before this place: its run's log outlives them."""
        runs = RunsOn(self._connection, self._database)
        saved = await runs.told_of(await runs.task(task_id), ProgressKind.CHECKPOINT_SAVED)
        return any(event.data["place"] < before for event in saved)

    async def _named_until(self, newest: Checkpoint) -> set[str]:
        """By this checkpoint and by those before it, on which it may count."""
        number = select(checkpoint_table.c.number).where(checkpoint_table.c.id == newest.id).scalar_subquery()
        until = (checkpoint_table.c.task == newest.task, checkpoint_table.c.number <= number)
        joined = part_table.join(checkpoint_table, part_table.c.checkpoint == checkpoint_table.c.id)
        own = select(checkpoint_table.c.sha256).where(*until)
        parts = select(part_table.c.sha256).select_from(joined).where(*until)
        return set((await self._connection.execute(union(own, parts))).scalars())


async def artifacts_of(connection: AsyncConnection, task_id: str, *, limit: int) -> list[RunFile]:
    """What a task made, as it came."""
    made = (file_table.c.task == task_id, file_table.c.kind == FileKind.ARTIFACT)
    order = (file_table.c.created_ms, file_table.c.id)
    rows = await connection.execute(select(*FILE_COLUMNS).where(*made).order_by(*order).limit(limit))
    return [read_file(row) for row in rows]


def new_id(kind: str) -> str:
    return f"{kind}_{uuid.uuid4().hex}"


def read_file(row: Row[Any]) -> RunFile:
    values = dict(row._mapping)  # noqa: SLF001 - its public name, in SQLAlchemy's way
    return RunFile(**values | {"kind": FileKind(row.kind), "type": FileType(row.type)})
