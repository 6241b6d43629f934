"""`bullpen sandboxes`: those of all workers of agents, and how to have them replaced."""

import argparse
from typing import TYPE_CHECKING

import msgspec

from bullpen.cli.keys import add_records, opened_records
from bullpen.cli.showing import Show
from bullpen.cli.tables import Cell, Column, Row
from bullpen.cli.times import ago
from bullpen.cli.verb import OK, Verb, add_json
from bullpen.clock import SYSTEM_CLOCK

if TYPE_CHECKING:
    from bullpen.agents.sandbox.telling import SandboxShown

_EXAMPLES = """
  bullpen sandboxes                                     those of all workers
  bullpen sandboxes restart                             replace them: unused ones soon, others when they come back
"""
_COLUMNS = (
    Column("sandbox"),
    Column("driver"),
    Column("isolation"),
    Column("worker", shrinks=True),
    Column("state"),
    Column("tenant", shrinks=True),
    Column("since", right=True),
    Column("told", right=True),
)


def arguments(parser: argparse.ArgumentParser) -> None:
    add_records(parser, default=None)
    acts = parser.add_subparsers(dest="act", metavar="ACT", title="acts (without one, the sandboxes are listed)")
    text = "Have all workers replace their sandboxes: unused ones within seconds, others when they come back."
    restart = acts.add_parser("restart", help="make all workers replace theirs", description=text)
    add_records(restart)
    add_json(restart)


async def run(args: argparse.Namespace, show: Show) -> int:
    async with opened_records(args) as records:
        if args.act == "restart":
            pools = await records.sandboxes.ask_restart()
            asked = f"asked {pools} pool{'s' * (pools != 1)} to restart"
            show.answer({"count": pools}, f"{asked}: unused sandboxes go within seconds, others when they come back")
        else:
            from bullpen.agents.sandbox.telling import all_sandboxes

            _list(await all_sandboxes(records.sandboxes), show)
    return OK


def _list(found: "list[SandboxShown]", show: Show) -> None:
    if show.as_json:
        show.document([msgspec.to_builtins(one) for one in found])
    elif not found:
        show.line("No sandboxes. Workers of agents have some once a task needed one.")
    else:
        show.table(_COLUMNS, [_row(one) for one in found])


def _row(one: "SandboxShown") -> Row:
    now_ms = SYSTEM_CLOCK.now_ms()
    state = Cell(one.state, "green" if one.state == "warm" else "yellow")
    times = (ago(one.since_ms, now_ms), ago(one.told_ms, now_ms))
    return [Cell(one.id, "cyan"), one.driver, one.isolation, one.worker, state, one.tenant or "", *times]


VERB = Verb("sandboxes", "list the sandboxes of agents, and have them replaced", _EXAMPLES, arguments, run)
