"""`bullpen resume QUEUE`: give out its jobs again."""

import argparse

from bullpen.cli.showing import Show
from bullpen.cli.verb import OK, Verb, add_queue, opened
from bullpen.queue.queue import Queue


async def run(args: argparse.Namespace, show: Show) -> int:
    async with opened(args) as store:
        await Queue(store, args.queue).resume()
    show.answer({"queue": args.queue, "paused": False}, f"{args.queue} goes on")
    return OK


VERB = Verb("resume", "give out the jobs of a paused queue again", "  bullpen resume mail", add_queue, run)
