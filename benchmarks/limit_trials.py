"""The trials of the limit, on both stores."""

from pathlib import Path

from benchmarks.limit import run_limit, run_limit_on_redis
from benchmarks.redis.server import HOST, running_redis
from benchmarks.series import Series
from benchmarks.trials import CPU, DRAIN, ENQUEUE, Measured, NotMeasured, Trial
from bullpen.stores.sqlite.connection import Sync

LIMIT = "the limit"
BATCH = 50
REDIS_ENQUEUE = Series(LIMIT, "enqueue, Redis", f"batches of {BATCH}")
REDIS_DRAIN = Series(LIMIT, "drain, Redis", f"batches of {BATCH}, two under way")
REDIS_CPU = Series(LIMIT, CPU, f"drain, batches of {BATCH}", "µs/job")


def sqlite_series(sync: Sync) -> tuple[Series, Series]:
    setting = f"batches of {BATCH}, sync {sync}"
    return Series(LIMIT, ENQUEUE, setting), Series(LIMIT, DRAIN, f"{setting}, all results kept")


def on_sqlite(script: Path, sync: Sync, jobs: int) -> Trial:
    add, drain = sqlite_series(sync)

    async def measure(folder: Path) -> Measured:
        _check(script)
        answer = await run_limit(script, folder / "limit.db", sync=sync.upper(), batch=BATCH, jobs=jobs)
        return {add: answer["add_per_s"], drain: answer["drain_per_s"]}

    return Trial([add, drain], measure)


def on_redis(script: Path, jobs: int) -> Trial:
    async def measure(folder: Path) -> Measured:
        _check(script)
        async with running_redis(folder) as port:
            answer = await run_limit_on_redis(script, f"redis://{HOST}:{port}/0", batch=BATCH, jobs=jobs)
        return {
            REDIS_ENQUEUE: answer["add_per_s"],
            REDIS_DRAIN: answer["drain_per_s"],
            REDIS_CPU: answer["store_us_per_job"],
        }

    return Trial([REDIS_ENQUEUE, REDIS_DRAIN, REDIS_CPU], measure)


def _check(script: Path) -> None:
    if not script.exists():
        raise NotMeasured("the script of the limit is absent")
