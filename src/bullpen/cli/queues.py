"""`bullpen queues`: how much is where."""

import argparse
from typing import Any

import msgspec

from bullpen.cli.showing import Show
from bullpen.cli.tables import Cell, Column
from bullpen.cli.times import span
from bullpen.cli.verb import OK, Verb, no_arguments, opened
from bullpen.clock import SYSTEM_CLOCK
from bullpen.stores.base import Counts, Store

_STATES = ("waiting", "prioritized", "delayed", "active", "completed", "failed")


async def run(args: argparse.Namespace, show: Show) -> int:
    async with opened(args) as store:
        found = {name: (await store.counts(name), await oldest_ms(store, name)) for name in await store.queues()}
    if show.as_json:
        show.document([_json(name, *told) for name, told in found.items()])
    elif not found:
        show.line("No queues yet. Add a job with: bullpen enqueue QUEUE NAME")
    else:
        columns = [Column("queue", shrinks=True), *(Column(state, right=True) for state in _STATES)]
        show.table([*columns, Column("oldest", right=True)], [_row(name, *told) for name, told in found.items()])
    return OK


async def oldest_ms(store: Store, queue: str) -> int | None:
    """For how long the next job in line has been runnable."""
    since_ms = await store.oldest_waiting_ms(queue)
    return None if since_ms is None else max(0, SYSTEM_CLOCK.now_ms() - since_ms)


def _json(name: str, counts: Counts, oldest: int | None) -> dict[str, Any]:
    return {"queue": name, **msgspec.to_builtins(counts), "oldest_waiting_ms": oldest}


def _row(name: str, counts: Counts, oldest: int | None) -> list[Cell]:
    cells = [count_cell(state, getattr(counts, state)) for state in _STATES]
    last = Cell("paused", "yellow") if counts.paused else Cell("–" if oldest is None else span(oldest))
    return [Cell(name, "cyan"), *cells, last]


def count_cell(state: str, count: int) -> Cell:
    """Nothing is pale, failures are red."""
    if count == 0:
        return Cell("0", "dim")
    return Cell(f"{count:,}", {"failed": "red", "active": "green"}.get(state, ""))  # type: ignore[arg-type]  # styles


VERB = Verb(
    "queues", "list all queues with their counts", "  bullpen queues\n  bullpen queues --json", no_arguments, run
)
