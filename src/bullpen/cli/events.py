"""`bullpen events QUEUE`: what happened, and what happens."""

import argparse
import asyncio
import json
from collections.abc import AsyncIterator

from bullpen.cli.records import error_words, event_json, payload
from bullpen.cli.showing import Show
from bullpen.cli.tables import Style, clean, clip
from bullpen.cli.times import clock_time, span
from bullpen.cli.verb import OK, Verb, add_queue, cancelled_by_signal, opened
from bullpen.job.events import Event, EventKind
from bullpen.queue.events import FROM_START, Gap, QueueEvents
from bullpen.queue.queue import Queue
from bullpen.stores.base import Store

_PAGE = 500
STYLES: dict[EventKind, Style] = {
    EventKind.COMPLETED: "green",
    EventKind.FAILED: "red",
    EventKind.RETRIES_EXHAUSTED: "red",
    EventKind.STALLED: "red",
    EventKind.DELAYED: "yellow",
    EventKind.CANCELLING: "yellow",
    EventKind.ACTIVE: "cyan",
}
_EXAMPLES = """
  bullpen events mail                     all that is in the log
  bullpen events mail --follow            from now on, until Ctrl-C
  bullpen events mail --follow --from start --json
  bullpen events mail --from 1041         after a cursor that --json showed
"""


def arguments(parser: argparse.ArgumentParser) -> None:
    add_queue(parser)
    parser.add_argument("--follow", action="store_true", help="keep showing new events, until Ctrl-C")
    parser.add_argument(
        "--from",
        dest="start",
        metavar="CURSOR",
        help="'start', or a cursor of an event; else the start, and with --follow now",
    )


async def run(args: argparse.Namespace, show: Show) -> int:
    start = FROM_START if args.start == "start" or (args.start is None and not args.follow) else args.start
    async with opened(args) as store:
        queue = Queue(store, args.queue)
        if not args.follow:
            await queue.counts()  # a queue that is not there is an error, not an empty answer
            await _tell_all(_kept(store, args.queue, start), show)
            return OK
        events = QueueEvents(store, args.queue, after=start)
        await events.ready()
        show.note(f"following {args.queue}; Ctrl-C ends")
        following = asyncio.create_task(_tell_all(aiter(events), show))
        with cancelled_by_signal(following):
            await asyncio.wait([following])
        if not following.cancelled():
            following.result()
    return OK


async def _kept(store: Store, queue: str, cursor: str) -> AsyncIterator[Event | Gap]:
    """What the log has up to now."""
    end = (await store.events(queue, after=None, limit=1, timeout_ms=0)).cursor
    while True:
        page = await store.events(queue, after=cursor, limit=_PAGE, timeout_ms=0)
        if page.gap:
            yield Gap(cursor)
        for event in page.events:
            yield event
            if event.cursor == end:
                return
        cursor = page.cursor
        if not page.events:
            return


async def _tell_all(events: AsyncIterator[Event | Gap], show: Show) -> None:
    async for event in events:
        if isinstance(event, Gap):
            show.item({"kind": "gap", "cursor": event.cursor}) if show.as_json else show.line(
                "… events were dropped from the log before they were read", "yellow"
            )
        elif show.as_json:
            show.item(event_json(event))
        else:
            show.raw(event_line(event, show) + "\n")


def event_line(event: Event, show: Show) -> str:
    """One line: when, what, which job, and what is to say about it."""
    head = f"{clock_time(event.at_ms)}  {event.kind.value:<17}  {clean(event.job_id or ''):<8}  "
    about = clean(_about(event))
    if show.width is not None:
        about = clip(about, max(0, show.width - len(head)))
    when, rest = head[:12], head[12:]
    return (show.paint(when, "dim") + show.paint(rest, STYLES.get(event.kind, "")) + about).rstrip()


def _about(event: Event) -> str:
    if event.failure is not None:
        return error_words(event.failure)
    if event.value is not None:
        return json.dumps(payload(event.value), ensure_ascii=False)
    if event.kind == EventKind.DELAYED and event.run_at_ms is not None:
        return f"for {span(event.run_at_ms - event.at_ms)}"
    if event.count is not None:
        word = "attempts" if event.kind == EventKind.RETRIES_EXHAUSTED else "jobs"
        return f"{event.count:,} {word.removesuffix('s') if event.count == 1 else word}"
    return event.name or event.other_job_id or ""


VERB = Verb("events", "read a queue's events, or follow them", _EXAMPLES, arguments, run)
