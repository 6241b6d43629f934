"""How an attempt ended, as values. A store carries each out whole, or not at all."""

import msgspec

from bullpen.job.record import CrashKind, CrashLimits, Failure, Lease
from bullpen.job.spec import NewJob


class Completed(msgspec.Struct, frozen=True, gc=False):
    result: bytes = b"null"
    then: tuple[NewJob, ...] = ()
    """Added in the same step as the completion: both happen, or neither."""


class Retry(msgspec.Struct, frozen=True):
    """The attempt failed and another follows after the delay; 0 puts it at the end of the line."""

    failure: Failure
    delay_ms: int = 0


class Failed(msgspec.Struct, frozen=True):
    """The last attempt failed."""

    failure: Failure


class Cancelled(msgspec.Struct, frozen=True):
    """Someone asked for it. Ends in the failed state, of kind `cancelled`."""

    reason: str = ""


class Postponed(msgspec.Struct, frozen=True):
    """Not now; no attempt is used."""

    delay_ms: int
    note: str = ""


class Parked(msgspec.Struct, frozen=True):
    """Set aside until a time or a signal; no slot, no lease, and no attempt is used.

    It stands as delayed. If its time is over, or a signal that it waits for is there already, it
    goes to the end of its line at once.
    """

    until_ms: int | None = None
    """None: until a signal, or until someone promotes it."""
    signals: tuple[str, ...] = ()
    """Each of these wakes it."""
    note: str = ""


class Released(msgspec.Struct, frozen=True):
    """Handed back unfinished, to the head of its line; no attempt is used, the crash is recorded."""

    crash: CrashKind | None = None
    limits: CrashLimits | None = None
    """With these, a job that crashed too often fails instead."""


class AwaitChildren(msgspec.Struct, frozen=True):
    """Run again when no child is pending; no attempt is used. If none is by now, it goes back to its line."""


class Limited(msgspec.Struct, frozen=True):
    """A limit was met elsewhere (HTTP 429): back to the head of its line, and nobody starts another for that long.

    No attempt is used. The queue is closed or, where the job has a group and that is asked for,
    its group only; a time that ends earlier than the one that stands changes nothing.
    """

    delay_ms: int
    group_only: bool = False


Verdict = Completed | Retry | Failed | Cancelled | Postponed | Parked | Released | AwaitChildren | Limited


class Settlement(msgspec.Struct, frozen=True, gc=False):
    lease: Lease
    verdict: Verdict
