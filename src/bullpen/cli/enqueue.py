"""`bullpen enqueue QUEUE NAME [JSON]`: add a job, and wait for its result if asked."""

import argparse
import asyncio
import json
import sys
from typing import Any, cast

from bullpen.cli.showing import Show
from bullpen.cli.times import seconds
from bullpen.cli.verb import OK, Verb, add_queue, opened, whole
from bullpen.errors import BadData
from bullpen.job.options import OptionFields
from bullpen.jobtypes.declaring import NORMAL_PRIORITY
from bullpen.queue.queue import Queue
from bullpen.stores.base import AddOutcome

_EXAMPLES = """
  bullpen enqueue mail welcome '{"user_id": 42}'
  bullpen enqueue mail welcome '{"user_id": 42}' --delay 5m --attempts 3
  bullpen enqueue mail digest --id digest-2026-01-31 --tenant acme --tag weekly
  cat big.json | bullpen enqueue mail import -
  bullpen enqueue mail welcome '{"user_id": 42}' --wait --within 30
"""
_WORDS = {
    AddOutcome.ADDED: "added",
    AddOutcome.DUPLICATE: "nothing added, the id is taken:",
    AddOutcome.DEDUPLICATED: "nothing added, this one stands for the same subject:",
    AddOutcome.REPLACED: "replaced a delayed job by",
    AddOutcome.KEPT_LAST: "kept until the running job ends:",
}


def arguments(parser: argparse.ArgumentParser) -> None:
    add_queue(parser)
    parser.add_argument("name", metavar="NAME", help="name of the job, which selects its handler")
    parser.add_argument("data", metavar="JSON", nargs="?", help="its data ({}); - reads it from standard input")
    parser.add_argument("--delay", type=seconds, metavar="TIME", help="do not start before 30, 5m, 2h, 1d …")
    parser.add_argument("--priority", type=whole(0), default=NORMAL_PRIORITY, metavar="N", help=_PRIORITY)
    parser.add_argument("--attempts", type=whole(1), metavar="N", help="the first try and all retries (1)")
    parser.add_argument("--backoff", type=seconds, metavar="TIME", help="wait between attempts")
    parser.add_argument("--timeout", type=seconds, metavar="TIME", help="the longest an attempt may run")
    parser.add_argument("--id", help="an id of your own; a second job with it changes nothing")
    parser.add_argument("--dedup", metavar="SUBJECT", help="add nothing while there is a job for this subject")
    parser.add_argument("--tenant", help="whose job it is")
    parser.add_argument("--workspace", help="the part of the tenant that it belongs to")
    parser.add_argument("--group", help="the group in which it waits its turn; {tenant} is the tenant")
    parser.add_argument("--tag", action="append", default=[], metavar="TAG", dest="tags", help="may be repeated")
    parser.add_argument(
        "--wait", action="store_true", help="wait for the job to end; show its result, or fail if it fails"
    )
    parser.add_argument("--within", type=seconds, metavar="TIME", help="with --wait: the longest to wait")


_PRIORITY = f"lower first, {NORMAL_PRIORITY} as for job types; 0 is none, which runs before all others"


async def run(args: argparse.Namespace, show: Show) -> int:
    data = await asyncio.to_thread(read_json, args.data, "data")
    async with opened(args, create=True) as store:
        job = await Queue(store, args.queue).add(args.name, data, **_options(args))
        outcome = job.outcome or AddOutcome.ADDED
        answer: dict[str, Any] = {"queue": args.queue, "id": job.id, "outcome": outcome.value}
        if not show.as_json:
            show.line(f"{_WORDS.get(outcome, outcome.value)} {job.ref}")
        if args.wait:
            answer["result"] = await job.result(timeout=args.within)
            if not show.as_json:
                show.raw(json.dumps(answer["result"], indent=2, ensure_ascii=False) + "\n")
    if show.as_json:
        show.document(answer)
    return OK


def read_json(text: str | None, what: str) -> Any:
    """An argument that is JSON, or - for the input."""
    if text is None:
        return None
    try:
        return json.loads(sys.stdin.read() if text == "-" else text)
    except ValueError as error:
        raise BadData(f"{what} is not JSON: {error}; put it in single quotes, as in '{{\"user_id\": 42}}'") from error


def _options(args: argparse.Namespace) -> OptionFields:
    names = (
        "delay",
        "priority",
        "attempts",
        "backoff",
        "timeout",
        "id",
        "dedup",
        "tenant",
        "workspace",
        "group",
        "tags",
    )
    given = {name: value for name in names if (value := getattr(args, name)) not in (None, [])}
    return cast(OptionFields, given)


VERB = Verb("enqueue", "add a job to a queue", _EXAMPLES, arguments, run)
