"""Worker factories for supervised processes; the store and the fleet's habits come by environment."""

import asyncio
import os
import signal
import time
from pathlib import Path

from bullpen import Context, Worker, WorkerOptions
from bullpen.settings import store_from


async def quick_or_slow(ctx: Context) -> int:
    """Quick jobs end when the file they name appears; slow ones never do. Each leaves a file when it begins."""
    Path(ctx.data["begun"], ctx.id).touch()
    if ctx.data.get("slow"):
        await asyncio.Event().wait()
    while not os.path.exists(ctx.data["until"]):  # noqa: PTH110
        await asyncio.sleep(0.01)
    return os.getpid()


waits, told = asyncio.Event(), asyncio.Event()


async def misbehave(ctx: Context) -> int:
    match ctx.data["how"]:
        case "block for ever":
            while True:
                time.sleep(1)
        case "kill":
            os.kill(os.getpid(), signal.SIGKILL)
        case "wait":
            await asyncio.Event().wait()
        case "end when told":
            waits.set()
            await told.wait()
        case "tell, then block for ever":
            await waits.wait()
            told.set()
            await asyncio.sleep(0)  # the other ends in this turn of the loop, which is the last
            while True:
                time.sleep(1)
        case "lag":
            for _ in range(9):
                time.sleep(0.4)  # late, and far from blocked, on a busy machine too
                await asyncio.sleep(0.01)
        case "take a second":
            ctx.log("begun")
            await asyncio.sleep(1)
    return os.getpid()


def stubborn_thread(ctx: Context) -> int:
    if ctx.data["how"] == "never return":
        while True:
            time.sleep(1)
    return os.getpid()


def make_worker() -> Worker:
    options = WorkerOptions(concurrency=20, grace=float(os.environ.get("FLEET_GRACE", "30")))
    return Worker(store_from(), {"work": quick_or_slow}, options)


def make_misbehaving_worker() -> Worker:
    options = WorkerOptions(
        concurrency=2,
        lease=1,
        timeout_grace=0.3,
        max_stalled=int(os.environ.get("FLEET_MAX_STALLED", "2")),
        max_jobs=int(os.environ["FLEET_MAX_JOBS"]) if "FLEET_MAX_JOBS" in os.environ else None,
        max_memory_mb=int(os.environ["FLEET_MAX_MEMORY"]) if "FLEET_MAX_MEMORY" in os.environ else None,
    )
    return Worker(store_from(), {"work": misbehave, "threads": stubborn_thread}, options)
