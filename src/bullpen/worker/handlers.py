"""Which function handles a job, and where it runs: on the loop, in a thread, in a process."""

import importlib
import inspect
from collections.abc import Awaitable, Callable, Mapping
from enum import StrEnum
from typing import Any

import msgspec

from bullpen.errors import BadHandler
from bullpen.job.names import check_job_name, check_queue_name
from bullpen.job.verdicts import Verdict
from bullpen.worker.context import Context

HandlerFunction = Callable[[Context], Any]


class Mode(StrEnum):
    ASYNC = "async"
    THREAD = "thread"
    PROCESS = "process"


class Handler(msgspec.Struct, frozen=True):
    function: HandlerFunction
    mode: Mode
    path: str = ""
    """`module:name`, under which another process finds the function, where its own name does not say so."""
    around: Callable[[Context, Callable[[], Awaitable[Any]]], Awaitable[Any]] | None = None
    """Called on the worker's loop with the call itself, wherever that runs; returns the result."""
    on_verdict: Callable[[Context, Verdict], Awaitable[None]] | None = None
    """Told what became of each attempt."""
    on_progress: Callable[[Context, Any], Any] | None = None
    """Told what the handler says of its progress."""

    @property
    def import_path(self) -> str:
        return self.path or f"{self.function.__module__}:{self.function.__qualname__}"


Handlers = Mapping[str, "HandlerFunction | Handler | Mapping[str, HandlerFunction | Handler]"]
"""By queue: one function for all its jobs, or functions by job name."""


def in_process(function: HandlerFunction) -> Handler:
    """Run this handler in a process of its own: for CPU-bound work, and for what must be killable."""
    if not hasattr(function, "__qualname__") or not callable(function) or inspect.iscoroutinefunction(function):
        raise BadHandler(f"{function!r}: a process runs a plain function, not {type(function).__name__}")
    if function.__module__ == "__main__":
        raise BadHandler(
            f"{function.__qualname__}: define it in a module that another process can import, not in the script"
        )
    handler = Handler(function, Mode.PROCESS)
    if find_function(handler.import_path) is not function:
        raise BadHandler(
            f"{handler.import_path} cannot be found by name from another process; define it at module level"
        )
    return handler


def find_function(path: str) -> HandlerFunction:
    """The function behind `module:name`, or BadHandler."""
    module, _, name = path.partition(":")
    try:
        found: Any = importlib.import_module(module)
        for part in name.split("."):
            found = getattr(found, part)
    except (ImportError, AttributeError, ValueError) as error:
        raise BadHandler(f"{path} cannot be found by name from another process: {error}") from error
    if not callable(found):
        raise BadHandler(f"{path} is not callable")
    return found  # type: ignore[no-any-return]  # called with a Context, whatever it is


class Registry:
    """The handlers of a worker, checked once."""

    def __init__(self, handlers: Handlers) -> None:
        if not handlers:
            raise BadHandler("a worker needs at least one queue with a handler")
        self._of_queue: dict[str, Handler] = {}
        self._of_name: dict[tuple[str, str], Handler] = {}
        self.queues = tuple(check_queue_name(queue) for queue in handlers)
        for queue, given in handlers.items():
            if isinstance(given, Mapping):
                for name, function in given.items():
                    self._of_name[queue, check_job_name(name)] = _as_handler(f"{queue}/{name}", function)
            else:
                self._of_queue[queue] = _as_handler(queue, given)

    def find(self, queue: str, name: str) -> Handler | None:
        return self._of_name.get((queue, name)) or self._of_queue.get(queue)


def _as_handler(where: str, given: object) -> Handler:
    if isinstance(given, Handler):
        return given
    if not callable(given):
        raise BadHandler(f"the handler of {where} is not callable: {given!r}")
    is_async = inspect.iscoroutinefunction(given) or inspect.iscoroutinefunction(getattr(given, "__call__", None))  # noqa: B004
    return Handler(given, Mode.ASYNC if is_async else Mode.THREAD)
