"""A worker whose handlers count each other: `python -m tests.chaos.group_actor <store> <folder>`.

A running handler holds a lock on a file of its own, which the kernel frees when its process is
killed: whoever counts the locks counts the handlers that really run, in all processes.
"""

import asyncio
import contextlib
import fcntl
import os
import random
import sys
import uuid
from collections.abc import Iterator
from pathlib import Path

from bullpen import Context, Worker, WorkerOptions
from bullpen.settings import store_from

QUEUE = "chaos"


class Counting:
    def __init__(self, folder: Path) -> None:
        self._folder = folder
        self._seen = os.open(folder / "seen", os.O_WRONLY | os.O_APPEND | os.O_CREAT, 0o600)

    async def handle(self, ctx: Context) -> None:
        with self._running(str(ctx.group)) as at_once:
            os.write(self._seen, f"{ctx.group} {at_once} {os.getpid()}\n".encode())
            await asyncio.sleep(random.random() / 50)  # the work

    @contextlib.contextmanager
    def _running(self, group: str) -> Iterator[int]:
        own = self._folder / f"{group}.{uuid.uuid4().hex}.running"
        with own.open("w") as file:
            with (self._folder / "turn").open("w") as turn:
                fcntl.flock(turn, fcntl.LOCK_EX)  # one counts at a time, and none begins meanwhile
                fcntl.flock(file, fcntl.LOCK_EX)
                others = [path for path in self._folder.glob(f"{group}.*.running") if path != own]
                at_once = 1 + sum(map(_is_locked, others))
            try:
                yield at_once
            finally:
                own.unlink()


def _is_locked(path: Path) -> bool:
    with contextlib.suppress(FileNotFoundError), path.open() as file:
        try:
            fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            return True
    return False


async def work(address: str, folder: Path) -> None:
    options = WorkerOptions(concurrency=10, lease=2, max_stalled=100)
    await Worker(store_from(address), {QUEUE: Counting(folder).handle}, options).run(signals=True)


if __name__ == "__main__":
    asyncio.run(work(sys.argv[1], Path(sys.argv[2])))
