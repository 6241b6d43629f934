"""What the drivers of all peers written in Python share. It runs in each peer's own environment.

    python -m benchmarks.peers.drivers.PEER drive WHERE [--concurrency N] [--processes N]

One JSON object a line in, one a line out, after {"version": …} once the peer is connected:

    {"do": "add", "way": "one" | "concurrent" | "bulk", "jobs": N, "data": {…}}   {"seconds": …}
    {"do": "drain", "jobs": N}                                                    {"seconds": …}
    {"do": "pickup", "samples": N, "data": {…}}                                   {"p50": …, "p99": …} in ms

The worker is a process of its own, or several: the same module in the role `work`. A handler notes its time in a
file of its process, which costs about a microsecond, so nobody has to ask the store while it is measured.
"""

import argparse
import asyncio
import contextlib
import json
import logging
import math
import os
import random
import struct
import subprocess
import sys
import tempfile
import threading
import time
from abc import ABC, abstractmethod
from collections.abc import Coroutine, Iterator, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

Data = dict[str, Any]

COMPANY = 200
"""Adds at a time, concurrent or in bulk."""
GAP_S = (0.010, 0.030)
"""The pause between two pickups is random in this range, so that it meets no rhythm of a poll."""
WARM_UP = 20
"""Pickups before those that count."""
LONGEST_S = 120.0
_THREADS = 8
_NOTES = "BENCH_NOTES"
_LOOK_S = 0.02


class Notes:
    """What the handlers noted: one number after another, in a file for each process."""

    _number = struct.Struct("<q")
    _own: int | None = None

    def __init__(self, folder: Path) -> None:
        self._folder = folder

    @classmethod
    def add(cls, value: int) -> None:
        if cls._own is None:
            path = Path(os.environ[_NOTES]) / str(os.getpid())
            cls._own = os.open(path, os.O_WRONLY | os.O_CREAT | os.O_APPEND, 0o600)
        os.write(cls._own, cls._number.pack(value))

    def by_process(self) -> dict[str, list[int]]:
        return {
            file.name: [value for (value,) in self._number.iter_unpack(file.read_bytes())]
            for file in self._folder.iterdir()
        }

    def count(self) -> int:
        return sum(file.stat().st_size for file in self._folder.iterdir()) // self._number.size

    async def wait_for(self, count: int) -> None:
        deadline = time.monotonic() + LONGEST_S
        while (found := self.count()) < count:
            if time.monotonic() > deadline:
                raise SystemExit(f"only {found} of {count} jobs ran")
            await asyncio.sleep(_LOOK_S)


def handle(data: Data) -> bool:
    """The body of every handler: it does nothing but note when it was called, or how late that was."""
    sent_ns = data.get("sent_ns")
    now_ns = time.monotonic_ns()
    Notes.add(now_ns - sent_ns if sent_ns else now_ns)
    return True


class Peer(ABC):
    """One peer on one store; `where` is a URL or the path of a file."""

    def __init__(self, args: argparse.Namespace) -> None:
        self.where: str = args.where
        self.concurrency: int = args.concurrency
        self.processes: int = args.processes
        self.defaults: bool = args.defaults

    @property
    @abstractmethod
    def version(self) -> str: ...

    @abstractmethod
    async def connect(self) -> None:
        """Be ready to add jobs; make what the store must have."""

    @abstractmethod
    async def add(self, data: Data) -> None: ...

    async def add_while_others_do(self, data: Data) -> None:
        """A single add, made by one of many at the same time."""
        await self.add(data)

    async def add_at_once(self, jobs: int, data: Data) -> None:
        """Single adds by that many producers, as the requests of a web server are: each makes one after the other."""

        async def produce(share: int) -> None:
            for _ in range(share):
                await self.add_while_others_do(data)

        await asyncio.gather(*[produce(len(range(n, jobs, COMPANY))) for n in range(COMPANY)])

    async def add_in_bulk(self, jobs: Sequence[Data]) -> None:
        raise NotImplementedError

    @abstractmethod
    def work(self) -> None:
        """Be a worker until this process is ended."""

    async def disconnect(self) -> None:
        """Leave in good order; nothing, where the process's end is as good."""
        return

    async def drain(self, jobs: int) -> float:
        """Seconds that all jobs take at the pace from the end of the first batch to the last call of a handler.

        A batch is called at one moment: the time it took to come is known of every batch but the first.
        """
        with working(self) as notes:
            await notes.wait_for(jobs)
            times = sorted(at for process in notes.by_process().values() for at in process)
        first_batch = min(self.concurrency * self.processes, jobs // 2)
        return (times[-1] - times[first_batch - 1]) / 1e9 * jobs / (jobs - first_batch)


class ThreadedPeer(Peer):
    """A peer whose producers block: those at the same time are threads."""

    _threads = ThreadPoolExecutor(_THREADS)

    @abstractmethod
    def add_now(self, data: Data) -> None: ...

    async def add(self, data: Data) -> None:
        self.add_now(data)

    async def add_at_once(self, jobs: int, data: Data) -> None:
        list(self._threads.map(self.add_now, [data] * jobs))


# ── the worker's processes ───────────────────────────────────────────────────────────────


@contextlib.contextmanager
def working(peer: Peer) -> Iterator[Notes]:
    """The peer's workers, for the time of a block, and what their handlers note."""
    module = sys.modules["__main__"].__spec__
    assert module is not None
    command = [sys.executable, "-m", module.name, "work", peer.where, "--concurrency", str(peer.concurrency)]
    with tempfile.TemporaryDirectory(prefix="bench-notes-") as folder, contextlib.ExitStack() as ending:
        environment = os.environ | {_NOTES: folder, "PYTHONWARNINGS": "ignore"}
        for _ in range(peer.processes):
            process = subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.DEVNULL, env=environment)
            ending.callback(_end, process)
        yield Notes(Path(folder))


def _end(process: "subprocess.Popen[bytes]") -> None:
    # Nothing is lost that matters: every job has run, and the store goes with the trial.
    process.kill()
    process.wait()


def _end_with_parent() -> None:
    """End this process as soon as the parent closes our input, or is gone."""

    def listen() -> None:
        while os.read(0, 1024):
            pass
        os._exit(0)

    threading.Thread(target=listen, daemon=True).start()


# ── the conversation ─────────────────────────────────────────────────────────────────────


async def _added(peer: Peer, *, way: str, jobs: int, data: Data) -> dict[str, float]:
    start = time.perf_counter()
    if way == "one":
        for _ in range(jobs):
            await peer.add(data)
    elif way == "concurrent":
        await peer.add_at_once(jobs, data)
    else:
        for n in range(0, jobs, COMPANY):
            await peer.add_in_bulk([data] * min(COMPANY, jobs - n))
    return {"seconds": time.perf_counter() - start}


async def _picked_up(peer: Peer, *, samples: int, data: Data) -> dict[str, float]:
    """How late handlers were called, by a worker with nothing else to do."""
    with working(peer) as notes:
        for _ in range(WARM_UP):
            await _send(peer, data)
            await notes.wait_for(1)  # the worker has started
        await notes.wait_for(WARM_UP)
        before = {process: len(noted) for process, noted in notes.by_process().items()}
        for _ in range(samples):
            await _send(peer, data)
        await notes.wait_for(WARM_UP + samples)
        delays = [delay for process, noted in notes.by_process().items() for delay in noted[before.get(process, 0) :]]
    return percentiles(delays)


async def _send(peer: Peer, data: Data) -> None:
    await asyncio.sleep(random.uniform(*GAP_S))
    await peer.add(data | {"sent_ns": time.monotonic_ns()})


def percentiles(delays_ns: Sequence[int]) -> dict[str, float]:
    ordered = sorted(delays_ns)
    return {f"p{share}": ordered[math.ceil(len(ordered) * share / 100) - 1] / 1e6 for share in (50, 99)}


async def _drive(peer: Peer) -> None:
    await peer.connect()
    _say({"version": peer.version})
    while line := await asyncio.to_thread(sys.stdin.readline):
        asked = json.loads(line)
        match asked.pop("do"):
            case "add":
                _say(await _added(peer, **asked))
            case "drain":
                _say({"seconds": await peer.drain(**asked)})
            case "pickup":
                _say(await _picked_up(peer, **asked))
            case other:
                raise SystemExit(f"not understood: {other}")
    await peer.disconnect()


def _say(answer: Mapping[str, Any]) -> None:
    print(json.dumps(answer), flush=True)


def run(main: Coroutine[Any, Any, None]) -> None:
    """Run on uvloop where the peer has it."""
    try:
        import uvloop
    except ImportError:
        asyncio.run(main)
    else:
        uvloop.run(main)


def main(make: type[Peer]) -> None:
    parser = argparse.ArgumentParser()
    parser.add_argument("role", choices=["drive", "work"])
    parser.add_argument("where")
    parser.add_argument("--concurrency", type=int, default=1)
    parser.add_argument("--processes", type=int, default=1)
    parser.add_argument("--defaults", action="store_true", help="keep as many results as by default, not all")
    args = parser.parse_args()
    logging.disable(logging.WARNING)  # nobody reads it, and some log each job
    peer = make(args)
    if args.role == "work":
        _end_with_parent()
        peer.work()
    else:
        run(_drive(peer))
