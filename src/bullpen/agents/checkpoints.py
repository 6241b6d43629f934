"""The workspace of a task: a sandbox that is lent when a tool first asks, as the last activation left it.

    workspace = Workspace(records.files, pool, task.id, epoch=lease.epoch)
    context = ToolContext(…, sandbox=workspace.sandbox, files=workspace.keep_file)
    loop = AgentLoop(…, LoopOptions(context=context, saves=workspace.stage))
    …
    await workspace.close()

Contents go to the blobs first; the checkpoint's row is written in the transaction that puts the step's result on
record. So a step whose result is on record has its files, and no other step has.
"""

import asyncio
import shutil
import tempfile
from collections.abc import Collection, Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

from sqlalchemy.ext.asyncio import AsyncConnection

from bullpen.agents.layers import Layers, Saved
from bullpen.agents.loop.finishing import Also
from bullpen.agents.sandbox.base import Level, Sandbox
from bullpen.agents.sandbox.limits import SandboxSpec
from bullpen.agents.sandbox.pool import SandboxPool
from bullpen.agents.sandbox.turns import Turns, in_line
from bullpen.errors import (
    BlobDamaged,
    BlobError,
    BlobMissing,
    CheckpointFailed,
    CheckpointMissing,
    RecordsUnavailable,
    SandboxError,
    SandboxRefused,
    SandboxTimeout,
    WorkspaceUnsaved,
)
from bullpen.records.files.files import Files
from bullpen.records.files.on import FilesOn
from bullpen.records.files.words import Checkpoint, FileKind, RunFile
from bullpen.records.journal import JournalOn
from bullpen.records.runs.runs import Runs

_WRITTEN = frozenset({"e2b"})
"""Drivers that cannot show files of this machine: inputs are written into the workspace there, below `inputs`."""
_HISTORY = 4
"""How many times what a workspace may hold its older states may: beyond that they go."""
_TROUBLE = (BlobError, SandboxError, RecordsUnavailable, OSError)


class Workspace:
    """What the tools of a task work on in one activation, of which `epoch` says whether it was overtaken."""

    def __init__(
        self,
        files: Files,
        pool: SandboxPool,
        task_id: str,
        spec: SandboxSpec | None = None,
        *,
        epoch: int | None = None,
        minimum: Level = Level.NONE,
        inputs: Collection[str] | None = None,
    ) -> None:
        self._files = files
        self._pool = pool
        self._task_id = task_id
        self._spec = spec or SandboxSpec()
        self._epoch = epoch
        """Of the activation; None: nobody overtakes."""
        self._minimum = minimum
        self._inputs = inputs
        """Ids of the run's input files that are shown; None: all."""
        self._turns = Turns()
        self._sandbox: Sandbox | None = None
        self._in_vain: SandboxTimeout | None = None
        self._shown: Path | None = None
        self._layers = Layers(files.blobs)
        """What was last kept: it need not be kept again."""
        self._mark = 0
        """Of the sandbox's, when that was."""
        self._taken = 0
        self._newest = ("", 0)
        """The checkpoint that was written last, and which of those that were taken it is."""

    # ── for tools ────────────────────────────────────────────────────────────────────────

    async def sandbox(self) -> Sandbox:
        """The task's: lent now if it was not, with its input files and what was last saved.

        CheckpointMissing if that is gone. One that broke is replaced, and goes back to what was last saved.
        """
        async with self._turns.turn():
            if self._sandbox is not None and not await self._sandbox.ping():
                await self._give_back()
            if self._in_vain is not None:
                raise self._in_vain  # of calls side by side each would wait as long as the one before
            if self._sandbox is None:
                try:
                    await self._begin()
                except SandboxTimeout as error:
                    self._in_vain = error
                    raise
            assert self._sandbox is not None
            return self._sandbox

    async def keep_file(
        self, key: str, name: str, data: bytes, *, mime: str, metadata: Mapping[str, Any] | None = None
    ) -> str:
        """Keep an artifact of the task: `KeepFile`, as a tool's context takes it."""
        kept = await self._files.keep_artifact(
            self._task_id, key, name, data, mime=mime, metadata=metadata, epoch=self._epoch
        )
        return kept.id

    # ── for the executor ─────────────────────────────────────────────────────────────────

    async def save(self, place: int) -> Checkpoint | None:
        """Save it as it is after the step at this place; None if no tool has asked for it, or nothing changed.

        CheckpointFailed (E013); WorkspaceUnsaved for what is in it; LeaseLost if the activation was overtaken. It was
        not saved then.
        """
        written: list[Checkpoint] = []
        row = await self._stage(place, written)
        if row is not None:
            try:
                async with self._files.database.writing(brief=True) as connection:
                    await row(connection)
            except RecordsUnavailable as error:
                raise self._failed(error) from error
        return written[0] if written else None

    async def stage(self, place: int) -> Also | None:
        """The same in two steps: contents are safe now, and the row is written by who calls what is returned."""
        return await self._stage(place, [])

    async def _stage(self, place: int, written: list[Checkpoint]) -> Also | None:
        async with self._turns.turn():
            if self._sandbox is None:
                return None
            self._taken += 1
            number = self._taken
            try:
                saved = await self._keep(self._sandbox)
            except SandboxRefused as error:
                raise WorkspaceUnsaved(f"the workspace cannot be saved: {error}") from error
            except _TROUBLE as error:
                raise self._failed(error) from error

        layers = self._layers

        async def row(connection: AsyncConnection) -> None:
            if (new := await self._write(connection, place, number, saved, layers)) is not None:
                written.append(new)

        return row

    async def _write(
        self, connection: AsyncConnection, place: int, number: int, saved: Saved, layers: Layers
    ) -> Checkpoint | None:
        if self._epoch is not None:
            await JournalOn(connection, self._files.database).append(self._task_id, [], epoch=self._epoch)
        on = FilesOn(connection, self._files.database, self._files.blobs)
        there = await on.checkpoint(self._task_id)
        if there is not None and there.sha256 == saved.name:
            return None
        # Of two tools side by side the second to be saved may be the first to be written: it has what both did.
        if there is not None and there.id == self._newest[0] and number < self._newest[1]:
            return None
        try:
            is_too_much = saved.history_bytes > _HISTORY * self._spec.limits.disk_bytes
            on_record = None if there is None or is_too_much else layers.found(there.sha256)
            new = await on.save_checkpoint(
                self._task_id,
                place,
                sha256=saved.name,
                size=saved.size,
                parts=saved.blobs if on_record is None else saved.blobs - on_record.blobs - {on_record.name},
                is_first=is_too_much,
            )
            if is_too_much:
                layers.begin_history()
        except BlobError as error:
            raise self._failed(error) from error
        self._newest = (new.id, number)
        return new

    async def close(self) -> None:
        """Give the sandbox back; what was not saved is gone. Safe to call twice."""
        async with self._turns.turn():
            await self._give_back()

    # ── beginning ────────────────────────────────────────────────────────────────────────

    async def _begin(self) -> None:
        task = await Runs(self._files.database).task(self._task_id)
        checkpoint = await self._files.checkpoint(self._task_id)
        given = await self._files.of_run(task.run, kind=FileKind.INPUT)
        inputs = [one for one in given if self._inputs is None or one.id in self._inputs]
        names = _apart(inputs)
        is_shown = self._pool.driver.name not in _WRITTEN
        spec = self._spec
        if inputs and is_shown:
            shown = {names[one.id]: await self._laid_out(one) for one in inputs}
            spec = replace(spec, inputs={**spec.inputs, **shown})
        try:
            with in_line():
                self._sandbox = await self._pool.acquire(spec, minimum=self._minimum, tenant=task.tenant)
            if checkpoint is not None:
                await self._restore(self._sandbox, checkpoint)
            if not is_shown:
                for one in inputs:
                    await self._sandbox.write(f"inputs/{names[one.id]}", await self._files.blobs.get(one.sha256))
        except BaseException:
            await self._give_back()
            raise

    async def _laid_out(self, one: RunFile) -> Path:
        """The input as a file of this machine, as long as the sandbox is lent."""
        if self._shown is None:
            self._shown = Path(await asyncio.to_thread(tempfile.mkdtemp, prefix="bullpen-inputs-"))
        path = self._shown / one.id
        with await asyncio.to_thread(path.open, "wb") as file:
            async for part in self._files.blobs.parts(one.sha256):
                await asyncio.to_thread(file.write, part)
        return path

    async def _restore(self, sandbox: Sandbox, checkpoint: Checkpoint) -> None:
        try:
            layers = await Layers.load(self._files.blobs, checkpoint.sha256)
            await sandbox.restore(await layers.archive())
        except (BlobMissing, BlobDamaged) as error:
            raise CheckpointMissing(f"the checkpoint {checkpoint.id} of task {self._task_id!r}: {error}") from error
        self._layers = layers

    # ── saving ───────────────────────────────────────────────────────────────────────────

    async def _keep(self, sandbox: Sandbox) -> Saved:
        """The workspace as it is: what changed in it is kept."""
        limits = self._spec.limits
        changes = await sandbox.changes(self._mark, limit=2 * limits.disk_bytes)
        self._mark = 0  # until it is kept, what changed is to be told again
        saved = await self._layers.save(changes, limits)
        self._mark = changes.mark
        return saved

    def _failed(self, error: Exception) -> CheckpointFailed:
        return CheckpointFailed(f"the workspace of task {self._task_id!r} could not be saved: {error}")

    async def _give_back(self) -> None:
        sandbox, self._sandbox = self._sandbox, None
        shown, self._shown = self._shown, None
        self._layers, self._mark = Layers(self._files.blobs), 0
        if sandbox is not None:
            await self._pool.release(sandbox)
        if shown is not None:
            await asyncio.to_thread(shutil.rmtree, shown, ignore_errors=True)


def _apart(inputs: Sequence[RunFile]) -> dict[str, str]:
    """A name for each, by its id: its own, and a number where another has that already."""
    names: dict[str, str] = {}
    for one in inputs:
        path, number = Path(one.name), 1
        while (name := one.name if number == 1 else f"{path.stem}-{number}{path.suffix}") in names.values():
            number += 1
        names[one.id] = name
    return names
