"""`bullpen top`: queues and workers, live."""

import argparse

from bullpen.cli.board import Board, Snapshot, board_lines, snapshot_json
from bullpen.cli.live import Ending, keep_drawing
from bullpen.cli.showing import Show
from bullpen.cli.times import clock_time, seconds
from bullpen.cli.verb import OK, Verb, opened
from bullpen.clock import SYSTEM_CLOCK

_EVERY_S = 0.5
_EXAMPLES = """
  bullpen top                    until q or Ctrl-C
  bullpen top --seconds 10
  bullpen top --json --seconds 5 | jq .queues     a line of JSON for each look

  Where the output is not a terminal, it shows one look and ends.
"""


def arguments(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("--seconds", type=seconds, metavar="TIME", help="stop after that time")


async def run(args: argparse.Namespace, show: Show) -> int:
    async with opened(args) as store:
        board = Board(store)
        ending = Ending()
        with ending.listening(args.seconds):
            if show.is_terminal and not show.as_json:
                await keep_drawing(show, lambda: _draw(board, show), ending, _EVERY_S)
            else:
                await _tell(board, show, ending, goes_on=args.seconds is not None)
    return OK


async def _draw(board: Board, show: Show) -> list[str]:
    return [_title(show), "", *board_lines(await board.look(), show)]


def _title(show: Show) -> str:
    now = clock_time(SYSTEM_CLOCK.now_ms())[:8]
    return show.paint("bullpen top", "bold") + show.paint(f"  {now}  q ends", "dim")


async def _tell(board: Board, show: Show, ending: Ending, *, goes_on: bool) -> None:
    while True:
        _tell_one(await board.look(), show)
        if not goes_on or await ending.within(_EVERY_S):
            return


def _tell_one(snapshot: Snapshot, show: Show) -> None:
    if show.as_json:
        show.item(snapshot_json(snapshot))
    else:
        show.raw("".join(f"{line}\n" for line in board_lines(snapshot, show)))


VERB = Verb("top", "watch queues and workers, live", _EXAMPLES, arguments, run)
