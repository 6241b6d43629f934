"""`bullpen limits QUEUE`: what limits a queue as a whole, and how that is changed."""

import argparse

from bullpen.cli.showing import Show
from bullpen.cli.times import span
from bullpen.cli.verb import OK, Verb, add_queue, opened, whole
from bullpen.clock import SYSTEM_CLOCK
from bullpen.job.limits import NO_LIMITS, QueueStanding, Rate
from bullpen.job.options import rate
from bullpen.queue.queue import Queue

_EXAMPLES = """
  bullpen limits mail                            show them
  bullpen limits mail --concurrency 10           at most 10 run at once, on all workers together
  bullpen limits mail --rate 100/60              at most 100 start in 60 seconds
  bullpen limits mail --none                     lift them

  What is not said is lifted: give both options to keep both.
"""


def read_rate(text: str) -> Rate:
    """For argparse: `100/60` is a hundred in sixty seconds, `100` in one."""
    most, _, per = text.partition("/")
    try:
        return rate(int(most), per=float(per or 1))
    except ValueError as error:
        raise argparse.ArgumentTypeError(f"{text!r} is not a rate such as 100/60, a hundred in a minute") from error


def rate_text(rate_max: int | None, rate_ms: int | None) -> str:
    return "–" if rate_max is None or rate_ms is None else f"{rate_max:,} in {span(rate_ms)}"


def arguments(parser: argparse.ArgumentParser) -> None:
    add_queue(parser)
    parser.add_argument("--concurrency", type=whole(1), metavar="N", help="most jobs at once")
    parser.add_argument("--rate", type=read_rate, metavar="N/SECONDS", help="most starts per window")
    parser.add_argument("--none", action="store_true", help="lift all limits")


async def run(args: argparse.Namespace, show: Show) -> int:
    async with opened(args) as store:
        queue = Queue(store, args.queue)
        if args.concurrency is not None or args.rate is not None or args.none:
            await queue.set_limits(concurrency=args.concurrency, rate=args.rate)
        standing = await queue.limits()
    if show.as_json:
        show.document({"queue": args.queue, **_json(standing)})
    else:
        _tell(args.queue, standing, show)
    return OK


def _json(standing: QueueStanding) -> dict[str, int | None]:
    limits = standing.limits
    names = ("concurrency", "rate_max", "rate_ms")
    return {**{name: getattr(limits, name) for name in names}, "closed_until_ms": standing.closed_until_ms}


def _tell(queue: str, standing: QueueStanding, show: Show) -> None:
    limits = standing.limits
    if limits == NO_LIMITS:
        show.line(f"{queue} has no limits")
    else:
        concurrency = "–" if limits.concurrency is None else f"{limits.concurrency:,}"
        show.line(f"{queue}: at once {concurrency}, starts {rate_text(limits.rate_max, limits.rate_ms)}")
    if standing.closed_until_ms is not None:
        left_ms = max(0, standing.closed_until_ms - SYSTEM_CLOCK.now_ms())
        show.line(f"it gives out nothing for {span(left_ms)}: its rate is used up, or a handler said so")


VERB = Verb("limits", "show or change what limits a queue", _EXAMPLES, arguments, run)
