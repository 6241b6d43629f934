"""A program that dies at a chosen point, in this process: the fuse counts points, and blows at one of them."""

from collections.abc import Sequence
from typing import Any

from bullpen import Bullpen, JournalEntry, Store
from bullpen.job.record import CrashLimits, JobRef
from bullpen.job.verdicts import Settlement
from bullpen.testing.conformance.moves import LEASE_MS, fresh_request
from bullpen.worker.executor import Executor
from bullpen.worker.handlers import Registry
from bullpen.worker.options import WorkerOptions
from bullpen.worker.running import Run
from tests.journal.conftest import AnyHarness

_MANY = CrashLimits(killed=99, out_of_memory=99, lost_heartbeat=99, total=99)


class Crash(GeneratorExit):
    """The process is gone. Of this kind, since a worker takes any other error of a handler for the job's."""


class Fuse:
    def __init__(self, blows_at: int) -> None:
        self.left = blows_at

    @property
    def has_blown(self) -> bool:
        return self.left < 0

    def point(self) -> None:
        """Here the process may die."""
        if self.left == 0:
            self.left = -1
            raise Crash
        self.left -= self.left > 0


class Brittle:
    """A store whose process may die before and after each record."""

    def __init__(self, store: Store, fuse: Fuse) -> None:
        self._store = store
        self._fuse = fuse

    def __getattr__(self, name: str) -> Any:
        return getattr(self._store, name)

    async def append_journal(
        self, ref: JobRef, entries: Sequence[JournalEntry], *, epoch: int
    ) -> Sequence[JournalEntry]:
        self._fuse.point()
        standing = await self._store.append_journal(ref, entries, epoch=epoch)
        self._fuse.point()
        return standing


class Destination:
    """What the steps call: it knows each key, so that the same call again has no second effect."""

    def __init__(self, fuse: Fuse) -> None:
        self.fuse = fuse
        self.effects: dict[str, str] = {}
        """What was done, by key, in order."""

    def do(self, what: str, key: str) -> None:
        self.fuse.point()
        self.effects.setdefault(key, what)
        self.fuse.point()

    @property
    def done(self) -> list[str]:
        return list(self.effects.values())


async def run_to_end(harness: AnyHarness, pen: Bullpen, queue: str, fuse: Fuse) -> None:
    """Run the one job of this queue, through the death of its process, until it has ended or is parked."""
    store = await harness.open()
    while True:
        claimed = await store.claim({queue: 1}, worker="w", lease_ms=LEASE_MS, request=fresh_request())
        if not claimed.jobs:
            return
        executor = Executor(
            Brittle(store, fuse), Registry(pen.handlers()), WorkerOptions(), harness.clock, in_place_ms=0
        )
        verdicts: list[Any] = []
        run = executor.prepare(claimed.jobs[0])
        assert isinstance(run, Run)
        try:
            await executor.perform(run, lambda _, verdict, all_of=verdicts: all_of.append(verdict))  # type: ignore[misc]
        except Crash:
            await harness.crash(store)
            await harness.advance(LEASE_MS + 1)
            store = await harness.open()
            await store.rescue([queue], limits=_MANY)
        else:
            await store.settle([Settlement(run.lease, verdicts[0])], request=fresh_request())
