"""Files of runs, without their bytes."""

from typing import Any, Self

from bullpen.records.files.words import FileKind, FileType, RunFile
from bullpen.server.models.base import Shown


class FileShown(Shown):
    id: str
    run_id: str | None
    task_id: str | None
    """Which made it."""
    kind: FileKind
    type: FileType
    name: str
    mime: str
    size: int
    sha256: str
    metadata: dict[str, Any]
    created_ms: int
    expires_ms: int | None
    """Of an input that no run was given yet: when it goes. None: it stays as long as its run."""

    @classmethod
    def of(cls, file: RunFile) -> Self:
        return cls(
            id=file.id,
            run_id=file.run,
            task_id=file.task,
            kind=file.kind,
            type=file.type,
            name=file.name,
            mime=file.mime,
            size=file.size,
            sha256=file.sha256,
            metadata=file.metadata,
            created_ms=file.created_ms,
            expires_ms=file.expires_ms,
        )
