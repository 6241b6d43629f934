"""`bullpen server`: the HTTP API and the dashboard."""

import argparse
import logging

from bullpen.app import Bullpen
from bullpen.cli.keys import add_records
from bullpen.cli.showing import Show
from bullpen.cli.verb import OK, Verb, whole
from bullpen.errors import BadHandler
from bullpen.observing import Observer
from bullpen.worker.runner import calm_collector

_EXAMPLES = """
  bullpen server                                     http://127.0.0.1:8787
  bullpen server --store redis://localhost --records postgresql://bullpen@localhost/bullpen
  bullpen server --host 0.0.0.0                      once there is a key or a user

  The first ones:  bullpen keys create NAME --role admin
                   bullpen users create NAME --role admin
  Ctrl-C or SIGTERM ends it.
"""

_OPEN = """\
It is open: everyone on this machine is admin, and nobody else is served. To close it, and to let others in:
  bullpen keys create NAME --role admin      for programs
  bullpen users create NAME --role admin     for people"""


def arguments(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("--host", metavar="HOST", help="listen at this address (127.0.0.1)")
    parser.add_argument("--port", type=whole(0), metavar="PORT", help="listen at this port (8787); 0 takes a free one")
    add_records(parser, default=None)


async def run(args: argparse.Namespace, show: Show) -> int:
    try:
        from bullpen.server.running import serve
    except ImportError as error:
        raise BadHandler(f"the server needs more: pip install 'bullpen[server]' ({error.name} is missing)") from error
    from bullpen.server.settings import ServerSettings
    from bullpen.telemetry import setup

    setup.start_log()
    for name in ("alembic", "uvicorn"):
        logging.getLogger(name).setLevel(logging.WARNING)
    settings = ServerSettings.from_environment(host=args.host, port=args.port)
    pen = Bullpen(args.store, telemetry=_tracing())

    def begin(url: str) -> None:
        calm_collector()
        show.line(f"Bullpen is at {url}")

    await serve(pen, args.records, settings, on_ready=begin, on_open=lambda: show.block(_OPEN, indent=""))
    return OK


def _tracing() -> list[Observer]:
    """With the global provider, which does nothing until someone sets it up; none where the extra is not installed."""
    try:
        from bullpen.telemetry.tracing import Tracing
    except ImportError:
        return []
    return [Tracing()]


VERB = Verb("server", "serve the HTTP API and the dashboard", _EXAMPLES, arguments, run, reads=False, serves=True)
