"""Places to move from and to, each opened as often as a test wants."""

import os
from collections.abc import Sequence
from pathlib import Path

import msgspec

from bullpen import JobRef, SqliteStore, State, Store
from bullpen.job.record import JobRecord
from bullpen.stores.redis import RedisStore
from bullpen.stores.sqlite.file import forget_after_crash
from tests.support.redis_harness import fresh_prefix
from tests.support.redis_server import RedisServer
from tests.support.sqlite_harness import check_file

KINDS = (("sqlite", "redis"), ("redis", "sqlite"), ("sqlite", "sqlite"), ("redis", "redis"))
STATES = tuple(State)


class Place:
    def __init__(self, address: str, path: Path | None = None) -> None:
        self.address = address
        """As the command line takes it."""
        self.path = path
        self._opened: list[Store] = []

    async def open(self) -> Store:
        store: Store = RedisStore(self.address) if self.path is None else SqliteStore(self.path)
        await store.open()
        self._opened.append(store)
        return store

    async def crash(self, store: Store) -> None:
        """Leave it as a killed process does."""
        self._opened.remove(store)
        if isinstance(store, SqliteStore) and store._opened is not None and store._opened.users == 1:
            forget_after_crash(store._opened)
            store._opened = None
        await store.close()

    async def close(self) -> None:
        for store in self._opened:
            await store.close()
        if self.path is not None and self.path.exists():
            check_file(self.path)


def sqlite_place(folder: Path, name: str) -> Place:
    path = folder / f"{name}.db"
    return Place(f"sqlite:{path}", path)


def redis_place(server: RedisServer) -> Place:
    return Place(f"{server.url}?prefix={fresh_prefix()}")


async def all_records(store: Store, queue: str) -> dict[State, list[JobRecord]]:
    """Every job of the queue, in the order of its state."""
    return {state: list((await store.jobs(queue, state, limit=1_000)).jobs) for state in STATES}


async def all_logs(store: Store, queue: str) -> dict[str, Sequence[str]]:
    records = await all_records(store, queue)
    return {job.id: (await store.logs(JobRef(queue, job.id))).lines for jobs in records.values() for job in jobs}


def untimed(record: JobRecord) -> JobRecord:
    """Without what a claim on the other store changes."""
    return msgspec.structs.replace(record, started_ms=None, worker=None)


def executions(path: Path) -> list[str]:
    """What ran, line by line, in any process."""
    return path.read_text().splitlines() if path.exists() else []


def note_execution(path: Path, what: str) -> None:
    """One write of a line: those of other processes stand before or after it, never in it."""
    fd = os.open(path, os.O_WRONLY | os.O_APPEND | os.O_CREAT, 0o600)
    try:
        os.write(fd, f"{what}\n".encode())
    finally:
        os.close(fd)
