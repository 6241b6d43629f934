"""The one job that every system runs: 200 bytes of JSON, a handler that does nothing, a small result."""

import json
from pathlib import Path
from typing import Any

from bullpen import Context, JobOptions, NewJob, Queue, SqliteStore, keep
from bullpen.stores.sqlite.connection import Sync

QUEUE = "bench"
JOB = "noop"
PAYLOAD_BYTES = 200


def payload(**fields: int) -> dict[str, Any]:
    """These fields, padded to PAYLOAD_BYTES of JSON."""
    bare = len(json.dumps({**fields, "pad": ""}, separators=(",", ":")))
    return {**fields, "pad": "x" * (PAYLOAD_BYTES - bare)}


async def noop(_: Context) -> bool:
    return True


def queue_on(store: SqliteStore, *, keep_all: bool) -> Queue:
    """The queue; with `keep_all` every result stays, as the peers keep theirs."""
    return Queue(store, QUEUE, defaults=JobOptions(keep_completed=keep()) if keep_all else None)


def prepared(queue: Queue, how_many: int) -> list[NewJob]:
    return [queue.prepare(JOB, payload(n=n)) for n in range(how_many)]


async def fill(
    path: Path, jobs: int, *, keep_all: bool = True, paused: bool = False, sync: Sync = "normal", at_once: int = 1_000
) -> None:
    """Make a file with that many waiting jobs; nothing is left in its log."""
    store = SqliteStore(path, sync=sync)
    await store.open()
    queue = queue_on(store, keep_all=keep_all)
    if paused:
        await queue.pause()
    for start in range(0, jobs, at_once):
        await queue.add_bulk(prepared(queue, min(at_once, jobs - start)))
    await store.close()
