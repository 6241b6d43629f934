"""How long to wait before the next attempt."""

import logging
import math
import random
from collections.abc import Callable, Mapping

from bullpen.job.options import MAX_DURATION_MS
from bullpen.job.record import Failure
from bullpen.job.spec import Backoff

logger = logging.getLogger("bullpen.scheduling")

CustomBackoff = Callable[[int, Failure], float]
"""Given the number of attempts made and the last failure: seconds to wait; less than 0 gives up."""


def delay_ms(
    backoff: Backoff,
    attempts_made: int,
    failure: Failure,
    custom: Mapping[str, CustomBackoff] | None = None,
    vary: Callable[[], float] = random.random,
) -> int | None:
    """Milliseconds to wait after that many attempts (1 or more); None means: do not try again.

    A custom backoff that the worker was not given, or that fails, counts as fixed.
    """
    if custom and backoff.kind in custom:
        try:
            seconds = custom[backoff.kind](attempts_made, failure)
            return None if seconds < 0 else wait_ms(seconds)
        except Exception:
            logger.exception("the backoff %r failed; the job waits as with a fixed one", backoff.kind)
    delay = float(backoff.delay_ms)
    if backoff.kind == "exponential":
        # Beyond 2^40 every base is over every cap; the float stays finite.
        delay *= 2 ** min(attempts_made - 1, 40)
    delay = min(delay, backoff.max_delay_ms)
    if backoff.jitter:
        delay *= 1 + backoff.jitter * (2 * vary() - 1)
    return round(min(delay, backoff.max_delay_ms))


def wait_ms(seconds: float) -> int:
    """What somebody's code said, within what a store can keep; ValueError if it is no number of seconds."""
    if math.isnan(seconds):
        raise ValueError("NaN seconds")
    return round(1000 * min(max(0.0, seconds), MAX_DURATION_MS / 1000))
