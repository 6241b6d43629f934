"""Workers of a flow that are killed at any moment: `python -m tests.chaos.flow_actors <address of the store>`."""

import asyncio
import random
import sys

from bullpen import Bullpen, Context, NewJob, WorkerOptions, keep

QUEUES = tuple(f"parts-{n}" for n in range(10))
ROOTS = "roots"
FAN_OUT = "fan-out"
TARGETS = tuple(f"target-{n}" for n in range(5))


def application(address: str) -> Bullpen:
    pen = Bullpen(address)

    async def part(ctx: Context, number: int) -> int:
        await asyncio.sleep(random.random())  # its work: long enough that many kills fall among them
        return number * 2

    async def root(ctx: Context) -> list[int]:
        return list((await ctx.child_results()).values())

    async def dynamic(ctx: Context, parts: int) -> list[int]:
        """Adds its children itself, and waits for them: killed before, between and after."""
        await ctx.add_children([prepared(pen, n) for n in range(parts)])
        await ctx.await_children()
        return list((await ctx.child_results()).values())

    async def fan_out(ctx: Context, number: int) -> None:
        """Completes with five followers in five queues."""
        await asyncio.sleep(random.random() / 10)
        for target in TARGETS:
            ctx.then(pen.queue(target).prepare("follower", {"of": number}))

    for queue in QUEUES:
        pen.job(queue=queue, name="part", keep_completed=keep(0))(part)
    pen.job(queue=ROOTS)(root)
    pen.job(queue=ROOTS)(dynamic)
    pen.job(queue=FAN_OUT, keep_completed=keep())(fan_out)
    return pen


def prepared(pen: Bullpen, number: int) -> NewJob:
    return pen.types[QUEUES[number % len(QUEUES)], "part"].prepare(number)


async def work(address: str) -> None:
    # Crashes must not fail a job here.
    options = WorkerOptions(max_stalled=1_000, lease=2, concurrency=3)
    await application(address).worker((), options).run(signals=True)


if __name__ == "__main__":
    asyncio.run(work(sys.argv[1]))
