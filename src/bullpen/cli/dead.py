"""`bullpen dead`: the failed jobs of all queues, to look through, retry, remove or take away."""

import argparse
import contextlib
import json
from collections.abc import Awaitable, Callable, Iterator
from pathlib import Path
from typing import Any

import msgspec

from bullpen.cli.jobs import show_jobs
from bullpen.cli.records import job_json
from bullpen.cli.showing import Show
from bullpen.cli.tables import Cell, Column, Row
from bullpen.cli.times import ago, moment_ms
from bullpen.cli.verb import OK, Run, Verb, add_json, add_store, opened, whole
from bullpen.clock import SYSTEM_CLOCK
from bullpen.deadletters.filter import DeadFilter
from bullpen.deadletters.letters import DeadGroup, DeadLetters
from bullpen.errors import BadOption
from bullpen.job.record import FailureKind

Act = Callable[[DeadLetters, DeadFilter, int], Awaitable[int]]

_PORTION = 200
_FIELDS = ("queue", "name", "tenant", "workspace", "tag", "error", "kind", "since_ms", "until_ms", "fingerprint")
_EXAMPLES = """
  bullpen dead                                  the newest of each queue
  bullpen dead --group                          the reasons, most frequent first
  bullpen dead --queue mail --error ConnectionError --since 2h
  bullpen dead retry --fingerprint 3f9a2c41d07e  all of one reason again
  bullpen dead purge --queue mail --until 7d    forget what is a week old
  bullpen dead export --all > dead.jsonl
"""


def arguments(parser: argparse.ArgumentParser) -> None:
    _add_filters(parser, default=None)
    parser.add_argument("--group", action="store_true", help="group by reason, with counts")
    parser.add_argument("--limit", type=whole(1), metavar="N", help="at most N jobs (a list: 20)")
    acts = parser.add_subparsers(dest="act", metavar="ACT", title="acts (without one, the jobs are listed)")
    for name, summary, run_it in (
        ("retry", "run them again, with fresh attempts", retry),
        ("purge", "remove them for good", purge),
        ("export", "write them as JSON lines", export),
    ):
        one = acts.add_parser(name, help=summary, description=f"{summary.capitalize()}: the failed jobs that match.")
        add_store(one)
        add_json(one)
        _add_filters(one, default=argparse.SUPPRESS)
        one.add_argument("--limit", type=whole(1), metavar="N", default=argparse.SUPPRESS, help="at most N jobs")
        one.add_argument("--all", action="store_true", help="all of them; required without a filter")
        if name == "export":
            one.add_argument("--output", metavar="FILE", help="write to this file instead of standard output")
        one.set_defaults(do=run_it)


def _add_filters(parser: argparse.ArgumentParser, *, default: object) -> None:
    group = parser.add_argument_group("which failed jobs")
    group.add_argument("--queue", default=default, help="of this queue")
    group.add_argument("--name", default=default, help="of this name")
    group.add_argument("--tenant", default=default, help="of this tenant")
    group.add_argument("--workspace", default=default, help="of this workspace")
    group.add_argument("--tag", default=default, help="with this tag")
    group.add_argument("--error", default=default, help="part of the message, or the exact type of the error")
    group.add_argument("--kind", default=default, choices=[kind.value for kind in FailureKind], help="of this kind")
    group.add_argument(
        "--since", dest="since_ms", type=moment_ms, default=default, metavar="TIME", help="2h, or a date"
    )
    group.add_argument("--until", dest="until_ms", type=moment_ms, default=default, metavar="TIME", help="before that")
    group.add_argument("--fingerprint", default=default, help="of this group, as --group shows it")


async def run(args: argparse.Namespace, show: Show) -> int:
    act: Run = args.do if args.act else _list_groups if args.group else _list
    return await act(args, show)


def _filter(args: argparse.Namespace) -> DeadFilter:
    return DeadFilter(**{name: getattr(args, name) for name in _FIELDS})


async def _list(args: argparse.Namespace, show: Show) -> int:
    async with opened(args) as store:
        found = await DeadLetters(store, None).find(_filter(args), limit=args.limit or 20)
    if show.as_json:
        show.document([job_json(job) for job in found])
    elif not found:
        show.line("No failed jobs.")
    else:
        show_jobs(show, found, with_queue=True)
    return OK


async def _list_groups(args: argparse.Namespace, show: Show) -> int:
    async with opened(args) as store:
        found = (await DeadLetters(store, None).groups(_filter(args)))[: args.limit]
    if show.as_json:
        show.document([msgspec.to_builtins(group) for group in found])
    elif not found:
        show.line("No failed jobs.")
    else:
        _tell_groups(show, found)
    return OK


def _tell_groups(show: Show, groups: list[DeadGroup]) -> None:
    now_ms = SYSTEM_CLOCK.now_ms()
    columns = [
        Column("fingerprint"),
        Column("count", right=True),
        Column("queue", shrinks=True),
        Column("name", shrinks=True),
        Column("newest", right=True),
        Column("message", shrinks=True),
    ]
    rows: list[Row] = [
        [Cell(g.fingerprint, "cyan"), g.count, g.queue, g.name, ago(g.newest_ms, now_ms), Cell(g.message, "red")]
        for g in groups
    ]
    show.table(columns, rows)


async def retry(args: argparse.Namespace, show: Show) -> int:
    count = await _in_portions(
        args, show, "retrying", lambda letters, wanted, limit: letters.retry(wanted, limit=limit)
    )
    show.answer({"retried": count}, f"{count:,} {'job waits' if count == 1 else 'jobs wait'} again")
    return OK


async def purge(args: argparse.Namespace, show: Show) -> int:
    count = await _in_portions(
        args, show, "removing", lambda letters, wanted, limit: letters.purge(wanted, limit=limit)
    )
    show.answer({"purged": count}, f"{count:,} {'job' if count == 1 else 'jobs'} removed")
    return OK


async def _in_portions(args: argparse.Namespace, show: Show, label: str, verb: Act) -> int:
    """Act on what failed before now, some at a time, so that the bar moves and Ctrl-C stops between."""
    wanted = _checked(args)
    async with opened(args) as store:
        letters = DeadLetters(store, None)
        total = await _count(letters, wanted, args.limit)
        with show.progress(label, total) as bar:
            while bar.done < total:
                some = await verb(letters, wanted, min(_PORTION, total - bar.done))
                if not some:
                    break
                bar.advance(some)
            return bar.done


async def _count(letters: DeadLetters, wanted: DeadFilter, limit: int | None) -> int:
    total = sum(group.count for group in await letters.groups(wanted))
    return total if limit is None else min(total, limit)


def _checked(args: argparse.Namespace) -> DeadFilter:
    """The filter, bounded by now: a job that is retried and fails again is not taken up twice."""
    wanted = _filter(args)
    if wanted == DeadFilter() and not args.all:
        raise BadOption(f"dead {args.act}: give a filter, or --all for every failed job of every queue")
    now_ms = SYSTEM_CLOCK.now_ms() + 1
    return _filter(argparse.Namespace(**{**vars(args), "until_ms": min(wanted.until_ms or now_ms, now_ms)}))


async def export(args: argparse.Namespace, show: Show) -> int:
    wanted = _checked(args)
    async with opened(args) as store:
        letters = DeadLetters(store, None)
        total = await _count(letters, wanted, args.limit)
        # On a terminal the lines themselves are the progress; a bar would stand among them.
        quiet = args.output is None and show.is_terminal
        with _target(args.output) as write, show.progress("exporting", total, hidden=quiet) as bar:
            async for letter in letters.export(wanted):
                if bar.done >= total:
                    break
                (write or show.item)(letter)
                bar.advance(1)
    if args.output and show.as_json:
        show.document({"exported": bar.done, "output": args.output})
    elif args.output:
        show.line(f"{bar.done:,} {'job' if bar.done == 1 else 'jobs'} written to {args.output}")
    return OK


@contextlib.contextmanager
def _target(path: str | None) -> Iterator[Callable[[Any], object] | None]:
    """Writes a line of JSON to the file; None where there is no file."""
    if path is None:
        yield None
        return
    try:
        file = Path(path).open("w", encoding="utf-8")  # noqa: SIM115 - closed below; only opening may be the user's mistake
    except OSError as error:
        raise BadOption(f"output: {path} cannot be written: {error.strerror}") from error
    with file:
        yield lambda letter: file.write(json.dumps(letter, ensure_ascii=False) + "\n")


VERB = Verb("dead", "look through failed jobs; retry, purge, export", _EXAMPLES, arguments, run)
