"""How many jobs a second the read model keeps up with.

    python -m benchmarks.read_model [JOBS] [--plain] [--kept] [--store redis]

Jobs are added, run and completed in rounds; between them the feeder reads what happened, and only its
own time is counted. Each job has a tag, so that it is looked at, unless it is plain; a thousand that ended are
kept, or all of them, so that each has a row. Records are in a SQLite file, or where BULLPEN_RECORDS says.
Jobs are in a SQLite file, or in a Redis server of our own, or where BULLPEN_STORE says.
"""

import argparse
import asyncio
import contextlib
import os
import tempfile
import time
import uuid
from pathlib import Path

from benchmarks.redis.server import HOST, running_redis
from bullpen import NewJob
from bullpen.job.spec import KEEP_COMPLETED, JobSpec, Keep
from bullpen.job.verdicts import Completed, Settlement
from bullpen.records.records import Records
from bullpen.settings import store_from
from bullpen.stores.base import Store

ROUND = 2_000
AT_ONCE = 500


class Rounds:
    """Jobs that are added and run; each tells four events."""

    def __init__(self, store: Store, *, is_plain: bool, is_kept: bool) -> None:
        tags = () if is_plain else ("bench",)
        keep = Keep() if is_kept else KEEP_COMPLETED
        self._specs = [JobSpec(tenant=f"t{n}", tags=tags, keep_completed=keep) for n in range(20)]
        self._store = store

    async def go_on(self) -> None:
        for _ in range(0, ROUND, AT_ONCE):
            specs = self._specs
            jobs = [
                NewJob("bench", f"type-{n % 5}", b'{"user_id":42}', spec=specs[n % len(specs)]) for n in range(AT_ONCE)
            ]
            await self._store.add(jobs, request=uuid.uuid4().hex)
            request = uuid.uuid4().hex
            claimed = await self._store.claim({"bench": AT_ONCE}, worker="w", lease_ms=60_000, request=request)
            ends = [Settlement(job.lease, Completed()) for job in claimed.jobs]
            await self._store.settle(ends, request=f"{request}-s")


async def main(how_many: int, kind: str, *, is_plain: bool, is_kept: bool) -> None:
    async with contextlib.AsyncExitStack() as stack:
        folder = Path(stack.enter_context(tempfile.TemporaryDirectory()))
        place = os.environ.get("BULLPEN_STORE") or f"sqlite:{folder}/queue.db"
        if kind == "redis":
            place = f"redis://{HOST}:{await stack.enter_async_context(running_redis(folder))}"
        store = store_from(place)
        await store.open()
        stack.push_async_callback(store.close)
        address = os.environ.get("BULLPEN_RECORDS") or f"sqlite:{folder}/records.db"
        records = await stack.enter_async_context(await Records.open(address))
        rounds = Rounds(store, is_plain=is_plain, is_kept=is_kept)
        feeder = records.feeder(store)
        await feeder.catch_up()
        wall_s = cpu_s = 0.0
        for _ in range(how_many // ROUND):
            await rounds.go_on()
            wall, cpu = time.perf_counter(), time.process_time()
            await feeder.catch_up()
            wall_s, cpu_s = wall_s + time.perf_counter() - wall, cpu_s + time.process_time() - cpu
        print(f"{how_many:,} jobs: {how_many / wall_s:,.0f}/s by the clock, {how_many / cpu_s:,.0f}/s of CPU time")
        print(await records.jobs.counts())


if __name__ == "__main__":
    asked = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    asked.add_argument("jobs", nargs="?", type=int, default=20_000)
    asked.add_argument("--plain", action="store_true", help="jobs without a tag, of which events tell all")
    asked.add_argument("--kept", action="store_true", help="all jobs that ended are kept")
    asked.add_argument("--store", choices=["sqlite", "redis"], default="sqlite")
    given = asked.parse_args()
    asyncio.run(main(given.jobs, given.store, is_plain=given.plain, is_kept=given.kept))
