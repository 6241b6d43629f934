"""`bullpen store copy FROM TO`: move queues to another store while they are in use."""

import argparse
import asyncio
import contextlib
from collections.abc import AsyncIterator
from typing import Any

from bullpen.cli.showing import Progress as Bar
from bullpen.cli.showing import Show
from bullpen.cli.verb import OK, Run, Verb, add_json, cancelled_by_signal, require_file
from bullpen.job.names import check_queue_name
from bullpen.moving.mover import Mover, Progress, Watcher
from bullpen.settings import store_from
from bullpen.stores.base import Store

_EXAMPLES = """
  bullpen store copy .bullpen/queue.db redis://localhost
  bullpen store copy redis://localhost sqlite:queue.db --queue mail
  bullpen store copy sqlite:queue.db redis://localhost --follow
"""


def arguments(parser: argparse.ArgumentParser) -> None:
    acts = parser.add_subparsers(dest="act", metavar="ACT", title="acts", required=True)
    summary = "move queues to another store, while they are in use"
    one = acts.add_parser("copy", help=summary, description=f"{summary.capitalize()}.")
    one.add_argument("origin", metavar="FROM", help="address of the store they are in; its queues stay paused")
    one.add_argument("target", metavar="TO", help="address of the store to move them to")
    one.add_argument("--queue", action="append", default=[], metavar="Q", help="only this queue; may be repeated")
    one.add_argument("--follow", action="store_true", help="keep moving what is added later, until Ctrl-C")
    add_json(one)
    one.set_defaults(do=copy)


async def run(args: argparse.Namespace, show: Show) -> int:
    act: Run = args.do
    return await act(args, show)


async def copy(args: argparse.Namespace, show: Show) -> int:
    names = [check_queue_name(name) for name in dict.fromkeys(args.queue)]
    source, target = store_from(args.origin), store_from(args.target)
    require_file(source)
    async with _opened(source), _opened(target):
        total = await _count(source, names)
        with show.progress("moving", 0 if args.follow else total) as bar:
            mover = Mover(source, target, _Teller(show, bar, follow=args.follow))
            if args.follow:
                await _follow(mover, names, show)
            else:
                await mover.move(names)
    if not args.follow:
        _tell_end(mover, show)
    return OK


@contextlib.asynccontextmanager
async def _opened(store: Store) -> AsyncIterator[None]:
    await store.open()
    try:
        yield
    finally:
        await store.close()


async def _count(source: Store, names: list[str]) -> int:
    total = 0
    for name in names or await source.queues():
        counts = await source.counts(name)
        total += counts.unfinished + counts.completed + counts.failed
    return total


async def _follow(mover: Mover, names: list[str], show: Show) -> None:
    show.note("moving, and following what is added late; Ctrl-C ends")
    following = asyncio.create_task(mover.move(names, follow=True))
    with cancelled_by_signal(following):
        await asyncio.wait([following])
    if not following.cancelled():
        following.result()


class _Teller(Watcher):
    def __init__(self, show: Show, bar: Bar, *, follow: bool) -> None:
        self._show = show
        self._bar = bar
        self._follow = follow

    def moved(self, jobs: int) -> None:
        self._bar.advance(jobs)

    def caught_up(self, progress: Progress) -> None:
        """With `--follow` this is the moment to send workers and producers over, so it is told."""
        if not self._follow:
            return
        self._bar.clear()
        if self._show.as_json:
            self._show.item(_json(progress))
        else:
            running = f", {progress.active:,} still run on the old store" if progress.active else ""
            self._show.line(f"{progress.queue} has caught up: {_jobs(progress.moved)} moved{running}")


def _tell_end(mover: Mover, show: Show) -> None:
    if show.as_json:
        show.document([_json(progress) for progress in mover.queues.values()])
    elif not mover.queues:
        show.line("No queues to move.")
    for progress in mover.queues.values() if not show.as_json else ():
        show.line(f"{progress.queue}: {_jobs(progress.moved)} moved")


def _json(progress: Progress) -> dict[str, Any]:
    return {"queue": progress.queue, "moved": progress.moved, "active": progress.active}


def _jobs(count: int) -> str:
    return f"{count:,} {'job' if count == 1 else 'jobs'}"


VERB = Verb("store", "move queues to another store, while they are in use", _EXAMPLES, arguments, run)
