"""From what a handler did to a verdict."""

import math
import traceback
from typing import Any

from bullpen.errors import JobCancelled, Postpone, RateLimited, Unrecoverable
from bullpen.job.limits import CLOSE_AT_MOST_MS
from bullpen.job.record import Failure, FailureKind, JobRecord
from bullpen.job.verdicts import Cancelled, Failed, Limited, Postponed, Retry, Verdict
from bullpen.job.words import storable
from bullpen.scheduling.backoff import delay_ms, wait_ms
from bullpen.worker.messages import Raised
from bullpen.worker.options import RetryPolicy, WorkerOptions

_RETRYABLE_STATUS = frozenset({408, 425, 429})
_MAX_MESSAGE = 2_000
_MAX_STACK = 20_000
_LONGEST_TOLD_S = 3_600
"""As long as a pause may grow; no one else decides that a job waits for days."""


class HandlerRaised(Exception):
    """Stands for the error that a handler raised in its own process."""

    def __init__(self, raised: Raised) -> None:
        super().__init__(raised.message)
        self.raised = raised
        self.retryable = raised.retryable
        self.code = raised.code
        self.status = raised.status


def verdict_on_error(error: BaseException, job: JobRecord, options: WorkerOptions) -> Verdict:
    """What becomes of a job whose handler raised."""
    if isinstance(error, Postpone):
        return Postponed(wait_ms(error.delay), storable(error.note))
    if isinstance(error, RateLimited):
        return Limited(min(wait_ms(error.delay), CLOSE_AT_MOST_MS), group_only=not error.whole_queue)
    if isinstance(error, JobCancelled):
        return Cancelled(message_of(error))
    verdict = verdict_on_failure(describe(error, options.retry_policy), job, options)
    if isinstance(verdict, Retry):
        verdict = Retry(verdict.failure, max(verdict.delay_ms, _told_to_wait_ms(error)))
    return verdict


def verdict_on_failure(failure: Failure, job: JobRecord, options: WorkerOptions) -> Verdict:
    """Another attempt if any are left and it can help."""
    attempts_made = job.attempts_made + 1
    if failure.kind == FailureKind.UNRECOVERABLE or attempts_made >= job.spec.attempts:
        return Failed(failure)
    wait_ms = delay_ms(job.spec.backoff, attempts_made, failure, options.backoffs)
    return Failed(failure) if wait_ms is None else Retry(failure, wait_ms)


def describe(error: BaseException, policy: RetryPolicy) -> Failure:
    """The error as it is kept with the job: message, type, stack. Never raises, whatever the error is made of."""
    kind = FailureKind.ERROR if is_retryable(error, policy) else FailureKind.UNRECOVERABLE
    if isinstance(error, HandlerRaised):
        name, stack = error.raised.type, error.raised.stack
    else:
        name, stack = type(error).__name__, stack_of(error)
    name = storable(name)
    return Failure(message_of(error)[:_MAX_MESSAGE] or name, kind, name, storable(stack[-_MAX_STACK:]))


def stack_of(error: BaseException) -> str:
    """The stack with what led to it, as far as the error lets itself be printed."""
    try:
        return "".join(traceback.format_exception(error))
    except Exception:  # noqa: BLE001 - the error's own code, which is called for its notes and causes
        return "".join(traceback.format_tb(error.__traceback__))


def message_of(error: BaseException) -> str:
    try:
        return storable(str(error))
    except Exception as raised:  # noqa: BLE001 - the error's own code
        return f"{type(error).__name__}, which cannot be printed: {type(raised).__name__}"


def timed_out(timeout_ms: int) -> Failure:
    return Failure(f"timed out after {timeout_ms / 1000:g} s", FailureKind.TIMEOUT, "TimeoutError")


def is_retryable(error: BaseException, policy: RetryPolicy) -> bool:
    """Whether another attempt could help."""
    if isinstance(error, Unrecoverable):
        return False
    said = told_by(error, "retryable")
    if isinstance(said, bool):
        return said
    if isinstance(error, policy.never) or _code(error) in policy.never_codes:
        return False
    status = _http_status(error)
    return status is None or not 400 <= status < 500 or status in _RETRYABLE_STATUS


def told_by(holder: object, attribute: str) -> Any:
    """What an error says of itself; None where it says nothing, or fails at it."""
    try:
        return getattr(holder, attribute, None)
    except Exception:  # noqa: BLE001 - a property of somebody's error may raise anything
        return None


def _code(error: BaseException) -> object:
    code = told_by(error, "code")
    return code if isinstance(code, str | int) else None


def _told_to_wait_ms(error: BaseException) -> int:
    """For how long whoever refused wants to be left alone, as errors of common clients say in seconds."""
    seconds = told_by(error, "retry_after")
    if isinstance(seconds, bool) or not isinstance(seconds, int | float) or not math.isfinite(seconds):
        return 0
    return round(1000 * min(max(0, seconds), _LONGEST_TOLD_S))


def _http_status(error: BaseException) -> int | None:
    """The HTTP status that common clients put on their errors."""
    for holder in (error, told_by(error, "response")):
        for attribute in ("status_code", "status"):
            status = told_by(holder, attribute)
            if isinstance(status, int) and not isinstance(status, bool):
                return status
    return None
