"""How a file is, told without changing it: for `doctor`."""

import asyncio
import contextlib
import os
import sqlite3
from pathlib import Path

import msgspec

from bullpen.stores.base import Store
from bullpen.stores.sqlite.connection import Sync, translate
from bullpen.stores.sqlite.presence import find_dead
from bullpen.stores.sqlite.schema import VERSION
from bullpen.stores.sqlite.store import SqliteStore

_NOBODY = "\0"
"""No process has this name: all that are there count."""
_MOST_PROBLEMS = 5


class Diagnosis(msgspec.Struct, frozen=True, kw_only=True):
    path: str
    sqlite_version: str
    sync: Sync
    schema_version: int
    known_schema_version: int = VERSION
    problems: tuple[str, ...] = ()
    """What the integrity check found; none is good."""
    file_bytes: int = 0
    wal_bytes: int = 0
    free_disk_bytes: int = 0
    dead_processes: int = 0
    """Processes that died with the file open and whose jobs nobody has taken back yet."""


def path_of(store: Store) -> Path | None:
    """The file of a SQLite store; None for any other."""
    return store._path if isinstance(store, SqliteStore) else None  # noqa: SLF001 - the same room


async def version_of(store: SqliteStore) -> int:
    """The version of the file's tables, which is that of the Bullpen that last opened it. Raises StoreError."""
    return await asyncio.to_thread(_version_of, store._path)  # noqa: SLF001 - the same room


def _version_of(path: Path) -> int:
    try:
        with contextlib.closing(sqlite3.connect(f"{path.as_uri()}?mode=ro", uri=True)) as db:
            (version,) = db.execute("PRAGMA user_version").fetchone()
    except (sqlite3.Error, OSError) as error:
        raise translate(error, path) from error
    return int(version)


async def diagnose(store: SqliteStore) -> Diagnosis:
    """Look at the file of a store that need not be open. Raises StoreError if it cannot even be read."""
    return await asyncio.to_thread(_diagnose, store._path, store._sync)  # noqa: SLF001 - the same room


def _diagnose(path: Path, sync: Sync) -> Diagnosis:
    try:
        with contextlib.closing(sqlite3.connect(f"{path.as_uri()}?mode=ro", uri=True)) as db:
            version, problems = _look_inside(db)
        disk = os.statvfs(path.parent)
        file_bytes = path.stat().st_size
    except (sqlite3.Error, OSError) as error:
        raise translate(error, path) from error
    wal, live = Path(f"{path}-wal"), Path(f"{path}-live")
    return Diagnosis(
        path=str(path),
        sqlite_version=sqlite3.sqlite_version,
        sync=sync,
        schema_version=version,
        problems=problems,
        file_bytes=file_bytes,
        wal_bytes=wal.stat().st_size if wal.exists() else 0,
        free_disk_bytes=disk.f_bavail * disk.f_frsize,
        dead_processes=len(find_dead(live, _NOBODY)) if live.exists() else 0,
    )


def _look_inside(db: sqlite3.Connection) -> tuple[int, tuple[str, ...]]:
    (version,) = db.execute("PRAGMA user_version").fetchone()
    found = [text for (text,) in db.execute(f"PRAGMA quick_check({_MOST_PROBLEMS})")]
    return version, () if found == ["ok"] else tuple(found)
