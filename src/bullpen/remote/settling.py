"""Verdicts as they travel to the server: how each attempt ended."""

from typing import assert_never

import msgspec

from bullpen.job import verdicts
from bullpen.job.record import CrashKind, Failure, FailureKind
from bullpen.job.verdicts import Settlement
from bullpen.remote.messages import Ask, HeldLease
from bullpen.stores.base import SettleOutcome

NULL = msgspec.Raw(b"null")
_NO_THEN = "ctx.then: a remote worker adds no jobs; let the job that follows be a parent of this one"
_NO_CHILDREN = "a remote worker does not wait for children"


class Settle(Ask, frozen=True, tag_field="verdict"):
    lease: HeldLease


class Complete(Settle, frozen=True, tag="complete"):
    result: msgspec.Raw = msgspec.field(default_factory=lambda: NULL)


class Fail(Settle, frozen=True, tag="fail"):
    """The attempt failed; the server sees whether the job has another, and when."""

    failure: Failure
    retry: bool = True
    """False: no further attempt, however many are left."""


class Retry(Settle, frozen=True, tag="retry"):
    """As `fail`, with a time for the next attempt if there is one."""

    failure: Failure
    delay_ms: int = 0


class Cancel(Settle, frozen=True, tag="cancel"):
    """It stopped, as someone had asked."""

    reason: str = ""


class Delay(Settle, frozen=True, tag="delay"):
    """Not now; no attempt is used."""

    delay_ms: int
    note: str = ""


class Park(Settle, frozen=True, tag="park"):
    """Until a time or a signal; no attempt is used."""

    until_ms: int | None = None
    signals: tuple[str, ...] = ()
    note: str = ""


class Release(Settle, frozen=True, tag="release"):
    """Back to the head of its line; no attempt is used."""

    crash: CrashKind | None = None


class Limit(Settle, frozen=True, tag="limit"):
    """Someone else has enough: back to its line, and the group or the queue is closed for a while."""

    delay_ms: int
    whole_queue: bool = False


AnySettle = Complete | Fail | Retry | Cancel | Delay | Park | Release | Limit


class SettleAsk(Ask, frozen=True):
    settlements: list[AnySettle]
    request: str
    """A unique text; the same again does nothing and gets the first answer."""


class SettleAnswer(msgspec.Struct, frozen=True):
    outcomes: list[SettleOutcome]
    """In the order asked."""


def told(settlement: Settlement) -> AnySettle:
    """What the server is told; a verdict that it cannot carry out fails the job, and says why."""
    lease = HeldLease.of(settlement.lease)
    match settlement.verdict:
        case verdicts.Completed(result, then):
            if then:
                return _refused(lease, _NO_THEN)
            return Complete(lease=lease, result=msgspec.Raw(result))
        case verdicts.Failed(failure):
            return Fail(lease=lease, failure=failure, retry=False)
        case verdicts.Retry(failure, delay_ms):
            return Retry(lease=lease, failure=failure, delay_ms=delay_ms)
        case verdicts.Cancelled(reason):
            return Cancel(lease=lease, reason=reason)
        case verdicts.Postponed(delay_ms, note):
            return Delay(lease=lease, delay_ms=delay_ms, note=note)
        case verdicts.Parked(until_ms, signals, note):
            return Park(lease=lease, until_ms=until_ms, signals=signals, note=note)
        case verdicts.Released(crash):
            return Release(lease=lease, crash=crash)
        case verdicts.Limited(delay_ms, group_only):
            return Limit(lease=lease, delay_ms=delay_ms, whole_queue=not group_only)
        case verdicts.AwaitChildren():
            return _refused(lease, _NO_CHILDREN)
        case unknown:
            assert_never(unknown)


def _refused(lease: HeldLease, why: str) -> Fail:
    failure = Failure(why, FailureKind.UNRECOVERABLE, "UsageError")
    return Fail(lease=lease, failure=failure, retry=False)
