"""`bullpen workers`: who works, and on what."""

import argparse

from bullpen.cli.records import worker_json
from bullpen.cli.showing import Show
from bullpen.cli.tables import Cell, Column, Row
from bullpen.cli.times import ago
from bullpen.cli.verb import OK, Verb, no_arguments, opened
from bullpen.clock import SYSTEM_CLOCK
from bullpen.stores.base import WorkerInfo

COLUMNS = (
    Column("worker", shrinks=True),
    Column("state"),
    Column("queues", shrinks=True),
    Column("running", right=True),
    Column("stuck", right=True),
    Column("done", right=True),
    Column("seen", right=True),
)


async def run(args: argparse.Namespace, show: Show) -> int:
    async with opened(args) as store:
        found = await store.workers()
    if show.as_json:
        show.document([worker_json(worker) for worker in found])
    elif not found:
        show.line("No workers. Start one with: bullpen worker MODULE:PEN")
    else:
        show.table(COLUMNS, [worker_row(worker) for worker in found])
    return OK


def worker_row(worker: WorkerInfo) -> Row:
    queues = ", ".join(f"{queue} {slots}" for queue, slots in worker.queues.items())
    stuck = Cell(f"{len(worker.stuck)}", "red" if worker.stuck else "dim")
    return [
        Cell(worker.name, "cyan"),
        worker.state.value,
        queues,
        len(worker.running),
        stuck,
        worker.jobs_done,
        ago(worker.beat_ms, SYSTEM_CLOCK.now_ms()),
    ]


VERB = Verb(
    "workers", "list the workers that are alive", "  bullpen workers\n  bullpen workers --json", no_arguments, run
)
