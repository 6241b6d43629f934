"""`bullpen mcp`: queues and jobs as tools for an assistant, over the input and output."""

import argparse
import asyncio
import sys
from collections.abc import AsyncIterator

from bullpen.cli.showing import Show
from bullpen.cli.verb import OK, Verb, opened
from bullpen.mcp.protocol import McpServer
from bullpen.mcp.tools import READING, WRITING, Tools

_EXAMPLES = """
  bullpen mcp                                look only
  bullpen mcp --allow-writes                 also enqueue, retry, pause and resume
  bullpen mcp --show-data                    also what is in the jobs

  An assistant starts it and speaks to it; there is nothing to see at a terminal.
"""


def arguments(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("--allow-writes", action="store_true", help="offer the tools that change something")
    parser.add_argument("--show-data", action="store_true", help="show the data and results of jobs")


async def run(args: argparse.Namespace, show: Show) -> int:
    async with opened(args, create=args.allow_writes) as store:
        tools = Tools(store, show_data=args.show_data)
        offered = tools.reading() + (tools.writing() if args.allow_writes else [])
        server = McpServer(offered, WRITING if args.allow_writes else READING)
        await server.serve(_input_lines(), show.raw)
    return OK


async def _input_lines() -> AsyncIterator[str]:
    while line := await asyncio.to_thread(sys.stdin.readline):
        yield line


VERB = Verb("mcp", "offer queues and jobs to an assistant (MCP)", _EXAMPLES, arguments, run, reads=False)
