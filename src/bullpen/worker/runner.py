"""The event loop of a process that serves, and what went wrong in its tasks."""

import asyncio


def quick_runner() -> asyncio.Runner:
    """On uvloop where that is installed, by the extra `speed`."""
    try:
        import uvloop
    except ImportError:
        return asyncio.Runner()
    return asyncio.Runner(loop_factory=uvloop.new_event_loop)


def first_of(error: Exception) -> Exception:
    """What went wrong, out of the task groups that it passed through."""
    while isinstance(error, ExceptionGroup):
        error = error.exceptions[0]
    return error
