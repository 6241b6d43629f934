"""Drives huey on SQLite in its best set-up; runs in huey's own environment and imports nothing of ours.

    huey_peer.py life FILE JOBS        adds one by one, then drains: {"add_per_s", "drain_per_s"}
    huey_peer.py pickup FILE SAMPLES   an idle consumer: {"p50", "p99"} in milliseconds
    huey_peer.py consume FILE 0        the consumer, until SIGINT; started by the other two

Two worker processes, WAL, SQLite's default sync (FULL), every result kept, a poll of 10 ms. A
handler writes its times into a small file of its process: about a microsecond beside the
millisecond of a job, and nobody has to ask the database while it is measured.
"""

import argparse
import contextlib
import json
import math
import os
import random
import signal
import struct
import subprocess
import sys
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from huey import SqliteHuey  # type: ignore[import-not-found]  # only in its own environment

WORKERS = 2
POLL_S = 0.01
WARM_UP = 10
GAP_S = (0.010, 0.030)
LONGEST_S = 120.0
PAYLOAD_BYTES = 200

parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
parser.add_argument("role", choices=["life", "pickup", "consume"])
parser.add_argument("path", type=Path)
parser.add_argument("how_many", type=int)
args = parser.parse_args()

path: Path = args.path
huey = SqliteHuey("bench", filename=str(path), journal_mode="wal")


class Notes:
    """The times at which this process started its jobs, one number after another in a file."""

    _number = struct.Struct("<q")

    def __init__(self) -> None:
        self._fd: int | None = None

    def add(self, value: int) -> None:
        if self._fd is None:
            self._fd = os.open(f"{path}-notes-{os.getpid()}", os.O_WRONLY | os.O_CREAT | os.O_APPEND)
        os.write(self._fd, self._number.pack(value))

    @classmethod
    def _files(cls) -> Iterator[Path]:
        return path.parent.glob(f"{path.name}-notes-*")

    @classmethod
    def count(cls) -> int:
        return sum(file.stat().st_size for file in cls._files()) // cls._number.size

    @classmethod
    def all(cls) -> list[list[int]]:
        return [[value for (value,) in cls._number.iter_unpack(file.read_bytes())] for file in cls._files()]


notes = Notes()


def _noop(_: dict[str, Any]) -> bool:
    notes.add(time.monotonic_ns())
    return True


def _catch(data: dict[str, Any]) -> bool:
    notes.add(time.time_ns() - data["sent_ns"])
    return True


noop = huey.task()(_noop)
catch = huey.task()(_catch)


def payload(**fields: int) -> dict[str, Any]:
    bare = len(json.dumps({**fields, "pad": ""}, separators=(",", ":")))
    return {**fields, "pad": "x" * (PAYLOAD_BYTES - bare)}


@contextlib.contextmanager
def consumer() -> Iterator[None]:
    process = subprocess.Popen([sys.executable, __file__, "consume", str(path), "0"])
    try:
        yield
    finally:
        process.send_signal(signal.SIGINT)
        try:
            process.wait(10)
        except subprocess.TimeoutExpired:
            process.kill()
            process.wait()


def wait_for(count: int) -> None:
    deadline = time.monotonic() + LONGEST_S
    while Notes.count() < count:
        if time.monotonic() > deadline:
            raise SystemExit(f"only {Notes.count()} of {count} jobs ran")
        time.sleep(0.05)


def life(jobs: int) -> dict[str, float]:
    start = time.perf_counter()
    for n in range(jobs):
        noop(payload(n=n))
    added = time.perf_counter()
    with consumer():
        wait_for(jobs)
    times = [at for process in Notes.all() for at in process]
    return {"add_per_s": jobs / (added - start), "drain_per_s": jobs / ((max(times) - min(times)) / 1e9)}


def pickup(samples: int) -> dict[str, float]:
    with consumer():
        time.sleep(1)
        for _ in range(WARM_UP + samples):
            time.sleep(random.uniform(*GAP_S))
            catch(payload(sent_ns=time.time_ns()))
        wait_for(WARM_UP + samples)
    # Each process has its own file, so the first samples of each are its warm-up.
    ordered = sorted(delay for process in Notes.all() for delay in process[WARM_UP // WORKERS :])
    return {f"p{share}": ordered[math.ceil(len(ordered) * share / 100) - 1] / 1e6 for share in (50, 99)}


def consume() -> None:
    huey.create_consumer(
        workers=WORKERS,
        worker_type="process",
        initial_delay=POLL_S,
        max_delay=POLL_S,
        periodic=False,
        scheduler_interval=60,
    ).run()


if __name__ == "__main__":
    if args.role == "consume":
        consume()
    else:
        print(json.dumps({"life": life, "pickup": pickup}[args.role](args.how_many)))
