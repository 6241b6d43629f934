"""Files of runs as the API, tools and executors see them."""

from collections.abc import AsyncIterator, Mapping, Sequence
from typing import Any

from sqlalchemy import select, tuple_
from sqlalchemy.exc import IntegrityError
from sqlalchemy.ext.asyncio import AsyncConnection

from bullpen.errors import BadOption, BlobMissing, CheckpointMissing, RecordMissing
from bullpen.records.blobs.blobs import Blobs
from bullpen.records.database import Database
from bullpen.records.files.expiring import YOUNG_MS, expire
from bullpen.records.files.on import FILE_COLUMNS, FilesOn, new_id, read_file
from bullpen.records.files.quota import Quota
from bullpen.records.files.sizes import Data, check_size, limited
from bullpen.records.files.words import (
    Checkpoint,
    Expired,
    FileKind,
    FilePage,
    RunFile,
    check_file_name,
    check_metadata,
    check_mime,
    type_of,
)
from bullpen.records.journal import JournalOn
from bullpen.records.paging import place_in
from bullpen.records.runs.moving import RunsOn
from bullpen.records.tables.files import file as file_table
from bullpen.records.tables.runs import run as run_table
from bullpen.settings import whole_from

RUN_FILES_DAYS = "BULLPEN_RUN_FILES_DAYS"
_USUAL_DAYS, _MOST_DAYS = 30, 36_500
_DAY_MS = 86_400_000
_UNUSED_MS = _DAY_MS
"""How long an input waits for a run that is given it."""
_LIMIT = 500


class Files:
    """Keeps files of runs: rows here, bytes in `blobs`. A row and its event become true together."""

    def __init__(self, database: Database, blobs: Blobs) -> None:
        self.blobs = blobs
        self.database = database

    # ── keeping ──────────────────────────────────────────────────────────────────────────

    async def keep_artifact(
        self,
        task_id: str,
        key: str,
        name: str,
        data: bytes,
        *,
        mime: str | None = None,
        metadata: Mapping[str, Any] | None = None,
        epoch: int | None = None,
    ) -> RunFile:
        """A file that a call of a tool made: the same again, as it first was, for the same key and name.

        `epoch` is that of the activation: LeaseLost if it was overtaken. BadOption names what cannot be.
        """
        check_file_name(name)
        mime, about = check_mime(mime, name), check_metadata(metadata)
        check_size(len(data))
        there = await self._artifact(task_id, key, name)
        for last in (False, True):
            if there is not None:
                break
            sha256 = await self.blobs.put(data)
            try:
                there = await self._add_artifact(task_id, key, name, sha256, len(data), mime, about, epoch)
            except IntegrityError:  # the same call, elsewhere, was quicker
                there = await self._artifact(task_id, key, name)
            except BlobMissing:  # removed as unnamed, just when it was put again
                if last:
                    raise
        assert there is not None
        return there

    async def _artifact(self, task_id: str, key: str, name: str) -> RunFile | None:
        async with self.database.reading() as connection:
            return await FilesOn(connection, self.database, self.blobs).artifact(task_id, key, name)

    async def _add_artifact(
        self,
        task_id: str,
        key: str,
        name: str,
        sha256: str,
        size: int,
        mime: str,
        metadata: dict[str, Any],
        epoch: int | None,
    ) -> RunFile:
        async with self.database.writing() as connection:
            if epoch is not None:
                await JournalOn(connection, self.database).append(task_id, [], epoch=epoch)
            task = await RunsOn(connection, self.database).task(task_id)
            made = RunFile(
                id=new_id("file"),
                tenant=task.tenant,
                run=task.run,
                task=task_id,
                kind=FileKind.ARTIFACT,
                type=type_of(name, mime),
                name=name,
                mime=mime,
                size=size,
                sha256=sha256,
                metadata=metadata,
                created_ms=self.database.clock.now_ms(),
                expires_ms=None,
            )
            await FilesOn(connection, self.database, self.blobs).add(made, key=key)
        return made

    async def add_input(
        self,
        tenant: str,
        name: str,
        data: Data,
        *,
        mime: str | None = None,
        metadata: Mapping[str, Any] | None = None,
        run: str | None = None,
        quota: Quota | None = None,
    ) -> RunFile:
        """A file for a run of this tenant. Without one it waits a day for `FilesOn.attach`.

        BadOption names what cannot be; PayloadTooLarge, of data in parts as soon as they are too many; UploadsFull
        by the quota.
        """
        check_file_name(name)
        mime, about = check_mime(mime, name), check_metadata(metadata)
        kept = await self.blobs.put_parts(limited(data))
        now_ms = self.database.clock.now_ms()
        given = RunFile(
            id=new_id("file"),
            tenant=tenant,
            run=run,
            task=None,
            kind=FileKind.INPUT,
            type=type_of(name, mime),
            name=name,
            mime=mime,
            size=kept.size,
            sha256=kept.sha256,
            metadata=about,
            created_ms=now_ms,
            expires_ms=now_ms + _UNUSED_MS if run is None else None,
        )
        async with self.database.writing() as connection:
            if run is not None:
                await self._require_run(connection, run, tenant)
            if quota is not None:
                await quota.check(connection, self.database, given.size, is_final=True)
            await FilesOn(connection, self.database, self.blobs).add(given)
        return given

    async def check_room(self, quota: Quota, size: int) -> None:
        """UploadsFull if so many bytes are too many as it stands: before they are taken."""
        async with self.database.reading() as connection:
            await quota.check(connection, self.database, size, is_final=False)

    async def remove_input(self, file_id: str, *, tenant: str | None = None) -> None:
        """One that no run was given; its bytes go with the next `expire`. RecordMissing; WrongState if it is used."""
        async with self.database.writing() as connection:
            await FilesOn(connection, self.database, self.blobs).remove_unused(file_id, tenant=tenant)

    async def _require_run(self, connection: AsyncConnection, run: str, tenant: str) -> None:
        query = select(run_table.c.id).where(run_table.c.id == run, run_table.c.tenant == tenant)
        if (await connection.execute(query)).one_or_none() is None:
            raise RecordMissing(f"no run {run!r}")

    # ── looking ──────────────────────────────────────────────────────────────────────────

    async def get(self, file_id: str, *, tenant: str | None = None) -> RunFile:
        """RecordMissing, also for another tenant's and for one whose time is over."""
        query = select(*FILE_COLUMNS).where(file_table.c.id == file_id)
        if tenant is not None:
            query = query.where(file_table.c.tenant == tenant)
        async with self.database.reading() as connection:
            row = (await connection.execute(query)).one_or_none()
        if row is None or (row.expires_ms is not None and row.expires_ms <= self.database.clock.now_ms()):
            raise RecordMissing(f"no file {file_id!r}")
        return read_file(row)

    async def of_run(self, run_id: str, *, tenant: str | None = None, kind: FileKind | None = None) -> list[RunFile]:
        """All, as they came."""
        query = select(*FILE_COLUMNS).where(file_table.c.run == run_id)
        if tenant is not None:
            query = query.where(file_table.c.tenant == tenant)
        if kind is not None:
            query = query.where(file_table.c.kind == kind)
        async with self.database.reading() as connection:
            rows = await connection.execute(query.order_by(file_table.c.created_ms, file_table.c.id))
            return [read_file(row) for row in rows]

    async def page_of_run(
        self, run_id: str, kind: FileKind, *, tenant: str | None = None, limit: int = 50, cursor: str | None = None
    ) -> FilePage:
        """The same in pages."""
        if not 1 <= limit <= _LIMIT:
            raise BadOption(f"limit: from 1 to {_LIMIT}, not {limit}")
        place = (file_table.c.created_ms, file_table.c.id)
        query = select(*FILE_COLUMNS).where(file_table.c.run == run_id, file_table.c.kind == kind)
        if tenant is not None:
            query = query.where(file_table.c.tenant == tenant)
        if cursor is not None:
            query = query.where(tuple_(*place) > tuple_(*place_in(cursor)))
        async with self.database.reading() as connection:
            found = [read_file(row) for row in await connection.execute(query.order_by(*place).limit(limit + 1))]
        return _paged(found, limit)

    async def page(
        self,
        *,
        tenant: str | None = None,
        kind: FileKind | None = None,
        limit: int = 50,
        cursor: str | None = None,
    ) -> FilePage:
        """The newest first, but for those whose time is over; all tenants' if none is named."""
        if not 1 <= limit <= _LIMIT:
            raise BadOption(f"limit: from 1 to {_LIMIT}, not {limit}")
        place = (file_table.c.created_ms, file_table.c.id)
        query = select(*FILE_COLUMNS).order_by(*(column.desc() for column in place)).limit(limit + 1)
        if tenant is not None:
            query = query.where(file_table.c.tenant == tenant)
        if kind is not None:
            query = query.where(file_table.c.kind == kind)
        expires_ms, now_ms = file_table.c.expires_ms, self.database.clock.now_ms()
        query = query.where(expires_ms.is_(None) | (expires_ms > now_ms))
        if cursor is not None:
            query = query.where(tuple_(*place) < tuple_(*place_in(cursor)))
        async with self.database.reading() as connection:
            found = [read_file(row) for row in await connection.execute(query)]
        return _paged(found, limit)

    async def read(self, file_id: str, *, tenant: str | None = None) -> bytes:
        """Its bytes. RecordMissing; BlobMissing or BlobDamaged if they are gone or spoilt."""
        return await self.blobs.get((await self.get(file_id, tenant=tenant)).sha256)

    async def parts(self, file_id: str, *, tenant: str | None = None) -> AsyncIterator[bytes]:
        """The same for a large one. The last part comes only after all were checked."""
        found = await self.get(file_id, tenant=tenant)
        async for part in self.blobs.parts(found.sha256):
            yield part

    # ── checkpoints, and the end ─────────────────────────────────────────────────────────

    async def checkpoint(self, task_id: str) -> Checkpoint | None:
        """The newest of a task; None if its workspace was never saved. CheckpointMissing if its time is over."""
        async with self.database.reading() as connection:
            found = await FilesOn(connection, self.database, self.blobs).checkpoint(task_id)
        if found is not None and found.expires_ms is not None and found.expires_ms <= self.database.clock.now_ms():
            raise CheckpointMissing(f"the checkpoint of task {task_id!r} has expired")
        return found

    async def expire(self, *, now_ms: int | None = None, young_ms: int = YOUNG_MS) -> Expired:
        """Remove what nobody is to keep: for a chore, as often as you like, on any number of machines.

        Inputs that no run was given for a day; files and checkpoints of runs that ended so many days ago as
        `BULLPEN_RUN_FILES_DAYS` says; blobs of an hour and more that no row names.
        """
        now = self.database.clock.now_ms() if now_ms is None else now_ms
        keep_ms = whole_from(RUN_FILES_DAYS, _USUAL_DAYS, 1, _MOST_DAYS) * _DAY_MS
        return await expire(self.database, self.blobs, now_ms=now, keep_ms=keep_ms, young_ms=young_ms)


def _paged(found: Sequence[RunFile], limit: int) -> FilePage:
    """Of one more than the page has."""
    last = found[limit - 1] if len(found) > limit else None
    return FilePage(tuple(found[:limit]), None if last is None else f"{last.created_ms}~{last.id}")
