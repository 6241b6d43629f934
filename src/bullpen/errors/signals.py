"""What a handler raises to steer its job."""

from bullpen.errors.root import BullpenError


class Signal(BullpenError):
    """Raised by a handler to steer its job."""

    code = "signal"


class Unrecoverable(Signal):
    """Trying again cannot help: the job fails at once, whatever attempts remain."""

    code = "unrecoverable"


class Postpone(Signal):
    """Not now: the job runs again after ``delay`` seconds; no attempt is used."""

    code = "postpone"

    def __init__(self, delay: float, note: str = "") -> None:
        super().__init__(note or f"postponed for {delay} s")
        self.delay = delay
        self.note = note


class RateLimited(Signal):
    """Someone else has enough, as HTTP 429 says: no job of the group, or queue, starts for ``delay`` seconds.

    Holds on all workers. This job then runs again, and no attempt is used.
    """

    code = "rate-limited"

    def __init__(self, delay: float, *, whole_queue: bool = False) -> None:
        super().__init__(f"limited for {delay:g} s")
        self.delay = delay
        self.whole_queue = whole_queue


class JobCancelled(Signal):
    """Raised inside a handler whose job was cancelled."""

    code = "job-cancelled"
