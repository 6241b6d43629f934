"""How many jobs a second the read model keeps up with: python -m benchmarks.read_model [jobs]

Jobs are added, run and completed in rounds; between them the feeder reads what happened, and only its
own time is counted. Records are in a SQLite file, or where BULLPEN_RECORDS says; jobs likewise.
"""

import asyncio
import os
import sys
import tempfile
import time
import uuid

from bullpen import NewJob
from bullpen.job.spec import JobSpec
from bullpen.job.verdicts import Completed, Settlement
from bullpen.records.records import Records
from bullpen.settings import store_from
from bullpen.stores.base import Store

ROUND = 2_000
AT_ONCE = 500


async def _round(store: Store, number: int) -> None:
    """Add and run jobs; each tells four events."""
    for start in range(0, ROUND, AT_ONCE):
        jobs = [
            NewJob("bench", f"type-{n % 5}", b'{"user_id":42}', spec=JobSpec(tenant=f"t{n % 20}", tags=("bench",)))
            for n in range(number * ROUND + start, number * ROUND + start + AT_ONCE)
        ]
        await store.add(jobs, request=uuid.uuid4().hex)
        request = uuid.uuid4().hex
        claimed = await store.claim({"bench": AT_ONCE}, worker="w", lease_ms=60_000, request=request)
        await store.settle([Settlement(job.lease, Completed()) for job in claimed.jobs], request=f"{request}-s")


async def main(how_many: int) -> None:
    with tempfile.TemporaryDirectory() as folder:
        store = store_from(os.environ.get("BULLPEN_STORE") or f"sqlite:{folder}/queue.db")
        await store.open()
        address = os.environ.get("BULLPEN_RECORDS") or f"sqlite:{folder}/records.db"
        async with await Records.open(address) as records:
            feeder = records.feeder(store)
            await feeder.catch_up()
            wall_s = cpu_s = 0.0
            for number in range(how_many // ROUND):
                await _round(store, number)
                wall, cpu = time.perf_counter(), time.process_time()
                await feeder.catch_up()
                wall_s, cpu_s = wall_s + time.perf_counter() - wall, cpu_s + time.process_time() - cpu
            print(f"{how_many:,} jobs: {how_many / wall_s:,.0f}/s by the clock, {how_many / cpu_s:,.0f}/s of CPU time")
            print(await records.jobs.counts())
        await store.close()


if __name__ == "__main__":
    asyncio.run(main(int(sys.argv[1]) if len(sys.argv) > 1 else 20_000))
