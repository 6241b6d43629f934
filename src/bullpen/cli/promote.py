"""`bullpen promote QUEUE ID`: let a delayed or parked job run now."""

import argparse

from bullpen.cli.showing import Show
from bullpen.cli.verb import OK, Verb, add_job, opened
from bullpen.queue.queue import Queue


async def run(args: argparse.Namespace, show: Show) -> int:
    async with opened(args) as store:
        job = Queue(store, args.queue).job(args.id)
        await job.promote()
    show.answer({"promoted": True}, f"{job.ref} waits to run")
    return OK


VERB = Verb("promote", "let a delayed or parked job run now", "  bullpen promote orders 17", add_job, run)
