"""`bullpen VERB …`: reads the command, runs the verb, turns errors into one line and an exit code."""

import argparse
import asyncio
import logging
import os
import sys
from collections.abc import Sequence
from typing import NoReturn

from bullpen.cli import (
    agent,
    bench,
    budgets,
    cancel,
    completion,
    dead,
    dev,
    doctor,
    enqueue,
    events,
    groups,
    job,
    jobs,
    keys,
    limits,
    mcp,
    migrate,
    outbox,
    pause,
    promote,
    queues,
    resume,
    retry,
    sandboxes,
    schedules,
    server,
    signal,
    store,
    top,
    users,
    worker,
    workers,
)
from bullpen.cli.showing import Show
from bullpen.cli.verb import INTERRUPTED, NO, OK, UNREACHABLE, USAGE, Verb, add_json, add_store
from bullpen.errors import BullpenError, StoreError, UsageError
from bullpen.worker.runner import first_of, quick_runner

VERBS: tuple[Verb, ...] = (
    dev.VERB,
    worker.VERB,
    agent.VERB,
    server.VERB,
    keys.VERB,
    users.VERB,
    budgets.VERB,
    enqueue.VERB,
    queues.VERB,
    jobs.VERB,
    job.VERB,
    retry.VERB,
    promote.VERB,
    signal.VERB,
    cancel.VERB,
    pause.VERB,
    resume.VERB,
    groups.VERB,
    limits.VERB,
    schedules.VERB,
    dead.VERB,
    events.VERB,
    workers.VERB,
    sandboxes.VERB,
    outbox.VERB,
    top.VERB,
    doctor.VERB,
    bench.VERB,
    store.VERB,
    migrate.VERB,
    mcp.VERB,
    completion.VERB,
)
_DESCRIPTION = "Background jobs that do not get lost: add, run, watch and mend them."
_EPILOG = """\
examples:
  bullpen dev                                   watch a demo
  bullpen worker shop:pen                       run the jobs of `pen` in shop.py
  bullpen enqueue mail welcome '{"user_id": 1}' add a job
  bullpen jobs mail --state failed              see what failed

exit codes: 0 done, 1 the answer is no or it failed, 2 wrong usage,
3 the store cannot be reached. `bullpen VERB --help` explains a verb."""


class Parser(argparse.ArgumentParser):
    """Tells mistakes in one line, as all errors are told."""

    def error(self, message: str) -> NoReturn:
        Show().error(f"{message}; try `{self.prog} --help`", UsageError.code)
        sys.exit(USAGE)


def build_parser() -> Parser:
    form = argparse.RawDescriptionHelpFormatter
    parser = Parser(prog="bullpen", description=_DESCRIPTION, epilog=_EPILOG, formatter_class=form)
    add_store(parser, default=None)
    parser.add_argument("--version", action="store_true", help="show the versions and exit")
    verbs = parser.add_subparsers(dest="verb", metavar="VERB", title="verbs")
    for verb in VERBS:
        epilog = f"examples:\n{verb.examples.strip(chr(10))}"
        summary = verb.summary[0].upper() + verb.summary[1:] + "."
        one = verbs.add_parser(verb.name, help=verb.summary, description=summary, epilog=epilog, formatter_class=form)
        add_store(one)
        if verb.reads:
            add_json(one)
        verb.arguments(one)
        one.set_defaults(run=verb.run, serves=verb.serves)
    return parser


def main(argv: Sequence[str] | None = None) -> int:
    """Run one command; its exit code."""
    parser = build_parser()
    args = parser.parse_args(argv)
    args.parser = parser
    show = Show(as_json=getattr(args, "json", False))
    # What a store warns of when it opens is for the log of a worker; whoever asks here has `doctor`.
    logging.getLogger("bullpen.stores").addHandler(logging.NullHandler())
    if args.version:
        show.line(_versions())
        return OK
    if args.verb is None:
        show.raw(parser.format_help())
        return OK
    return _run(args, show)


def _run(args: argparse.Namespace, show: Show) -> int:
    try:
        with quick_runner() if args.serves else asyncio.Runner() as runner:
            return int(runner.run(args.run(args, show)))
    except KeyboardInterrupt:
        return INTERRUPTED
    except Exception as error:  # noqa: BLE001 - an operator is told in one line, whatever it is
        return _tell(first_of(error), show)


def _tell(error: Exception, show: Show) -> int:
    """Say it in one line; the exit code that stands for it."""
    match error:
        case BrokenPipeError():
            # Whoever read us has seen enough; Python must not complain about it at exit either.
            os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
            return OK
        case BullpenError():
            show.error(str(error), error.code)
            if isinstance(error, UsageError):
                return USAGE
            return UNREACHABLE if isinstance(error, StoreError) else NO
        case _:
            show.error(f"unexpected {type(error).__name__}: {error}; please report this", "internal")
    return NO


def _versions() -> str:
    import platform
    from importlib.metadata import version

    return f"bullpen {version('bullpen')} on Python {platform.python_version()}"
