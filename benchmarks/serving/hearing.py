"""Child: many listeners of one server, each on a job of its own, who check what they hear.

It says `ready` once all listen, and ends with what they heard when its input closes.
"""

import argparse
import asyncio
import contextlib
import functools
import re
import time
from collections.abc import Callable

from benchmarks.children import run, say, when_input_closes
from benchmarks.serving.place import HOST, request

_VALUE = re.compile(rb'"value":(\d+)')
_LOOK_S = 1.0
"""What came is looked at in bulk, so that who listens leaves the machine to who is listened to."""


class Ear(asyncio.Protocol):
    """One listener: keeps what comes until it is looked at, then checks that none is missing and all are in order."""

    def __init__(self, path: str, on_ready: Callable[[], None]) -> None:
        self.events = 0
        self.gaps = 0
        self.out_of_order = 0
        self._path = path
        self._on_ready = on_ready
        self._is_ready = False
        self._last: int | None = None
        self._chunks: list[bytes] = []

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        assert hasattr(transport, "write")
        transport.write(request(self._path, keep=True))

    def data_received(self, data: bytes) -> None:
        self._chunks.append(data)
        if not self._is_ready and b"event: beat\n" in b"".join(self._chunks):
            self._is_ready = True
            self._on_ready()

    def look(self) -> None:
        whole, end, rest = b"".join(self._chunks).rpartition(b"\n\n")
        self._chunks = [rest]
        if end:
            self._take(whole)

    def _take(self, frames: bytes) -> None:
        self.gaps += frames.count(b"event: gap")
        values = [int(value) for value in _VALUE.findall(frames)]
        if not values:
            return
        first = values[0] if self._last is None else self._last + 1
        if values != list(range(first, first + len(values))):
            steps = zip([first - 1, *values], values, strict=False)
            self.out_of_order += sum(1 for before, after in steps if after != before + 1)
        self._last = values[-1]
        self.events += len(values)


def _same(ear: Ear) -> Ear:
    return ear


async def main(args: argparse.Namespace) -> None:
    done = asyncio.Event()
    when_input_closes(done.set)
    ready = asyncio.Semaphore(0)
    where = [args.queues[n % len(args.queues)] for n in range(args.listeners)]
    ears = [Ear(f"/v1/events?queue={queue}&job=job-{n}", ready.release) for n, queue in enumerate(where)]
    loop = asyncio.get_running_loop()
    transports = [(await loop.create_connection(functools.partial(_same, ear), HOST, args.port))[0] for ear in ears]
    for _ in ears:
        await ready.acquire()
    say({"ready": True})
    begun_s = time.process_time()
    while not done.is_set():
        for ear in ears:
            ear.look()
        with contextlib.suppress(TimeoutError):
            async with asyncio.timeout(_LOOK_S):
                await done.wait()
    for transport in transports:
        transport.abort()
    for ear in ears:
        ear.look()
    say(
        {
            "events": sum(ear.events for ear in ears),
            "gaps": sum(ear.gaps for ear in ears),
            "out_of_order": sum(ear.out_of_order for ear in ears),
            "silent": sum(1 for ear in ears if ear.events == 0),
            "cpu_s": time.process_time() - begun_s,
        }
    )


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("port", type=int)
    parser.add_argument("queues", nargs="+")
    parser.add_argument("--listeners", type=int, required=True)
    run(main(parser.parse_args()))
