"""`bullpen dev`: a demo to watch, on a file of its own."""

import argparse
import asyncio
import contextlib
import logging
from collections import deque
from collections.abc import AsyncIterator, Sequence
from pathlib import Path
from typing import TYPE_CHECKING

from bullpen.cli.board import Board, Snapshot, board_lines
from bullpen.cli.live import Ending, keep_drawing
from bullpen.cli.serving import dashboard_of
from bullpen.cli.showing import Show
from bullpen.cli.tables import Style, clean, clip
from bullpen.cli.times import clock_time, seconds
from bullpen.cli.verb import OK, Verb, whole
from bullpen.demo import customers, story
from bullpen.demo.shop import QUEUES, Shop
from bullpen.errors import QueueMissing
from bullpen.job.events import EventKind
from bullpen.settings import store_from
from bullpen.worker.options import WorkerOptions

if TYPE_CHECKING:
    from bullpen.demo.analyst import Analyst

_FILE = ".bullpen/demo.db"
_RECORDS = Path(".bullpen/demo-records.db")
_EVERY_S = 0.25
_COUNTS_EVERY = 20
_TONES: dict[str, Style] = {"good": "green", "bad": "red", "odd": "yellow"}
_KEPT = 30
_LEGEND = """\
Pictures come in bursts. Mail fails now and then and is tried again; a declined
card is not. A report tells how far it is; every second one is cancelled. An
order is a flow; some wait for an approval. An agent analyses the sales: see Runs."""
_NO_SERVER = "For the dashboard: pip install 'bullpen[server]'"
_EXAMPLES = """
  bullpen dev                  until q or Ctrl-C; the dashboard is at http://127.0.0.1:8787
  bullpen dev --port 9000
  bullpen dev --seconds 20

  The jobs are in .bullpen/demo.db. While it runs, look at them from
  another terminal:  bullpen --store .bullpen/demo.db queues
"""


def arguments(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("--seconds", type=seconds, metavar="TIME", help="stop after that time")
    parser.add_argument("--port", type=whole(0), metavar="PORT", help="of the dashboard (8787, or a free one)")


async def run(args: argparse.Namespace, show: Show) -> int:
    # Not what BULLPEN_STORE says: a demo has no business on a store that someone works with.
    address = args.store or _FILE
    logging.getLogger("bullpen").addHandler(logging.NullHandler())  # the view tells what happens
    ending = Ending()
    shop = Shop(store_from(address))
    with ending.listening(args.seconds):
        async with shop.pen:
            # The queues of agents are not the demo's own: on a store that is named they are someone's.
            analyst = None if args.store else _analyst_of(shop)
            queues = sorted({queue for queue, _ in shop.pen.types})
            await _start_anew(shop, queues)
            async with (
                _staffed(shop, queues),
                dashboard_of(shop.pen, _RECORDS, args.port) as url,
                _asked(analyst if url else None),
            ):
                view = View(shop, show, f"Look at {url}" if url else _NO_SERVER)
                if show.is_terminal:
                    await keep_drawing(show, view.draw, ending, _EVERY_S)
                else:
                    await view.tell(ending)
    show.line("The demo has ended; its workers finished or handed back what they ran.")
    return OK


async def _start_anew(shop: Shop, queues: Sequence[str]) -> None:
    for name in queues:
        with contextlib.suppress(QueueMissing):
            await shop.pen.queue(name).obliterate(force=True)
    for name in QUEUES:
        await shop.pen.queue(name).pause()  # makes the queue, so that it is listed from the start
        await shop.pen.queue(name).resume()


def _analyst_of(shop: Shop) -> "Analyst | None":
    """Whom customers ask; None where agents are not installed."""
    try:
        from bullpen.demo.analyst import Analyst
    except ImportError:
        return None
    return Analyst(shop, f"sqlite:{_RECORDS}")


@contextlib.asynccontextmanager
async def _staffed(shop: Shop, queues: Sequence[str]) -> AsyncIterator[None]:
    """Two workers, and customers who add jobs, for the time of a block."""
    workers = [
        shop.pen.worker(queues, WorkerOptions(name=name, concurrency=3, grace=0)) for name in ("worker-1", "worker-2")
    ]
    async with asyncio.TaskGroup() as tasks:
        for worker in workers:
            tasks.create_task(worker.run())
        adding = tasks.create_task(customers.come_and_go(shop))
        try:
            yield
        finally:
            adding.cancel()
            for worker in workers:
                worker.stop_now()


@contextlib.asynccontextmanager
async def _asked(analyst: "Analyst | None") -> AsyncIterator[None]:
    """Somebody asks the analyst now and then, once its records are there."""
    if analyst is None:
        yield
        return
    async with asyncio.TaskGroup() as tasks:
        asking = tasks.create_task(analyst.be_asked())
        try:
            yield
        finally:
            asking.cancel()


class View:
    """The board, and below it what happened, newest first; on no terminal, a line for each thing."""

    def __init__(self, shop: Shop, show: Show, where: str) -> None:
        self._board = Board(shop.pen.store)
        self._show = show
        self._where = where
        """The line that says where the dashboard is."""
        self._progress: dict[str, int] = {}
        """Of the jobs that run and say how far they are, in percent."""
        self._told: deque[tuple[str, str, str]] = deque(maxlen=_KEPT)

    async def draw(self) -> list[str]:
        show = self._show
        snapshot = await self._board.look()
        self._told.extendleft(_sentences(snapshot))
        self._note_progress(snapshot)
        width = show.width or 80
        lines = [
            show.paint("bullpen dev", "bold") + show.paint("  a shop with four queues and two workers; q ends", "dim"),
            *(show.paint(clip(line, width), "dim") for line in _LEGEND.splitlines()),
            show.paint(clip(self._where, width), "bold"),
            "",
            *board_lines(snapshot, show),
            "",
            *(f"{job:<18}{'█' * (done // 5):░<20} {done:3} %" for job, done in self._progress.items()),
            *([""] if self._progress else []),
            show.paint("what happens", "bold"),
        ]
        for when, text, tone in self._told:
            room = width - len(when) - 2
            lines.append(f"{show.paint(when, 'dim')}  {show.paint(clip(text, room), _TONES[tone])}")
        return lines

    def _note_progress(self, snapshot: Snapshot) -> None:
        for queue, event in snapshot.news:
            job = f"{queue}/{event.job_id}"
            if (done := story.progress(event)) is not None:
                self._progress[job] = done
            elif event.kind in (EventKind.COMPLETED, EventKind.FAILED):
                self._progress.pop(job, None)

    async def tell(self, ending: Ending) -> None:
        self._show.line(f"A shop with four queues and two workers. Ctrl-C ends. {self._where}")
        looks = 0
        while not ending.is_set:
            snapshot = await self._board.look()
            for when, text, _ in _sentences(snapshot):
                self._show.line(f"{when}  {text}")
            if looks % _COUNTS_EVERY == 0:
                self._show.raw("".join(f"{line}\n" for line in ["", *board_lines(snapshot, self._show), ""]))
            looks += 1
            await ending.within(_EVERY_S)


def _sentences(snapshot: Snapshot) -> list[tuple[str, str, str]]:
    """What is worth telling, oldest first: when, what, and in which tone."""
    news = sorted(snapshot.news, key=lambda one: one[1].at_ms)
    found = [(event.at_ms, story.sentence(queue, event)) for queue, event in news]
    return [(clock_time(at_ms)[:8], clean(told[0]), told[1]) for at_ms, told in found if told is not None]


VERB = Verb(
    "dev", "watch a demo: queues, workers, retries, failures", _EXAMPLES, arguments, run, reads=False, serves=True
)
