"""Orders as sagas, worked on by processes that are killed: `python -m tests.chaos.saga <file> <effects>`."""

import asyncio
import contextlib
import random
import sqlite3
import sys
from collections.abc import Iterator

from bullpen import Context, SqliteStore, Worker, WorkerOptions

QUEUE = "sagas"
STEPS = ("reserve", "charge", "ship", "mail")


class Ledger:
    """Where the effects go: each key once, in the order in which they came."""

    def __init__(self, path: str) -> None:
        self._path = path
        with self._opened() as db:
            db.execute("CREATE TABLE IF NOT EXISTS effect(key TEXT PRIMARY KEY, job TEXT, what TEXT)")

    def apply(self, key: str, job: str, what: str) -> None:
        with self._opened() as db:
            db.execute("INSERT OR IGNORE INTO effect VALUES(?, ?, ?)", (key, job, what))

    def of(self, job: str) -> list[str]:
        with self._opened() as db:
            return [what for (what,) in db.execute("SELECT what FROM effect WHERE job = ? ORDER BY rowid", (job,))]

    @contextlib.contextmanager
    def _opened(self) -> Iterator[sqlite3.Connection]:
        with contextlib.closing(sqlite3.connect(self._path, timeout=30)) as db, db:
            yield db


async def work(path: str, effects: str) -> None:
    ledger = Ledger(effects)

    async def order(ctx: Context) -> str:
        async def do(what: str) -> str:
            await asyncio.sleep(random.random() / 50)
            if what == ctx.data["fails_at"]:
                raise ConnectionError(what)
            await asyncio.to_thread(ledger.apply, ctx.step_key, ctx.id, what)
            return what

        async def undo(what: str) -> None:
            await asyncio.sleep(random.random() / 50)
            await asyncio.to_thread(ledger.apply, ctx.step_key, ctx.id, f"not {what}")

        async with ctx.saga() as saga:
            for name in STEPS:
                await saga.step(name, do, name, undo=undo)
        return "done"

    await Worker(SqliteStore(path), {QUEUE: order}, WorkerOptions(max_stalled=1_000, lease=5)).run(signals=True)


if __name__ == "__main__":
    asyncio.run(work(*sys.argv[1:]))
