"""The end of a process that a worker has to itself: its application is closed, and nothing keeps it."""

import asyncio
import logging
import os
import sys
from typing import NoReturn

from bullpen.worker.runner import calm_collector
from bullpen.worker.supervised import CLOSE_WITHIN_S, Ended
from bullpen.worker.worker import Worker

logger = logging.getLogger("bullpen.worker")


async def run_alone(worker: Worker) -> Ended:
    """Until told to stop by a signal; then what the jobs were done with is closed."""
    calm_collector()
    try:
        return await worker.run(signals=True)
    finally:
        await _close(worker)


async def _close(worker: Worker) -> None:
    try:
        async with asyncio.timeout(CLOSE_WITHIN_S):
            await worker.on_leave()
    except TimeoutError:
        logger.warning("the application did not close within %g s", CLOSE_WITHIN_S)
    except Exception:
        logger.warning("the application could not be closed", exc_info=True)


def leave(code: int) -> NoReturn:
    """Handlers that were handed back may still run in threads: they must not keep the process."""
    logging.shutdown()
    sys.stdout.flush()
    sys.stderr.flush()
    os._exit(code)
