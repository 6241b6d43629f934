"""`bullpen outbox`: rows that no relay sends until a person decides, decided where the records are."""

import argparse
from typing import TYPE_CHECKING

import msgspec

from bullpen.cli.keys import add_records, note, opened_records
from bullpen.cli.showing import Show
from bullpen.cli.tables import Cell, Column
from bullpen.cli.times import ago
from bullpen.cli.verb import OK, Verb, add_json, whole
from bullpen.clock import SYSTEM_CLOCK
from bullpen.job.record import JobRef

if TYPE_CHECKING:
    from bullpen.records.outbox_rows import OutboxProblem, OutboxRows
    from bullpen.records.records import Records

_EXAMPLES = """
  bullpen outbox list                                   rows that nobody sends, and why
  bullpen outbox resend 17                              as if it were new: its job may run a second time
  bullpen outbox discard 17 18                          their jobs are not added
"""
_COLUMNS = (
    Column("number", right=True),
    Column("queue"),
    Column("job", shrinks=True),
    Column("written", right=True),
    Column("problem", shrinks=True),
)


def arguments(parser: argparse.ArgumentParser) -> None:
    add_records(parser, default=None)
    acts = parser.add_subparsers(dest="act", metavar="ACT", title="acts (without one, rows with a problem are listed)")
    text = "List the rows of the outbox that no relay sends until somebody decides, the oldest first."
    listing = acts.add_parser("list", help="list rows with a problem", description=text)
    listing.add_argument("--limit", type=whole(1), default=100, metavar="N", help="show so many (100)")
    text = "Send rows with a problem as if they were new. A job that was added after all may run a second time."
    resend = acts.add_parser("resend", help="send them after all", description=text)
    text = "Drop rows with a problem: their jobs are not added by them."
    discard = acts.add_parser("discard", help="drop them", description=text)
    for one in (resend, discard):
        one.add_argument("numbers", nargs="+", type=whole(0), metavar="NUMBER", help="of the row, as the list has it")
    for one in (listing, resend, discard):
        add_records(one)
        add_json(one)


async def run(args: argparse.Namespace, show: Show) -> int:
    async with opened_records(args) as records:
        from bullpen.records.outbox_rows import OutboxRows

        rows = OutboxRows(records.database.engine)
        if args.act not in ("resend", "discard"):
            await _list(rows, getattr(args, "limit", 100), show)
            return OK
        await _decide(records, rows, args, show)
    return OK


async def _decide(records: "Records", rows: "OutboxRows", args: argparse.Namespace, show: Show) -> None:
    """One after the other; what was decided before one that is not there is told all the same."""
    decide = rows.resend if args.act == "resend" else rows.discard
    decided: dict[int, JobRef] = {}
    try:
        for number in args.numbers:
            decided[number] = ref = await decide(number)
            await note(records, f"outbox.{args.act}", str(number), None, job=str(ref))
    finally:
        if decided:
            what = "on their way again, once a relay runs" if args.act == "resend" else "dropped"
            show.answer(
                [{"number": number, "queue": ref.queue, "job_id": ref.id} for number, ref in decided.items()],
                f"{what}: {', '.join(f'{number} ({ref})' for number, ref in decided.items())}",
            )


async def _list(rows: "OutboxRows", limit: int, show: Show) -> None:
    found: list[OutboxProblem] = await rows.problems(limit)
    if show.as_json:
        show.document([msgspec.to_builtins(one) for one in found])
    elif not found:
        show.line("No rows with a problem.")
    else:
        now_ms = SYSTEM_CLOCK.now_ms()
        show.table(
            _COLUMNS,
            [
                [Cell(str(one.number), "cyan"), one.queue, one.job_id, ago(one.written_ms, now_ms), one.problem]
                for one in found
            ],
        )


VERB = Verb("outbox", "decide on rows of the outbox that nobody sends", _EXAMPLES, arguments, run)
