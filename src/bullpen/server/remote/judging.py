"""From what a remote worker says of an attempt to a verdict, by the rules of every worker."""

from typing import assert_never

import msgspec

from bullpen.errors import BadOption, PayloadTooLarge
from bullpen.job import verdicts
from bullpen.job.limits import CLOSE_AT_MOST_MS
from bullpen.job.record import JobRecord
from bullpen.job.verdicts import Verdict
from bullpen.queue.payload import MAX_PAYLOAD_BYTES
from bullpen.remote import settling
from bullpen.worker.judging import verdict_on_failure
from bullpen.worker.options import WorkerOptions

_LATEST_MS = 2**41 - 1


def judge(said: settling.AnySettle, job: JobRecord | None, options: WorkerOptions, *, one_tenant: bool) -> Verdict:
    """What becomes of the job; one that is gone has no attempts left, and its lease is lost anyway."""
    match said:
        case settling.Complete():
            return verdicts.Completed(checked(said.result, "result"))
        case settling.Fail():
            return _on_failure(said, job, options) if said.retry else verdicts.Failed(said.failure)
        case settling.Retry():
            judged = _on_failure(said, job, options)
            is_last = isinstance(judged, verdicts.Failed)
            return judged if is_last else verdicts.Retry(said.failure, _time("delay_ms", said.delay_ms))
        case settling.Cancel():
            return verdicts.Cancelled(said.reason)
        case settling.Delay():
            return verdicts.Postponed(_time("delay_ms", said.delay_ms), said.note)
        case settling.Park():
            until_ms = None if said.until_ms is None else _time("until_ms", said.until_ms)
            return verdicts.Parked(until_ms, said.signals, said.note)
        case settling.Release():
            return verdicts.Released(said.crash, options.limits)
        case settling.Limit():
            delay_ms = min(_time("delay_ms", said.delay_ms), CLOSE_AT_MOST_MS)
            # The queue is everybody's: who works for one tenant closes that tenant's group at most.
            return verdicts.Limited(delay_ms, group_only=one_tenant or not said.whole_queue)
        case unknown:
            assert_never(unknown)


def _on_failure(said: settling.Fail | settling.Retry, job: JobRecord | None, options: WorkerOptions) -> Verdict:
    return verdicts.Failed(said.failure) if job is None else verdict_on_failure(said.failure, job, options)


def checked(json: msgspec.Raw, what: str) -> bytes:
    """JSON that was sent, if it is not too large to be kept."""
    plain = bytes(json)
    if len(plain) > MAX_PAYLOAD_BYTES:
        raise PayloadTooLarge(
            f"{what} is {len(plain):,} bytes as JSON; at most {MAX_PAYLOAD_BYTES:,} are allowed:"
            " store it elsewhere and send its id"
        )
    return plain


def _time(field: str, ms: int) -> int:
    if not 0 <= ms <= _LATEST_MS:
        raise BadOption(f"{field}: from 0 to {_LATEST_MS}, not {ms}")
    return ms
