"""Many listeners, many events: python -m benchmarks.serving.streams [--seconds 300] [--listeners 500] [--rate 20000]

Events are written straight into the logs of some queues on Redis, as workers would: each is the progress of one
of so many jobs, and each job has one listener, who checks that none is missing and all are in order. A log keeps
10,000 events: with `--queues 1` that is half a second, and any longer stall of the machine is told as a gap.
One more listener hears how all queues stand; its updates are counted.
"""

import argparse
import asyncio
import json
import tempfile
import time
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import redis.asyncio

from benchmarks.children import child, module
from benchmarks.redis.server import running_redis
from benchmarks.serving.place import HOST, Served, open_stream, serving
from bullpen import Queue
from bullpen.settings import store_from
from bullpen.stores.base import MAX_EVENTS

QUEUE = "load"
_TICK_S = 0.05
_SAMPLE_S = 5.0


_TELL = """
local first, count, jobs, longest = tonumber(ARGV[1]), tonumber(ARGV[2]), tonumber(ARGV[3]), ARGV[4]
for n = first, first + count - 1 do
  local job, turn = n % jobs, string.format("%d", math.floor(n / jobs))
  local stream = KEYS[job % #KEYS + 1]
  redis.call("XADD", stream, "MAXLEN", "~", longest, "*", "event", "progress", "jobId", "job-" .. job, "data", turn)
end
"""


class Speaker:
    """Writes events at a steady pace, by a script: whoever measures must leave the machine to who is measured."""

    def __init__(self, url: str, queues: Sequence[str], listeners: int, rate: int) -> None:
        self._client = redis.asyncio.Redis.from_url(url)
        self._logs = [f"bull:{queue}:events" for queue in queues]
        self._listeners = listeners
        self._at_once = round(rate * _TICK_S)
        self.told = 0

    async def speak(self, seconds: float) -> float:
        """Until that time is over; how long it took."""
        begin = time.monotonic()
        tell = self._client.register_script(_TELL)
        tick = 0
        while (now := time.monotonic()) < begin + seconds:
            await asyncio.sleep(max(0.0, begin + tick * _TICK_S - now))
            await tell(self._logs, [self.told, self._at_once, self._listeners, MAX_EVENTS])
            self.told += self._at_once
            tick += 1
        return time.monotonic() - begin

    async def store_cpu_s(self) -> float:
        """What the Redis server has taken."""
        told = await self._client.info("cpu")
        return float(told["used_cpu_user"] + told["used_cpu_sys"])

    async def close(self) -> None:
        await self._client.aclose()


async def _count_updates(served: Served, counted: list[float]) -> None:
    """When each update of the view of all queues came."""
    reader, writer = await open_stream(served.port, "/v1/live")
    try:
        while True:
            if b"event: queues" in await reader.readuntil(b"\n\n"):
                counted.append(time.monotonic())
    finally:
        writer.close()


async def _watch_memory(served: Served, sizes: list[float]) -> None:
    while True:
        sizes.append(served.memory_mb())
        await asyncio.sleep(_SAMPLE_S)


async def main(args: argparse.Namespace) -> dict[str, Any]:
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        async with running_redis(folder) as port:
            url = f"redis://{HOST}:{port}/0"
            store = store_from(url)
            await store.open()
            queues = [f"{QUEUE}-{n}" for n in range(args.queues)]
            for queue in queues:
                await Queue(store, queue).add("one")  # so that there is such a queue
            async with serving(folder, url) as served:
                command = module("serving.hearing", served.port, *queues, "--listeners", args.listeners)
                async with child(*command, longest_s=args.seconds + 120) as ears:
                    await ears.answer()  # all listen
                    updates: list[float] = []
                    sizes: list[float] = []
                    speaker = Speaker(url, queues, args.listeners, args.rate)
                    # Ended and awaited below.
                    watching = [
                        asyncio.create_task(_count_updates(served, updates)),
                        asyncio.create_task(_watch_memory(served, sizes)),
                    ]
                    cpu = served.cpu_s(), await speaker.store_cpu_s(), time.process_time()
                    took_s = await speaker.speak(args.seconds)
                    await asyncio.sleep(3)  # what is on its way is heard too
                    server_s, redis_s, speaker_s = (
                        after - before
                        for before, after in zip(
                            cpu, (served.cpu_s(), await speaker.store_cpu_s(), time.process_time()), strict=True
                        )
                    )
                    await speaker.close()
                    for task in watching:
                        task.cancel()
                    await asyncio.gather(*watching, return_exceptions=True)
                    heard = await ears.last_answer()
            await store.close()
    warm = sizes[len(sizes) // 4 :]
    per_100_000 = 100_000 / speaker.told
    return {
        "listeners": args.listeners,
        "queues": args.queues,
        "told_per_s": round(speaker.told / took_s),
        "told": speaker.told,
        "heard": heard["events"],
        "gaps": heard["gaps"],
        "out_of_order": heard["out_of_order"],
        "silent_listeners": heard["silent"],
        "server_cpu": round(server_s / took_s, 2),
        "cpu_s_per_100_000_events": {
            "server": round(server_s * per_100_000, 2),
            "listeners": round(heard["cpu_s"] * per_100_000, 2),
            "speaker": round(speaker_s * per_100_000, 2),
            "redis": round(redis_s * per_100_000, 2),
        },
        "memory_mb_after_a_quarter": round(warm[0], 1),
        "memory_mb_at_the_end": round(warm[-1], 1),
        "updates_of_all_queues_per_s": round(len(updates) / took_s, 2),
        "updates_within_one_second": max((sum(1 for b in updates if a <= b < a + 1) for a in updates), default=0),
    }


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--seconds", type=float, default=300)
    parser.add_argument("--listeners", type=int, default=500)
    parser.add_argument("--rate", type=int, default=20_000)
    parser.add_argument("--queues", type=int, default=10)
    print(json.dumps(asyncio.run(main(parser.parse_args())), indent=2))
