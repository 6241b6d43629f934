"""Child: one worker process on a store, which is watched from outside.

It says `ready` once its first claim was answered, works until so many jobs are settled or its
input closes, and ends with what it has seen. Times are on the machine's monotonic clock, which
all processes share.
"""

import argparse
import asyncio
import resource
import time
from collections.abc import Awaitable, Callable, Sequence
from pathlib import Path
from typing import Any

from benchmarks.children import run, say, when_input_closes
from benchmarks.own.gauges import thread_cpu_ns
from benchmarks.own.watching import Departures, Watch, percentiles, watched
from benchmarks.workload import QUEUE, noop
from bullpen import Context, Worker, WorkerOptions
from bullpen.job.verdicts import Settlement
from bullpen.settings import store_from
from bullpen.stores.sqlite import SqliteStore
from bullpen.worker.runner import calm_collector

_SETTLE_IN_S = 2.0
_PAGE_BYTES = resource.getpagesize()


def resident_mb() -> float:
    return int(Path("/proc/self/statm").read_text().split()[1]) * _PAGE_BYTES / 1e6


class Latencies:
    """How late each job began and was settled, after the time for which it was meant."""

    def __init__(self) -> None:
        self._due_ns: dict[str, int] = {}
        self.begun_ms: list[float] = []
        self.settled_ms: list[float] = []

    async def handle(self, ctx: Context) -> bool:
        self._due_ns[ctx.id] = due_ns = ctx.data["due_ns"]
        self.begun_ms.append((time.monotonic_ns() - due_ns) / 1e6)
        return True

    def on_settled(self, settlements: Sequence[Settlement]) -> None:
        now_ns = time.monotonic_ns()
        self.settled_ms += [(now_ns - self._due_ns.pop(one.lease.ref.id)) / 1e6 for one in settlements]

    def summary(self, warm_up: int) -> dict[str, Any]:
        shares = (50, 99, 100)
        return {
            "pickup": percentiles(self.begun_ms[warm_up:], *shares),
            "end_to_end": percentiles(self.settled_ms[warm_up:], *shares),
        }


class Child:
    def __init__(self, args: argparse.Namespace) -> None:
        self._args = args
        self._latencies = Latencies()
        self._sizes_mb: list[float] = []
        self._start: dict[str, float] = {}
        self._end: dict[str, float] = {}
        store = store_from(args.address)
        terms: dict[str, Any] = {"until": args.until, "on_ready": self._ready, "on_end": self._stop}
        departures = Departures(lanes=store.facts.exchanges_in_flight, **terms) if args.verdicts else None
        self._departures = departures
        self._watch = departures or Watch(**terms)
        if args.latencies:
            self._watch.on_settled = self._latencies.on_settled
        elif args.size_every:
            self._watch.on_settled = self._note_size
        handle: Callable[[Context], Awaitable[Any]] = self._latencies.handle if args.latencies else noop
        queues = [QUEUE] if args.queues == 1 else [f"{QUEUE}-{n}" for n in range(args.queues)]
        options = WorkerOptions(concurrency=args.concurrency)
        self._worker = Worker(watched(store, self._watch), dict.fromkeys(queues, handle), options)
        if departures is not None:
            departures.listen(self._worker)

    async def run(self) -> None:
        when_input_closes(self._worker.stop)
        async with asyncio.TaskGroup() as tasks:
            calm_collector()  # as `bullpen worker` does
            working = tasks.create_task(self._worker.run())
            if self._args.idle:
                await self._idle()
            await working
        say(self._answer())

    def _ready(self) -> None:
        self._start = self._costs()
        say({"ready": True})

    def _stop(self) -> None:
        self._end = self._costs()
        self._worker.stop()

    def _costs(self) -> dict[str, float]:
        store = self._worker._store
        ident = store._file.writer._thread.ident if isinstance(store, SqliteStore) else None
        writer_s = 0.0 if ident is None else thread_cpu_ns(ident) / 1e9
        return {"process_s": time.process_time(), "writer_s": writer_s}

    def _note_size(self, _: Sequence[Settlement]) -> None:
        if self._watch.settled // self._args.size_every > len(self._sizes_mb):
            self._sizes_mb.append(resident_mb())

    async def _idle(self) -> None:
        """What it costs to have nothing to do; says when the time begins and when it is over."""
        await asyncio.sleep(_SETTLE_IN_S)
        say({"begins": True})
        cpu_s, start = time.process_time(), time.monotonic()
        await asyncio.sleep(self._args.idle)
        say({"share": (time.process_time() - cpu_s) / (time.monotonic() - start)})

    def _answer(self) -> dict[str, Any]:
        watch = self._watch
        answer: dict[str, Any] = {
            "first_ns": watch.first_ns,
            "last_ns": watch.last_ns,
            "settled": watch.settled,
            "trips": watch.trips,
            "costs": {name: end - self._start[name] for name, end in self._end.items()},
            "sizes_mb": self._sizes_mb,
        }
        if self._departures is not None:
            for name, waits in (
                ("waits", self._departures.waits_ns),
                ("for_company", self._departures.for_company_ns),
            ):
                answer[name] = percentiles([wait / 1e6 for wait in waits], 50, 99, 100)
        return answer | (self._latencies.summary(self._args.warm_up) if self._args.latencies else {})


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("address")
    parser.add_argument("--concurrency", type=int, default=50)
    parser.add_argument("--queues", type=int, default=1)
    parser.add_argument("--until", type=int, help="stop after that many jobs")
    parser.add_argument("--verdicts", action="store_true", help="note how long verdicts wait before they leave")
    parser.add_argument("--latencies", action="store_true", help="note how late each job is")
    parser.add_argument("--warm-up", type=int, default=0, help="latencies that do not count")
    parser.add_argument("--size-every", type=int, default=0, help="note the memory after each so many jobs")
    parser.add_argument("--idle", type=float, default=0, help="have nothing to do for so many seconds")
    run(Child(parser.parse_args()).run())
