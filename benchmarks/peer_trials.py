"""The trials of what stands beside Bullpen: the limit and the peers."""

from pathlib import Path

from benchmarks.limit import run_limit
from benchmarks.peers.huey_setup import Huey, NotInstalled
from benchmarks.series import Series
from benchmarks.trials import DRAIN, ENQUEUE, Measured, NotMeasured, Trial, pickup_series
from bullpen.stores.sqlite.connection import Sync

LIMIT = "the limit"
HUEY = "huey"
_HUEY_SETTING = "2 processes, sync full"


def limit_series(sync: Sync, batch: int) -> tuple[Series, Series]:
    setting = f"batches of {batch}, sync {sync}"
    return Series(LIMIT, ENQUEUE, setting), Series(LIMIT, DRAIN, f"{setting}, all results kept")


def limiting(script: Path, sync: Sync, batch: int, jobs: int) -> Trial:
    add, drain = limit_series(sync, batch)

    async def measure(folder: Path) -> Measured:
        if not script.exists():
            raise NotMeasured("the script of the limit is absent")
        answer = await run_limit(script, folder / "limit.db", sync=sync.upper(), batch=batch, jobs=jobs)
        return {add: answer["add_per_s"], drain: answer["drain_per_s"]}

    return Trial([add, drain], measure)


HUEY_ENQUEUE = Series(HUEY, ENQUEUE, f"one at a time, {_HUEY_SETTING}")
HUEY_DRAIN = Series(HUEY, DRAIN, f"{_HUEY_SETTING}, all results kept")


def huey_life(huey: Huey | NotInstalled, jobs: int) -> Trial:
    async def measure(folder: Path) -> Measured:
        answer = await _present(huey).ask("life", folder / "huey.db", jobs)
        return {HUEY_ENQUEUE: answer["add_per_s"], HUEY_DRAIN: answer["drain_per_s"]}

    return Trial([HUEY_ENQUEUE, HUEY_DRAIN], measure)


def huey_pickup(huey: Huey | NotInstalled, samples: int) -> Trial:
    p50, p99 = pickup_series(HUEY, f"{_HUEY_SETTING}, a poll of 10 ms")

    async def measure(folder: Path) -> Measured:
        answer = await _present(huey).ask("pickup", folder / "huey.db", samples)
        return {p50: answer["p50"], p99: answer["p99"]}

    return Trial([p50, p99], measure)


def _present(huey: Huey | NotInstalled) -> Huey:
    if isinstance(huey, NotInstalled):
        raise NotMeasured(str(huey))
    return huey
