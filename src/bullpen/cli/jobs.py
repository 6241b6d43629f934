"""`bullpen jobs QUEUE`: the jobs of a queue, state by state."""

import argparse
import shlex

from bullpen.cli.records import error_words, job_json, when
from bullpen.cli.showing import Show
from bullpen.cli.tables import Cell, Column, Style
from bullpen.cli.times import ago
from bullpen.cli.verb import OK, Verb, add_queue, opened, whole
from bullpen.clock import SYSTEM_CLOCK
from bullpen.errors import BadOption
from bullpen.job.record import JobRecord
from bullpen.job.state import FINISHED, State
from bullpen.queue.queue import Queue

STATE_STYLE: dict[State, Style] = {State.FAILED: "red", State.ACTIVE: "green", State.DELAYED: "yellow"}
_READ = (
    State.ACTIVE,
    State.WAITING,
    State.PRIORITIZED,
    State.DELAYED,
    State.WAITING_CHILDREN,
    State.FAILED,
    State.COMPLETED,
)
_EXAMPLES = """
  bullpen jobs mail                             some of each state
  bullpen jobs mail --state failed --newest     the latest failures
  bullpen jobs mail --state waiting --cursor 41,41   the next page
"""


def arguments(parser: argparse.ArgumentParser) -> None:
    add_queue(parser)
    parser.add_argument("--state", choices=[state.value for state in State], help="only jobs in this state")
    parser.add_argument("--limit", type=whole(1), default=20, metavar="N", help="most jobs of each state (20)")
    parser.add_argument("--cursor", help="continue after the cursor of the previous page")
    parser.add_argument("--newest", action="store_true", help="newest first")


async def run(args: argparse.Namespace, show: Show) -> int:
    if args.cursor is not None and args.state is None:
        raise BadOption("cursor: give --state as well; each state has places of its own")
    states = [State(args.state)] if args.state else _READ
    found: list[JobRecord] = []
    more: dict[State, str] = {}
    async with opened(args) as store:
        queue = Queue(store, args.queue)
        await queue.counts()  # a queue that is not there is an error, not an empty answer
        for state in states:
            newest = args.newest or (args.state is None and state in FINISHED)
            page = await queue.jobs(state, limit=args.limit, cursor=args.cursor, newest_first=newest)
            found += page.jobs
            if page.next_cursor is not None:
                more[state] = page.next_cursor
    if show.as_json:
        cursors = {state.value: cursor for state, cursor in more.items()}
        show.document({"jobs": [job_json(job) for job in found], "next_cursors": cursors})
    else:
        _tell(args, show, found, more)
    return OK


def _tell(args: argparse.Namespace, show: Show, found: list[JobRecord], more: dict[State, str]) -> None:
    if not found:
        show.line(f"No {args.state + ' ' if args.state else ''}jobs in {args.queue}.")
        return
    show_jobs(show, found)
    for state, cursor in more.items():
        again = f"--state {state} --cursor {shlex.quote(cursor)}{' --newest' if args.newest else ''}"
        show.line(f"more: bullpen jobs {args.queue} {again if args.state else f'--state {state}'}", "dim")


def show_jobs(show: Show, found: list[JobRecord], *, with_queue: bool = False) -> None:
    """A table with a line for each."""
    now_ms = SYSTEM_CLOCK.now_ms()
    columns = [
        Column("id", shrinks=True),
        Column("name", shrinks=True),
        Column("state"),
        Column("attempts", right=True),
        Column("when", right=True),
        Column("note", shrinks=True),
    ]
    rows: list[list[Cell]] = []
    for job in found:
        attempts = Cell(f"{job.attempts_made}/{job.spec.attempts}")
        state = Cell(job.state.value, STATE_STYLE.get(job.state, ""))
        about = Cell(_about(job), "red" if job.failure is not None and job.state == State.FAILED else "dim")
        name = Cell(str(job.ref) if with_queue else job.id, "cyan")
        rows.append([name, Cell(job.name), state, attempts, Cell(ago(when(job), now_ms)), about])
    show.table(columns, rows)


def _about(job: JobRecord) -> str:
    if job.cancelling is not None:
        return f"is to stop: {job.cancelling}" if job.cancelling else "is to stop"
    if job.state == State.COMPLETED:
        return ""
    return error_words(job.failure) or job.note or ""


VERB = Verb("jobs", "list the jobs of a queue", _EXAMPLES, arguments, run)
