"""`bullpen cancel QUEUE ID`: end a job that waits, stop one that runs."""

import argparse

from bullpen.cli.showing import Show
from bullpen.cli.verb import OK, Verb, add_job, opened
from bullpen.queue.queue import Queue
from bullpen.stores.base import Cancellation


def arguments(parser: argparse.ArgumentParser) -> None:
    add_job(parser)
    parser.add_argument("--reason", default="", help="passed to the handler and kept with the job")


async def run(args: argparse.Namespace, show: Show) -> int:
    async with opened(args) as store:
        job = Queue(store, args.queue).job(args.id)
        outcome = await job.cancel(args.reason)
    if show.as_json:
        show.document({"outcome": outcome.value})
    elif outcome == Cancellation.CANCELLED:
        show.line(f"{job.ref} is cancelled")
    else:
        show.line(f"{job.ref} runs; its worker has been told to stop it")
    return OK


_EXAMPLES = "  bullpen cancel mail 17\n  bullpen cancel reports 8 --reason 'wrong month'"
VERB = Verb("cancel", "cancel a job that waits or runs", _EXAMPLES, arguments, run)
