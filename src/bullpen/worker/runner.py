"""The event loop of a process that serves, its garbage collector, and what went wrong in its tasks."""

import asyncio
import gc

_COLLECT_AFTER = 20_000
"""Objects more than before: the jobs of several hundred trips, a few megabytes."""


def quick_runner() -> asyncio.Runner:
    """On uvloop where that is installed, by the extra `speed`."""
    try:
        import uvloop
    except ImportError:
        return asyncio.Runner()
    return asyncio.Runner(loop_factory=uvloop.new_event_loop)


def calm_collector() -> None:
    """For a process of ours, once its program is loaded: jobs and events come by the thousand.

    As Python has it, the whole program is searched for garbage now and then, which holds up all jobs for
    tens of milliseconds; what is there by now is never garbage.
    """
    gc.collect()
    gc.freeze()
    gc.set_threshold(_COLLECT_AFTER, 20, 20)


def first_of(error: Exception) -> Exception:
    """What went wrong, out of the task groups that it passed through."""
    while isinstance(error, ExceptionGroup):
        error = error.exceptions[0]
    return error
