"""Tasks whose records do not answer: they go back to their line, with no attempt used, and go on at their step later.

What a task waits for is usually told in its run's log. Of this nothing can be written, so that each process keeps for
itself how long it has been so.
"""

import logging
import math
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager

from bullpen.errors import Postpone, RecordsUnavailable

SHORTEST_S, LONGEST_S = 1.0, 30.0
_NOTE = "waits for the records, which do not answer"

logger = logging.getLogger("bullpen.agents")


class RecordsOutage:
    """One of these records, as the tasks of this process meet it."""

    def __init__(self, now_s: Callable[[], float] = time.monotonic) -> None:
        self._now_s = now_s
        self._since_s = self._last_s = -math.inf

    @contextmanager
    def outlasted(self) -> Iterator[None]:
        """Postpone, where the records do not answer."""
        try:
            yield
        except RecordsUnavailable as error:
            pause_s = self._pause_s()
            logger.warning("a task is set aside for %.0f s: %s", pause_s, error)
            raise Postpone(pause_s, _NOTE) from error

    def _pause_s(self) -> float:
        """As long again as the outage has lasted."""
        now_s = self._now_s()
        if now_s - self._last_s > 2 * LONGEST_S:  # nobody met it for longer than anyone waits: this is another one
            self._since_s = now_s
        self._last_s = now_s
        return min(max(SHORTEST_S, now_s - self._since_s), LONGEST_S)
