"""`bullpen groups QUEUE`: the tenants of a queue, their limits and pauses."""

import argparse
from typing import Any

import msgspec

from bullpen.cli.limits import rate_text, read_rate
from bullpen.cli.showing import Show
from bullpen.cli.tables import Cell, Column
from bullpen.cli.times import span
from bullpen.cli.verb import OK, Verb, add_queue, opened, whole
from bullpen.clock import SYSTEM_CLOCK
from bullpen.job.limits import GroupInfo, GroupLimits
from bullpen.queue.queue import Queue

_EXAMPLES = """
  bullpen groups mail                                   list them
  bullpen groups mail pause acme                        start no more of acme's jobs
  bullpen groups mail resume acme
  bullpen groups mail set acme --weight 3 --concurrency 2
  bullpen groups mail set --rate 10/1 --max-size 10000  for groups without limits of their own
  bullpen groups mail unset acme                        back to the defaults
"""
_SIZES = ("waiting", "active")


def arguments(parser: argparse.ArgumentParser) -> None:
    add_queue(parser)
    actions = ("list", "pause", "resume", "set", "unset")
    parser.add_argument("action", nargs="?", choices=actions, default="list", help="what to do (list)")
    parser.add_argument(
        "group", nargs="?", metavar="GROUP", help="name of the group; `set` without one sets the defaults"
    )
    parser.add_argument("--weight", type=whole(1), metavar="N", help="share of turns (1)")
    parser.add_argument("--concurrency", type=whole(1), metavar="N", help="most jobs at once")
    parser.add_argument("--rate", type=read_rate, metavar="N/SECONDS", help="most starts per window")
    parser.add_argument("--max-size", type=whole(1), metavar="N", help="most that may wait")
    parser.add_argument("--limit", type=whole(1), default=100, metavar="N", help="most groups to show (100)")


async def run(args: argparse.Namespace, show: Show) -> int:
    if args.action in ("pause", "resume", "unset") and args.group is None:
        args.parser.error(f"{args.action}: which group?")
    async with opened(args) as store:
        queue = Queue(store, args.queue)
        await _change(queue, args)
        page = await queue.groups.page(limit=args.limit)
    if show.as_json:
        show.document({"default": _limits(page.default), "groups": [_json(group) for group in page.groups]})
    elif not page.groups:
        show.line(f"{args.queue} has no groups; add a job with a group, e.g. group='{{tenant}}'")
    else:
        columns = [Column("group", shrinks=True), *(Column(size, right=True) for size in _SIZES)]
        columns += [Column("oldest", right=True), Column("weight", right=True), Column("at once", right=True)]
        rows = [_row(group, page.default) for group in page.groups]
        show.table([*columns, Column("rate"), Column("may wait", right=True)], rows)
        if page.next_cursor is not None:
            show.line(f"… and more: --limit {args.limit * 10}")
    return OK


async def _change(queue: Queue, args: argparse.Namespace) -> None:
    groups = queue.groups
    said = {"weight": args.weight, "concurrency": args.concurrency, "rate": args.rate, "max_size": args.max_size}
    match args.action:
        case "pause":
            await groups.pause(args.group)
        case "resume":
            await groups.resume(args.group)
        case "unset":
            await groups.unset(args.group)
        case "set" if args.group is None:
            await groups.set_default(**said)
        case "set":
            await groups.set(args.group, **said)


def _limits(limits: GroupLimits) -> dict[str, Any]:
    return {field: getattr(limits, field) for field in limits.__struct_fields__}


def _json(group: GroupInfo) -> dict[str, Any]:
    return {**msgspec.to_builtins(group), "limits": _limits(group.limits)}


def _row(group: GroupInfo, default: GroupLimits) -> list[Cell]:
    limits = group.limits.over(default)
    now_ms = SYSTEM_CLOCK.now_ms()
    oldest = "–" if group.oldest_ms is None else span(max(0, now_ms - group.oldest_ms))
    state = Cell("paused", "yellow") if group.paused else Cell(oldest)
    if group.closed_until_ms is not None and not group.paused:
        state = Cell(f"closed {span(max(0, group.closed_until_ms - now_ms))}", "yellow")
    return [
        Cell(group.name, "cyan"),
        *(Cell(f"{getattr(group, size):,}") for size in _SIZES),
        state,
        Cell(str(limits.weight or 1)),
        Cell("–" if limits.concurrency is None else f"{limits.concurrency:,}"),
        Cell(rate_text(limits.rate_max, limits.rate_ms)),
        Cell("–" if limits.max_size is None else f"{limits.max_size:,}"),
    ]


VERB = Verb("groups", "list, limit and pause the groups of a queue", _EXAMPLES, arguments, run)
