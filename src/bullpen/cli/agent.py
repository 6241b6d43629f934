"""`bullpen agent -- COMMAND`: run a command for each job of a server, from a machine that does not reach the store."""

import argparse
import logging
import os
from typing import NoReturn

from bullpen.cli.showing import Show
from bullpen.cli.times import seconds
from bullpen.cli.verb import OK, Verb, whole
from bullpen.remote.address import SERVER, TOKEN, TOKEN_FILE
from bullpen.remote.command import EXIT_UNRECOVERABLE, command_handler
from bullpen.telemetry import setup
from bullpen.worker.leaving import leave
from bullpen.worker.options import WorkerOptions

_EXAMPLES = f"""
  bullpen agent --server https://bullpen.example.com --queue dev -- ./build.sh
  bullpen agent --queue dev --queue nightly --concurrency 4 -- python -m pipeline --fast

  The command reads the job's data as JSON from its standard input. Lines that it prints are the job's
  log; `::progress 40` and `::result {{"ok": true}}` are its progress and its result. Exit code 0 completes the
  job, {EXIT_UNRECOVERABLE} fails it for good, any other fails the attempt. ${TOKEN} has the token, or the file that
  --token-file or ${TOKEN_FILE} names. Ctrl-C or SIGTERM lets running commands finish; a second one ends them and
  hands their jobs back.
"""


def arguments(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("--server", metavar="URL", help=f"where the server is (else ${SERVER})")
    parser.add_argument(
        "--queue", action="append", required=True, dest="queues", metavar="Q", help="run its jobs; may be repeated"
    )
    parser.add_argument("--concurrency", type=whole(1), default=1, metavar="N", help="commands at once, per queue (1)")
    parser.add_argument("--token-file", metavar="FILE", help=f"a file with the token (else ${TOKEN})")
    parser.add_argument("--ca", metavar="FILE", help="trust these certificates instead of the system's")
    parser.add_argument("--allow-http", action="store_true", help="allow plain http to another machine")
    parser.add_argument("--name", default="", metavar="NAME", help="name of this worker (from host and process)")
    parser.add_argument(
        "--timeout", type=seconds, default=300, metavar="TIME", help="for jobs without one of their own (5m)"
    )
    parser.add_argument(
        "--grace", type=seconds, default=30, metavar="TIME", help="to finish after a signal to stop (30s)"
    )
    parser.add_argument(
        "--lease", type=seconds, default=30, metavar="TIME", help="until the jobs of a lost agent return (30s)"
    )
    parser.add_argument("--health-port", type=whole(0), metavar="PORT", help="serve /health and /metrics there (off)")
    parser.add_argument("--health-host", metavar="HOST", help="listen at this address (127.0.0.1)")
    parser.add_argument("--log-format", choices=setup.LOG_FORMATS, help="lines of text or of JSON (text)")
    parser.add_argument("command", nargs="+", metavar="COMMAND", help="what to run for each job, after `--`")


async def run(args: argparse.Namespace, show: Show) -> NoReturn:  # noqa: ARG001 - it tells by its log
    from bullpen.remote.worker import RemoteWorker

    given = {setup.PORT: args.health_port, setup.HOST: args.health_host, setup.LOG_FORMAT: args.log_format}
    os.environ |= {name: str(value) for name, value in given.items() if value is not None}
    setup.start_log()
    # Each call of a worker that waits for work would be a line.
    logging.getLogger("httpx").setLevel(logging.WARNING)
    handler = command_handler(args.command)
    options = WorkerOptions(
        name=args.name, concurrency=args.concurrency, timeout=args.timeout, grace=args.grace, lease=args.lease
    )
    setup.equip(options.observers, is_remote=True)
    worker = RemoteWorker(
        args.server,
        dict.fromkeys(args.queues, handler),
        options,
        token_file=args.token_file,
        ca=args.ca,
        allow_http=args.allow_http,
    )
    await worker.run(signals=True)
    leave(OK)  # a command that was given up may still hold a pipe


VERB = Verb("agent", "run a command for each job of a server", _EXAMPLES, arguments, run, reads=False, serves=True)
