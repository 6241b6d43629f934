"""`bullpen retry QUEUE ID | --all`: run finished jobs again."""

import argparse

from bullpen.cli.showing import Show
from bullpen.cli.verb import OK, Verb, add_queue, opened
from bullpen.errors import BadOption
from bullpen.job.state import State
from bullpen.queue.queue import Queue

_PORTION = 500
_EXAMPLES = """
  bullpen retry mail 17                   one job, with fresh attempts
  bullpen retry mail --all                all that failed
  bullpen retry mail --all --state completed
"""


def arguments(parser: argparse.ArgumentParser) -> None:
    add_queue(parser)
    parser.add_argument("id", metavar="ID", nargs="?", help="id of one finished job")
    parser.add_argument("--all", action="store_true", help="all failed jobs, oldest first")
    parser.add_argument("--state", choices=["failed", "completed"], default="failed", help="with --all: which (failed)")


async def run(args: argparse.Namespace, show: Show) -> int:
    if (args.id is None) != args.all:
        raise BadOption("retry: give the ID of a job, or --all")
    async with opened(args) as store:
        queue = Queue(store, args.queue)
        if args.all:
            count = await _retry_all(queue, State(args.state), show)
        else:
            await queue.job(args.id).retry()
            count = 1
    show.answer({"retried": count}, f"{count:,} {'job waits' if count == 1 else 'jobs wait'} again in {args.queue}")
    return OK


async def _retry_all(queue: Queue, state: State, show: Show) -> int:
    # Only as many as there were: jobs that fail again meanwhile must not make this endless.
    total = getattr(await queue.counts(), state.value)
    with show.progress("retrying", total) as bar:
        while bar.done < total:
            moved = await queue.retry_all(state, limit=min(_PORTION, total - bar.done))
            if not moved:
                break
            bar.advance(moved)
        return bar.done


VERB = Verb("retry", "run finished jobs again, with fresh attempts", _EXAMPLES, arguments, run)
