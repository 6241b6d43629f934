"""What a run leaves in its workspace becomes artifacts, so that whoever asked for it can have it.

It is read off the last checkpoint, when the run is at its end: so it is what the steps on record made, whichever worker
did them, and the same again if the worker dies in between.
"""

import hashlib
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from itertools import groupby
from pathlib import PurePosixPath

from bullpen.agents.layers import Layers
from bullpen.agents.manifest import Entry, Where
from bullpen.errors import BadOption, BlobDamaged, BlobError, BlobMissing, CheckpointFailed, CheckpointMissing
from bullpen.job.checks import check_whole
from bullpen.records.files.files import Files
from bullpen.records.files.sizes import most_bytes
from bullpen.records.files.words import Checkpoint, FileKind, RunFile, check_file_name
from bullpen.records.runs.moving import RunsOn
from bullpen.records.runs.words import NewProgress, ProgressKind, Task

_MB = 1 << 20
_CACHES = frozenset({"__pycache__", "node_modules", "site-packages", "venv"})
_LEFTOVERS = frozenset({".pyc", ".pyo"})
_NAMED = 5
"""Of those that are not kept, in what is told of them."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Harvest:
    """How much of a workspace becomes artifacts when its run ends. Hidden files and caches never do."""

    files: int = 100
    """At most; 0 for none."""
    file_mb: int = 25
    """Of one file; a larger one is left out."""
    all_mb: int = 250
    """Of all together."""

    def __post_init__(self) -> None:
        check_whole("files", self.files, 0, 10_000)
        check_whole("file_mb", self.file_mb, 1, 1_000_000)
        check_whole("all_mb", self.all_mb, 1, 1_000_000)


@dataclass(frozen=True, slots=True)
class _Crop:
    """A file of the workspace."""

    path: str
    where: Where

    @property
    def name(self) -> str:
        return PurePosixPath(self.path).name

    @property
    def key(self) -> str:
        """Of the artifact: a path may be longer than a key can be."""
        return f"workspace/{hashlib.sha256(self.path.encode()).hexdigest()[:32]}"


async def harvest(files: Files, task: Task, rules: Harvest, *, epoch: int | None = None) -> list[RunFile]:
    """Keep what the task's last checkpoint has and it was not given; those that were kept, now or before.

    CheckpointMissing if that is gone, CheckpointFailed if it cannot be kept now; LeaseLost for an activation that was
    overtaken.
    """
    checkpoint = await files.checkpoint(task.id) if rules.files else None
    if checkpoint is None:
        return []
    try:
        return await _harvest(files, task, checkpoint, rules, epoch)
    except (BlobMissing, BlobDamaged) as error:
        raise CheckpointMissing(f"the files of task {task.id!r}: {error}") from error
    except (BlobError, OSError) as error:
        raise CheckpointFailed(f"the files of task {task.id!r} could not be kept: {error}") from error


async def _harvest(
    files: Files, task: Task, checkpoint: Checkpoint, rules: Harvest, epoch: int | None
) -> list[RunFile]:
    layers = await Layers.load(files.blobs, checkpoint.sha256)
    given = {one.sha256 for one in await files.of_run(task.run, kind=FileKind.INPUT)}
    chosen, left_out = _choose(_made(layers.entries.values(), given), rules)
    kept: list[RunFile] = []
    # One blob at a time: small files share one.
    chosen.sort(key=lambda crop: (crop.where.blob, crop.path))
    for blob, crops in groupby(chosen, key=lambda crop: crop.where.blob):
        data = await files.blobs.get(blob)
        for crop in crops:
            start, size = crop.where.start, crop.where.size
            kept.append(
                await files.keep_artifact(
                    task.id,
                    crop.key,
                    crop.name,
                    data[start : start + size],
                    metadata={"path": crop.path},
                    epoch=epoch,
                )
            )
    if left_out:
        await _tell_of(files, task, left_out)
    return kept


def _made(entries: Iterable[Entry], given: set[str]) -> Iterator[_Crop]:
    """What the run made, by path."""
    for entry in sorted(entries, key=lambda entry: entry.name):
        if entry.where is None or entry.digest.hex() in given:
            continue
        if (path := _path_of(entry)) is not None:
            yield _Crop(path, entry.where)


def _path_of(entry: Entry) -> str | None:
    """None for what is hidden, a cache, or has a name that no other machine could give it."""
    try:
        path = PurePosixPath(entry.name.decode())
        check_file_name(path.name)
    except (UnicodeDecodeError, BadOption):
        return None
    is_hidden = any(part.startswith(".") or part in _CACHES for part in path.parts)
    return None if is_hidden or path.suffix in _LEFTOVERS else str(path)


def _choose(made: Iterable[_Crop], rules: Harvest) -> tuple[list[_Crop], list[_Crop]]:
    """Those that are kept, and those that are too many or too large."""
    chosen: list[_Crop] = []
    left_out: list[_Crop] = []
    largest = min(rules.file_mb * _MB, most_bytes())
    room = rules.all_mb * _MB
    for crop in made:
        size = crop.where.size
        if len(chosen) < rules.files and size <= min(room, largest):
            chosen.append(crop)
            room -= size
        else:
            left_out.append(crop)
    return chosen, left_out


async def _tell_of(files: Files, task: Task, left_out: list[_Crop]) -> None:
    names = ", ".join(crop.path for crop in left_out[:_NAMED])
    more = f" and {len(left_out) - _NAMED} more" if len(left_out) > _NAMED else ""
    told = NewProgress(ProgressKind.JOB_PROGRESS, {"message": f"too many or too large to be kept: {names}{more}"})
    async with files.database.writing(brief=True) as connection:
        await RunsOn(connection, files.database).tell(task.run, task.id, [told])
