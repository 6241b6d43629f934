"""`bullpen schedules`: what comes again and again, and when next; paused, resumed, run now or removed by hand."""

import argparse
from typing import Any

from bullpen.cli.records import payload
from bullpen.cli.showing import Show
from bullpen.cli.tables import Cell, Column, Row
from bullpen.cli.times import ago, span
from bullpen.cli.verb import OK, Verb, add_json, add_queue, add_store, opened
from bullpen.clock import SYSTEM_CLOCK
from bullpen.job.schedule import ScheduleRecord
from bullpen.queue.queue import Queue

_EXAMPLES = """
  bullpen schedules                     all of them, with their next runs
  bullpen schedules --queue reports
  bullpen schedules pause reports nightly
  bullpen schedules resume reports nightly
  bullpen schedules run reports nightly  one job now, apart from its times
  bullpen schedules remove reports nightly
"""
_TIMING = ("cron", "tz", "every_ms", "start_ms", "end_ms", "limit")
_ACTS = {
    "pause": "no more ticks until it is resumed",
    "resume": "tick again; what was missed is not made up for",
    "run": "add one job now, apart from its ticks",
    "remove": "forget it with its next tick",
}


def arguments(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("--queue", dest="only", metavar="QUEUE", help="only those of this queue")
    acts = parser.add_subparsers(dest="act", metavar="ACT", title="acts (without one, the schedules are listed)")
    for name, summary in _ACTS.items():
        one = acts.add_parser(name, help=summary, description=f"{summary[0].upper()}{summary[1:]}.")
        add_store(one)
        add_json(one)
        add_queue(one)
        one.add_argument("id", metavar="SCHEDULE", help="name of the schedule in that queue")


async def run(args: argparse.Namespace, show: Show) -> int:
    return await (_act(args, show) if args.act else _list(args, show))


async def _list(args: argparse.Namespace, show: Show) -> int:
    async with opened(args) as store:
        queues = [args.only] if args.only else await store.queues()
        found = [record for queue in queues for record in await store.schedules(queue)]
    if show.as_json:
        show.document([schedule_json(record) for record in found])
    elif not found:
        show.line("No schedules.")
    else:
        _tell(show, found)
    return OK


async def _act(args: argparse.Namespace, show: Show) -> int:
    async with opened(args) as store:
        schedules = Queue(store, args.queue).schedules
        match args.act:
            case "pause":
                record = await schedules.pause(args.id)
                told, document = "is paused: a tick that runs goes on, no new one comes", schedule_json(record)
            case "resume":
                record = await schedules.resume(args.id)
                told = f"goes on, next {ago(record.next_ms, SYSTEM_CLOCK.now_ms())}"
                document = schedule_json(record)
            case "run":
                job = await schedules.run_now(args.id)
                told, document = f"runs now as job {job.id}", {"queue": args.queue, "id": job.id}
            case _:
                await schedules.remove(args.id)
                told, document = "is removed", {"queue": args.queue, "schedule": args.id, "removed": True}
    show.answer(document, f"{args.queue}/{args.id} {told}")
    return OK


def schedule_json(record: ScheduleRecord) -> dict[str, Any]:
    schedule = record.schedule
    return {
        "queue": record.queue,
        "id": record.id,
        "name": schedule.name,
        "data": payload(schedule.data),
        **{field: getattr(schedule.timing, field) for field in _TIMING},
        "overlap": schedule.overlap.value,
        "next_ms": record.next_ms,
        "paused": record.paused,
        "ended": record.ended,
        "ticks": record.ticks,
        "skipped": record.skipped,
    }


def _tell(show: Show, records: list[ScheduleRecord]) -> None:
    columns = [
        Column("queue", shrinks=True),
        Column("schedule", shrinks=True),
        Column("when", shrinks=True),
        Column("next", right=True),
        Column("ticks", right=True),
        Column("skipped", right=True),
    ]
    rows: list[Row] = [
        [record.queue, Cell(record.id, "cyan"), _when(record), _next(record), record.ticks, record.skipped]
        for record in records
    ]
    show.table(columns, rows)


def _when(record: ScheduleRecord) -> str:
    timing = record.schedule.timing
    if timing.cron is None:
        return f"every {span(timing.every_ms or 0)}"
    return f"{timing.cron} {timing.tz}" if timing.tz else timing.cron


def _next(record: ScheduleRecord) -> Cell:
    if record.paused:
        return Cell("paused", "yellow")
    if record.ended:
        return Cell("ended", "dim")
    return Cell("running" if record.next_ms is None else ago(record.next_ms, SYSTEM_CLOCK.now_ms()))


VERB = Verb("schedules", "list and steer what comes again and again", _EXAMPLES, arguments, run)
