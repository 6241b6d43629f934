"""Child: one worker process on a file, which tells when it claimed first and settled last.

It says `ready` once its first claim was answered, works until so many jobs are settled or its
input closes, and ends with its times on the machine's monotonic clock, which all processes share.
"""

import argparse
import time
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path

from benchmarks.children import run, say, when_input_closes
from benchmarks.workload import QUEUE, noop
from bullpen import SqliteStore, Worker, WorkerOptions
from bullpen.job.verdicts import Settlement
from bullpen.stores.base import Exchanged, SettleOutcome
from bullpen.stores.sqlite.connection import Sync
from bullpen.worker.runner import calm_collector


def say_ready() -> None:
    say({"ready": True})


class Stopwatch:
    """The times of one worker: when it first asked for jobs, and when it last heard that some are settled."""

    def __init__(self, *, until: int | None = None, on_ready: Callable[[], None] = say_ready) -> None:
        self._until = until
        self._on_ready: Callable[[], None] | None = on_ready
        self.on_end: Callable[[], None] = lambda: None
        self.first_ns = 0
        self.last_ns = 0
        self.settled = 0

    def asked(self) -> None:
        self.first_ns = self.first_ns or time.monotonic_ns()

    def answered(self, answer: Exchanged) -> None:
        if self._on_ready is not None:
            self._on_ready()
            self._on_ready = None
        if answer.settled:
            self.last_ns = time.monotonic_ns()
            self.settled += answer.settled.count(SettleOutcome.SETTLED)
            if self.settled == self._until:
                self.on_end()


class TimedStore(SqliteStore):
    """The store, with a stopwatch at the one verb that claims and settles."""

    def __init__(self, path: Path, *, sync: Sync, watch: Stopwatch) -> None:
        super().__init__(path, sync=sync)
        self._watch = watch

    def another(self) -> "TimedStore":
        return TimedStore(self._path, sync=self._sync, watch=self._watch)

    async def exchange(
        self,
        settlements: Sequence[Settlement],
        wants: Mapping[str, int],
        *,
        worker: str,
        lease_ms: int,
        request: str,
        at_most: int | None = None,
    ) -> Exchanged:
        self._watch.asked()
        answer = await super().exchange(
            settlements, wants, worker=worker, lease_ms=lease_ms, request=request, at_most=at_most
        )
        self._watch.answered(answer)
        return answer


async def main(args: argparse.Namespace) -> None:
    watch = Stopwatch(until=args.until)
    store = TimedStore(args.path, sync=args.sync, watch=watch)
    worker = Worker(store, {QUEUE: noop}, WorkerOptions(concurrency=args.concurrency))
    watch.on_end = worker.stop
    when_input_closes(worker.stop)
    calm_collector()  # as `bullpen worker` does
    await worker.run()
    say({"first_ns": watch.first_ns, "last_ns": watch.last_ns, "settled": watch.settled})


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("path", type=Path)
    parser.add_argument("--sync", choices=["full", "normal"], required=True)
    parser.add_argument("--concurrency", type=int, required=True)
    parser.add_argument("--until", type=int, help="stop after that many jobs")
    run(main(parser.parse_args()))
