"""`bullpen signal QUEUE ID NAME [JSON]`: send a signal to a job that waits for it, or will."""

import argparse
import asyncio

from bullpen.cli.enqueue import read_json
from bullpen.cli.showing import Show
from bullpen.cli.verb import OK, Verb, add_job, opened
from bullpen.queue.queue import Queue
from bullpen.stores.base import Delivery

_EXAMPLES = """
  bullpen signal orders 17 approved
  bullpen signal orders 17 approved '{"by": "ada"}'
  cat answer.json | bullpen signal orders order-1 answer -
"""


def arguments(parser: argparse.ArgumentParser) -> None:
    add_job(parser)
    parser.add_argument("name", metavar="NAME", help="which signal: what the job waits for by `ctx.wait_for`")
    parser.add_argument("payload", metavar="JSON", nargs="?", help="its payload; - reads it from standard input")


async def run(args: argparse.Namespace, show: Show) -> int:
    payload = await asyncio.to_thread(read_json, args.payload, "payload")
    async with opened(args) as store:
        job = Queue(store, args.queue).job(args.id)
        delivery = await job.signal(args.name, payload)
    if show.as_json:
        show.document({"delivery": delivery.value})
    elif delivery == Delivery.WOKEN:
        show.line(f"{job.ref} waited for it and goes on")
    else:
        show.line(f"{job.ref} does not wait for it now; it is kept until the job asks")
    return OK


VERB = Verb("signal", "send a signal to a job", _EXAMPLES, arguments, run)
