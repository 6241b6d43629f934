"""`bullpen worker MODULE:PEN`: run the jobs of an application."""

import argparse
import importlib
import os
import sys
import traceback
from pathlib import Path
from typing import NoReturn

import msgspec

from bullpen.app import Bullpen
from bullpen.cli.showing import Show
from bullpen.cli.verb import OK, Verb, whole
from bullpen.errors import BadHandler
from bullpen.settings import STORE
from bullpen.telemetry import setup
from bullpen.worker.leaving import leave, run_alone
from bullpen.worker.options import WorkerOptions
from bullpen.worker.supervisor import Supervisor
from bullpen.worker.worker import Worker

APP = "BULLPEN_WORKER_APP"
"""What the processes of `bullpen worker --processes N` are to run; set by that command for them."""
_EXAMPLES = """
  bullpen worker shop:pen                        `pen = Bullpen()` in shop.py
  bullpen worker shop.jobs:pen --queue mail --queue images
  bullpen worker shop:pen --processes 4 --concurrency 20
  bullpen worker shop:pen --shared 10 --queue urgent --queue usual     usual runs while urgent is empty
  bullpen worker shop:pen --shared 10 --weight urgent=3                urgent has three turns where others have one

  Ctrl-C or SIGTERM lets running jobs finish; a second one hands them back.
"""


class Wanted(msgspec.Struct, frozen=True):
    """What a worker process is to run."""

    app: str
    queues: list[str] = []
    concurrency: int | None = None
    shared: int | None = None
    weights: dict[str, int] = {}

    def worker(self) -> Worker:
        options = WorkerOptions(concurrency=self.concurrency, shared=self.shared, weights=self.weights or None)
        pen = find_pen(self.app)
        setup.equip(pen.telemetry)
        return pen.worker(self.queues, options)


def arguments(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("app", metavar="MODULE:PEN", help="where your Bullpen is, importable from here")
    parser.add_argument(
        "--queue", action="append", default=[], dest="queues", metavar="Q", help="only this queue; may be repeated"
    )
    parser.add_argument("--processes", type=whole(1), default=1, metavar="N", help="number of processes (1)")
    parser.add_argument("--concurrency", type=whole(1), metavar="N", help="slots for each queue in a process (5)")
    parser.add_argument("--shared", type=whole(1), metavar="N", help="slots that all queues share, in strict order")
    parser.add_argument(
        "--weight", action="append", default=[], type=_weight, dest="weights", metavar="Q=N",
        help="with --shared: turns in proportion instead of strict order; may be repeated",
    )  # fmt: skip
    parser.add_argument("--health-port", type=whole(0), metavar="PORT", help="serve /health and /metrics there (off)")
    parser.add_argument("--health-host", metavar="HOST", help="listen at this address (127.0.0.1)")
    parser.add_argument("--log-format", choices=setup.LOG_FORMATS, help="lines of text or of JSON (text)")


async def run(args: argparse.Namespace, show: Show) -> NoReturn:  # noqa: ARG001 - it tells by its log
    given = {
        STORE: args.store,
        setup.PORT: args.health_port,
        setup.HOST: args.health_host,
        setup.LOG_FORMAT: args.log_format,
    }
    os.environ |= {name: str(value) for name, value in given.items() if value is not None}
    # The folder that the command is given in, as `python -m` has it.
    sys.path.insert(0, str(Path.cwd()))
    wanted = Wanted(args.app, args.queues, args.concurrency, args.shared, dict(args.weights))
    os.environ[APP] = msgspec.json.encode(wanted).decode()
    if args.processes > 1:
        await _supervise(args.app, args.processes)
    else:
        await run_alone(make_worker())
    leave(OK)


async def _supervise(app: str, processes: int) -> None:
    """Several processes, and one endpoint for all of them."""
    with setup.sockets_of_fleet():
        supervisor = Supervisor("bullpen.cli.worker:make_worker", processes=processes)
        pen = find_pen(app)
        store, queues = pen.store.another(), supervisor.queues
        async with setup.serving_fleet(pen.telemetry, store, queues, lambda: tuple(supervisor.running)):
            await supervisor.run(signals=True)


def _weight(text: str) -> tuple[str, int]:
    """For argparse: `mail=3`."""
    queue, _, weight = text.partition("=")
    if not queue or not weight.isdecimal() or int(weight) < 1:
        raise argparse.ArgumentTypeError(f"{text!r} is not a weight such as mail=3")
    return queue, int(weight)


def make_worker() -> Worker:
    """The factory for each process: makes the worker that the environment asks for."""
    setup.start_log()
    return msgspec.json.decode(os.environ[APP], type=Wanted).worker()


def find_pen(path: str) -> Bullpen:
    """The application behind `module:name`, or BadHandler that says what is wrong with it."""
    module, colon, name = path.partition(":")
    if not colon or not module or not name:
        raise BadHandler(f"{path!r}: write MODULE:PEN, as in shop:pen")
    try:
        found = importlib.import_module(module)
        for part in name.split("."):
            found = getattr(found, part)
    except Exception as error:
        where = traceback.extract_tb(error.__traceback__)[-1]
        at = "" if where.filename.startswith("<frozen") else f" ({where.filename}:{where.lineno})"
        raise BadHandler(f"cannot load {path}: {type(error).__name__}: {error}{at}") from error
    if not isinstance(found, Bullpen):
        raise BadHandler(f"{path} is a {type(found).__name__}, not a Bullpen")
    return found


VERB = Verb("worker", "run the jobs of your application", _EXAMPLES, arguments, run, reads=False, serves=True)
