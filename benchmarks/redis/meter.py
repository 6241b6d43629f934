"""What a Redis server has done so far, by its own account, and what its keys weigh."""

import asyncio
import contextlib
import dataclasses
import time
from collections.abc import AsyncIterator, Iterator
from typing import Any

import redis

from benchmarks.redis.server import HOST
from bullpen.stores.redis.keys import Keys

_CLIENTS_ONLY = {
    "auth", "bzpopmin", "client", "command", "config", "discard", "eval", "evalsha", "exec", "fcall",
    "hello", "multi", "ping", "quit", "script", "select", "subscribe", "xread",
}  # fmt: skip
"""Commands that clients send and scripts do not call. A client may send others as well, a few in a run."""
_OWN = {"info", "memory", "scan"}
"""What the meter itself asks."""
_IDLE_S = 0.5
_REMEMBERED = Keys("bull").request("").encode()
_CHUNK = 2_000


@dataclasses.dataclass(frozen=True, slots=True)
class Reading:
    at: float
    cpu_us: float
    main_thread_us: float
    sent: int
    called: int
    reads: int


@dataclasses.dataclass(frozen=True, slots=True)
class Work:
    """What was done between two readings, for each job."""

    cpu_us: float
    """Of all threads, less what the idle server uses in the same time."""
    main_thread_us: float
    sent: float
    """Commands that clients sent."""
    called: float
    """Commands that scripts called."""
    reads: float
    """Reads of a socket: clients may send in one go what they do not wait for together."""


@dataclasses.dataclass(frozen=True, slots=True)
class Weight:
    jobs: int
    """Bytes of everything that belongs to the queue."""
    remembered: int
    """Bytes of the answers that Bullpen remembers for a minute."""


class Meter:
    def __init__(self, client: "redis.Redis", idle_share: float) -> None:
        self._client = client
        self._idle_share = idle_share

    def read(self) -> Reading:
        info: dict[str, Any] = self._client.info("all")
        calls = {name[8:]: int(stats["calls"]) for name, stats in info.items() if name.startswith("cmdstat_")}
        first_words = {name: name.partition("|")[0] for name in calls}
        sent = sum(n for name, n in calls.items() if first_words[name] in _CLIENTS_ONLY)
        own = sum(n for name, n in calls.items() if first_words[name] in _OWN)
        return Reading(
            time.perf_counter(),
            (info["used_cpu_user"] + info["used_cpu_sys"]) * 1e6,
            (info["used_cpu_user_main_thread"] + info["used_cpu_sys_main_thread"]) * 1e6,
            sent,
            sum(calls.values()) - sent - own,
            int(info["total_reads_processed"]),
        )

    def since(self, start: Reading, jobs: int) -> Work:
        end = self.read()
        idle_us = self._idle_share * (end.at - start.at) * 1e6
        return Work(
            cpu_us=(end.cpu_us - start.cpu_us - idle_us) / jobs,
            main_thread_us=(end.main_thread_us - start.main_thread_us - idle_us) / jobs,
            sent=(end.sent - start.sent) / jobs,
            called=(end.called - start.called) / jobs,
            reads=(end.reads - start.reads - 1) / jobs,
        )

    def weigh(self) -> Weight:
        keys = list(self._client.scan_iter(count=_CHUNK))
        jobs = remembered = 0
        for first in range(0, len(keys), _CHUNK):
            some = keys[first : first + _CHUNK]
            pipeline = self._client.pipeline(transaction=False)
            for key in some:
                pipeline.memory_usage(key, samples=0)
            for key, weight in zip(some, pipeline.execute(), strict=True):
                if key.startswith(_REMEMBERED):
                    remembered += weight or 0
                else:
                    jobs += weight or 0
        return Weight(jobs, remembered)


@contextlib.contextmanager
def _client(port: int) -> Iterator["redis.Redis"]:
    client = redis.Redis(HOST, port)
    try:
        yield client
    finally:
        client.close()


@contextlib.asynccontextmanager
async def meter(port: int) -> AsyncIterator[Meter]:
    """A meter that knows what the server uses when nobody asks it anything."""
    with _client(port) as client:
        unbiased = Meter(client, 0.0)
        start = unbiased.read()
        await asyncio.sleep(_IDLE_S)
        used_us = unbiased.read().cpu_us - start.cpu_us
        yield Meter(client, used_us / (_IDLE_S * 1e6))
