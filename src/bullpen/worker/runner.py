"""The event loop of a process that serves."""

import asyncio


def quick_runner() -> asyncio.Runner:
    """On uvloop where that is installed, by the extra `speed`."""
    try:
        import uvloop
    except ImportError:
        return asyncio.Runner()
    return asyncio.Runner(loop_factory=uvloop.new_event_loop)
