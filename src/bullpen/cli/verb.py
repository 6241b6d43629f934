"""What every verb is made of, and what several verbs share."""

import argparse
import asyncio
import contextlib
from collections.abc import AsyncIterator, Awaitable, Callable, Iterator
from typing import Any, NamedTuple

from bullpen.cli.showing import Show
from bullpen.errors import StoreUnavailable
from bullpen.settings import STORE, store_from
from bullpen.stores.base import Store
from bullpen.stores.sqlite.diagnosing import path_of
from bullpen.worker.signals import listening

OK, NO, USAGE, UNREACHABLE = 0, 1, 2, 3
"""Exit codes: done; the answer is no, or it failed; the command is wrong; the store cannot be reached."""
INTERRUPTED = 130

Run = Callable[[argparse.Namespace, Show], Awaitable[int]]


class Verb(NamedTuple):
    name: str
    summary: str
    """One line, for the list of verbs."""
    examples: str
    arguments: Callable[[argparse.ArgumentParser], None]
    run: Run
    reads: bool = True
    """Has `--json`."""
    serves: bool = False
    """Goes on for long, for many: worth the quickest event loop that is installed."""


def add_store(parser: argparse.ArgumentParser, *, default: object = argparse.SUPPRESS) -> None:
    parser.add_argument(
        "--store",
        metavar="ADDRESS",
        default=default,
        help=f"where the jobs are: sqlite:PATH or redis://HOST (else ${STORE}, else a file in ./.bullpen/)",
    )


def add_json(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("--json", action="store_true", default=argparse.SUPPRESS, help="answer in JSON, for programs")


def add_queue(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("queue", metavar="QUEUE", help="name of the queue")


def add_job(parser: argparse.ArgumentParser) -> None:
    add_queue(parser)
    parser.add_argument("id", metavar="ID", help="id of the job in that queue")


def no_arguments(parser: argparse.ArgumentParser) -> None:
    """For verbs without arguments of their own."""


def whole(low: int) -> Callable[[str], int]:
    """For argparse: a whole number that is not below this."""

    def read(text: str) -> int:
        if not text.isascii() or not text.isdecimal() or int(text) < low:
            raise argparse.ArgumentTypeError(f"{text!r} is not a whole number of {low} or more")
        return int(text)

    return read


@contextlib.asynccontextmanager
async def opened(args: argparse.Namespace, *, create: bool = False) -> AsyncIterator[Store]:
    """The store that was asked for; a file that is not there is made only by verbs that put something in it."""
    store = store_from(args.store)
    if not create:
        require_file(store)
    await store.open()
    try:
        yield store
    finally:
        await store.close()


@contextlib.contextmanager
def cancelled_by_signal(task: asyncio.Task[Any]) -> Iterator[None]:
    """SIGTERM and Ctrl-C cancel this task, for the time of a block, and nothing else."""

    def cancel() -> None:
        task.cancel()

    with listening(asyncio.get_running_loop(), cancel):
        yield


def require_file(store: Store) -> None:
    path = path_of(store)
    if path is not None and not path.exists():
        raise StoreUnavailable(f"no file at {path}; name one with --store or {STORE}, or add a job to make it")
