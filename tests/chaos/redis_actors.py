"""Producers and workers on Redis, as users have them: `python -m tests.chaos.redis_actors producer|worker …`.

What each did is written into files that outlive it and its server: `acknowledged` has a line for
each add that returned, `done` one for each handler that came to its end, `refused` the code of
each error that a producer met, `begun` the processes that were at work.
"""

import asyncio
import dataclasses
import itertools
import logging
import os
import random
import signal
import sys
import uuid
from pathlib import Path

import msgspec

from bullpen import Context, JobOptions, Queue, StoreError, StoreUnavailable, Worker, WorkerOptions, keep
from bullpen.job.options import OptionFields
from bullpen.stores.redis import RedisStore

QUEUE = "chaos"


@dataclasses.dataclass(frozen=True, kw_only=True)
class Part:
    """What an actor is told. `folder` is where its notes go."""

    role: str
    url: str
    folder: str
    lease_s: float = 3
    concurrency: int = 10
    jobs: int | None = None
    """How many a producer adds; None is until it is told to end."""
    at_once: int = 5
    pace_s: float = 0.02
    """How long a producer rests after each handful."""
    payload_bytes: int = 0
    kept: int | None = None
    """How many completed jobs are kept; None is all."""

    def command(self) -> list[str]:
        return [sys.executable, "-m", "tests.chaos.redis_actors", msgspec.json.encode(self).decode()]

    def notes(self, name: str) -> int:
        return os.open(Path(self.folder) / name, os.O_WRONLY | os.O_APPEND | os.O_CREAT, 0o600)

    def note_begun(self) -> None:
        """From here on this process ends in good order when it gets a signal."""
        os.write(self.notes("begun"), f"{os.getpid()}\n".encode())


class Producer:
    """Adds until it is told to end; an add that was refused is made again, if that is safe."""

    def __init__(self, part: Part) -> None:
        self._part = part
        self._store = RedisStore(part.url)
        kept = keep() if part.kept is None else keep(part.kept)
        self._queue = Queue(self._store, QUEUE, defaults=JobOptions(keep_completed=kept, attempts=3))
        self._name = uuid.uuid4().hex[:8]
        self._acknowledged = part.notes("acknowledged")
        self._refused = part.notes("refused")
        self._is_ending = False

    async def run(self) -> None:
        asyncio.get_running_loop().add_signal_handler(signal.SIGTERM, self._end)
        await self._store.open()
        self._part.note_begun()
        numbers = itertools.count() if self._part.jobs is None else iter(range(self._part.jobs))
        while not self._is_ending and (handful := list(itertools.islice(numbers, self._part.at_once))):
            await asyncio.gather(*map(self._add, handful))
            await asyncio.sleep(self._part.pace_s)
        await self._store.close()

    def _end(self) -> None:
        self._is_ending = True

    async def _add(self, number: int) -> None:
        key = f"{self._name}-{number}"
        options = _options(number, key)
        data = {"key": key, "fails_first": number % 10 == 3, "ballast": "x" * self._part.payload_bytes}
        while not await self._try(key, data, options):
            await asyncio.sleep(random.uniform(0.05, 0.2))

    async def _try(self, key: str, data: dict[str, object], options: OptionFields) -> bool:
        """Whether there is nothing more to do about this one."""
        try:
            # Named after itself: so the log of events tells which jobs a server ever had.
            await self._queue.add(key, data, **options)
        except StoreError as error:
            os.write(self._refused, f"{error.code}\n".encode())
            # Unavailable: it may have been added. Only with an id of its own is it safe to ask again.
            return isinstance(error, StoreUnavailable) and "id" not in options
        os.write(self._acknowledged, f"{key}\n".encode())
        return True


def _options(number: int, key: str) -> OptionFields:
    """Jobs of all kinds, so that each place of the layout is used."""
    options: OptionFields = {"id": key} if number % 2 else {}
    if number % 5 == 1:
        options["priority"] = 3
    if number % 5 == 2:
        options["delay"] = 0.05
    return options


async def work(part: Part) -> None:
    done = part.notes("done")
    begun = itertools.count()

    async def handle(ctx: Context) -> str:
        if next(begun) == 0:
            part.note_begun()
        await asyncio.sleep(random.random() / 50)
        if ctx.data.get("fails_first") and ctx.job.attempts_made == 0:
            raise ConnectionError("the first time it always does")
        key: str = ctx.data["key"]
        os.write(done, f"{key}\n".encode())
        return key

    # Crashes must not fail a job here: only its own attempts may.
    options = WorkerOptions(max_stalled=1_000_000, lease=part.lease_s, concurrency=part.concurrency)
    await Worker(RedisStore(part.url), {QUEUE: handle}, options).run(signals=True)


async def main(part: Part) -> None:
    # Outages are told in warnings: to be read when a test failed.
    logging.basicConfig(
        filename=Path(part.folder) / f"{part.role}-{os.getpid()}.log", format="%(asctime)s %(name)s %(message)s"
    )
    watch = asyncio.create_task(_end_with_parent())
    await (Producer(part).run() if part.role == "producer" else work(part))
    watch.cancel()


async def _end_with_parent() -> None:
    """Whoever started us and was killed cannot end us."""
    parent = os.getppid()
    while os.getppid() == parent:
        await asyncio.sleep(1)
    os._exit(1)


if __name__ == "__main__":
    asyncio.run(main(msgspec.json.decode(sys.argv[1], type=Part)))
