"""Opening the file, and SQLite's errors in our words."""

import contextlib
import errno
import os
import sqlite3
from collections.abc import Iterator
from pathlib import Path
from typing import Literal

from bullpen.errors import StoreCorrupt, StoreError, StoreFull, StoreReadOnly, StoreUnavailable
from bullpen.stores.sqlite.migrating import migrate
from bullpen.stores.sqlite.turnlock import TurnLock

Sync = Literal["full", "normal"]

_BUSY_MS = 30_000


def connect(path: Path, sync: Sync) -> sqlite3.Connection:
    """A connection in autocommit mode: transactions are begun and ended by name."""
    db = sqlite3.connect(
        path, timeout=_BUSY_MS / 1000, isolation_level=None, check_same_thread=False, cached_statements=512
    )
    try:
        migrate(db, str(path))  # first: a file that is not ours is left as it was
        db.execute("PRAGMA journal_mode = WAL")
        db.execute(f"PRAGMA synchronous = {'NORMAL' if sync == 'normal' else 'FULL'}")
        db.execute("PRAGMA cache_size = -16000")
        db.execute("PRAGMA wal_autocheckpoint = 4000")
    except BaseException:
        db.close()
        raise
    return db


def connect_reader(path: Path) -> sqlite3.Connection:
    db = sqlite3.connect(
        path, timeout=_BUSY_MS / 1000, isolation_level=None, check_same_thread=False, cached_statements=256
    )
    db.execute("PRAGMA query_only = 1")
    return db


def prepare(path: Path, sync: Sync) -> sqlite3.Connection:
    """Create or migrate the file and return the writer's connection."""
    with _translated(path):
        path.parent.mkdir(parents=True, exist_ok=True)
        if path.exists() and not os.access(path, os.W_OK):
            raise StoreReadOnly(f"{path} is not writable: change its permissions or name another file")
        with TurnLock(path).held():
            return connect(path, sync)


@contextlib.contextmanager
def _translated(path: Path) -> Iterator[None]:
    try:
        yield
    except (sqlite3.Error, OSError) as error:
        raise translate(error, path) from error


def translate(error: Exception, path: Path) -> StoreError:
    """What a driver's or the system's error means to a user."""
    if isinstance(error, PermissionError | FileExistsError | NotADirectoryError | IsADirectoryError):
        return StoreReadOnly(f"{path} cannot be opened for writing: {error}")
    if isinstance(error, OSError):
        match error.errno:
            case errno.ENOSPC | errno.EDQUOT:
                return StoreFull(f"{path}: the disk is full; nothing was written")
            case errno.EROFS:
                return StoreReadOnly(f"{path} does not accept writes: {error}")
    name = getattr(error, "sqlite_errorname", "") or ""
    match name.split("_")[1] if name.startswith("SQLITE_") else "":
        case "FULL":
            return StoreFull(f"{path}: the disk is full; nothing was written")
        case "READONLY" | "PERM":
            return StoreReadOnly(f"{path} does not accept writes: {error}")
        case "CANTOPEN":
            return StoreReadOnly(f"{path} cannot be opened: {error}")
        case "CORRUPT" | "NOTADB":
            return StoreCorrupt(
                f"{path} is damaged or is no Bullpen file ({error}); restore a backup, or move it away to start anew"
            )
        case "IOERR" if _disk_is_full(path):
            return StoreFull(f"{path}: the disk is full; nothing was written")
        case _:
            return StoreUnavailable(f"{path}: {error}")


def _disk_is_full(path: Path) -> bool:
    with contextlib.suppress(OSError):
        stats = os.statvfs(path.parent)
        return stats.f_bavail * stats.f_frsize < 1_000_000
    return False
