"""`bullpen pause QUEUE`: give out no more of its jobs."""

import argparse

from bullpen.cli.showing import Show
from bullpen.cli.verb import OK, Verb, add_queue, opened
from bullpen.queue.queue import Queue


async def run(args: argparse.Namespace, show: Show) -> int:
    async with opened(args) as store:
        await Queue(store, args.queue).pause()
    show.answer({"queue": args.queue, "paused": True}, f"{args.queue} is paused: running jobs go on, no new ones start")
    return OK


VERB = Verb("pause", "give out no more jobs of a queue", "  bullpen pause mail", add_queue, run)
