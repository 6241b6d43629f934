"""Job types that the pages are shown with; a gate keeps a job running until the test lets it go."""

import asyncio
from pathlib import Path

from bullpen.app import Bullpen
from bullpen.errors import Unrecoverable
from bullpen.job.options import fixed
from bullpen.worker.context import Context

QUEUE, FLOWS = "work", "flows"


class Shop:
    def __init__(self, store: str | None = None) -> None:
        self.pen = Bullpen(store)
        self.quick = self.pen.job(queue=QUEUE)(quick)
        self.broken = self.pen.job(queue=QUEUE)(broken)
        self.shaky = self.pen.job(queue=QUEUE, attempts=2, backoff=fixed(0.1))(shaky)
        self.gated = self.pen.job(queue=QUEUE)(gated)
        self.stepping = self.pen.job(queue=QUEUE)(stepping)
        self.asking = self.pen.job(queue=QUEUE)(asking)
        self.leaf = self.pen.job(queue=FLOWS)(leaf)
        self.fallen = self.pen.job(queue=FLOWS)(fallen)
        self.root = self.pen.job(queue=FLOWS)(root)


async def quick(ctx: Context, n: int) -> int:
    ctx.log(f"got {n}")
    return 2 * n


async def broken(ctx: Context, why: str) -> None:
    raise Unrecoverable(why)


async def shaky(ctx: Context, n: int) -> int:
    if ctx.attempt == 1:
        raise ConnectionError("away for a moment")
    return n


async def gated(ctx: Context, gate: str) -> str:
    ctx.progress(40)
    ctx.log("waiting at the gate")
    await _open(gate)
    ctx.log("through the gate")
    return "through"


async def _open(gate: str) -> None:
    while not Path(gate).exists():
        await asyncio.sleep(0.02)


async def stepping(ctx: Context, gate: str) -> None:
    await ctx.step("sow", _prepare)
    await _open(f"{gate}-1")
    await ctx.step("reap", _prepare)
    await _open(f"{gate}-2")


async def asking(ctx: Context) -> str:
    await ctx.step("prepare", _prepare)
    answer = await ctx.wait_for("answer", timeout=3600)
    return f"answered {answer}"


async def _prepare() -> str:
    return "prepared"


async def leaf(ctx: Context, n: int) -> int:
    return n


async def fallen(ctx: Context, why: str) -> None:
    raise Unrecoverable(why)


async def root(ctx: Context) -> int:
    return sum((await ctx.child_results()).values())


pen = Shop().pen
"""What `bullpen worker` runs, on the store that its environment names."""
