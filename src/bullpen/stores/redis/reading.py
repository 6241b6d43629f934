"""What the scripts answer, as records and events."""

import math
import re
from collections.abc import Iterator, Sequence
from typing import Any

import msgspec

from bullpen.errors import GroupFull
from bullpen.job.events import Event, EventKind
from bullpen.job.record import ClaimedJob, CrashKind, Failure, FailureKind, JobRecord, JobRef, Lease, stalls_in
from bullpen.job.spec import NewJob
from bullpen.job.state import State
from bullpen.stores.base import FOREVER_MS, Added, AddOutcome, Claimed, Exchanged, SettleOutcome
from bullpen.stores.redis.codec import FIELDS, decode_options
from bullpen.stores.redis.keys import Keys

Fields = dict[bytes, bytes]
_DELAY_STEP = 4096
"""A delayed score is the run time in ms times this, plus a place in that ms."""
_MOST, _MOST_COUNT = 2**53 - 1, 2**31 - 1
"""Other programs may write any number. One beyond these fits into no table, and its job would hold up all others."""

_F = {word: name.encode() for word, name in FIELDS.items()}
_OF_A_FRESH_JOB = {
    _F[word] for word in ("name", "data", "options", "added", "delay", "priority", "started", "worker", "epoch")
}
_NAME, _DATA, _OPTIONS, _PRIORITY = _F["name"], _F["data"], _F["options"], _F["priority"]
_EPOCH, _ADDED, _STARTED, _WORKER = _F["epoch"], _F["added"], _F["started"], _F["worker"]
_CRASHES = {_F["crash"] + kind.value.encode(): kind.value for kind in CrashKind}
_STALLED = "job stalled more than allowable limit"
"""BullMQ's text, which it writes without saying of which kind the failure is."""
_CHILD_FAILED = re.compile(r"child( [^ :]+:[^ :]+:[^ ]+)? failed")
"""The same, with the child's key; ours leaves that out where the child is another tenant's."""


class FailureDetails(msgspec.Struct, frozen=True):
    kind: str = FailureKind.ERROR
    type: str = ""


_decode_details = msgspec.json.Decoder(FailureDetails).decode
_decode_texts = msgspec.json.Decoder(tuple[str, ...]).decode


_ADD_OUTCOMES = {outcome.value.encode(): outcome for outcome in AddOutcome}
_OUTCOMES = {outcome.value.encode(): outcome for outcome in SettleOutcome}
_LEFT_OUT = b"left-out"
"""The script's word for what stands below a duplicate."""


def read_added(answer: Sequence[Any], jobs: Sequence[NewJob], keys: Keys) -> list[Added]:
    """The answers of the roots, each with those of its children."""
    if answer and isinstance(answer[0], list):
        _, base, group, waiting, most, more = answer[0]
        raise GroupFull(
            f"group {group.decode()!r} of queue {keys.queue_of(base)!r} has {waiting} of {most} jobs waiting:"
            f" {more} more would be too many; nothing was added"
        )
    told = iter(answer)
    return [_read_added(job, told) for job in jobs]


def _read_added(job: NewJob, told: Iterator[bytes]) -> Added:
    job_id, outcome = next(told), next(told)
    children = tuple([_read_added(child, told) for child in job.children]) if job.children else ()
    if outcome == _LEFT_OUT:
        return Added("", AddOutcome.DUPLICATE)
    word = _ADD_OUTCOMES[outcome]
    return Added(job_id.decode(), word, children if word is AddOutcome.ADDED else ())


def read_exchanged(answer: Sequence[Any], keys: Keys) -> Exchanged:
    settled, due_ms, claimed, failed, started, worker = answer
    # The records were read before the claim wrote into them.
    written = [_STARTED, started, _WORKER, worker] if started else []
    return Exchanged(
        tuple([_OUTCOMES[word] for word in settled]),
        Claimed(
            tuple([_read_claimed(job, written, keys) for job in claimed]),
            before_forever(due_ms if isinstance(due_ms, int) else None),
        ),
        read_refs(failed, keys),
    )


def brought_anything(answer: Sequence[Any]) -> bool:
    """Whether an exchange claimed jobs, or failed some by itself."""
    _, _, claimed, failed, _, _ = answer
    return bool(claimed or failed)


def read_refs(found: Sequence[Sequence[bytes]], keys: Keys) -> tuple[JobRef, ...]:
    return tuple(JobRef(keys.queue_of(base), job_id.decode()) for base, job_id in found)


def due_ms(score: bytes) -> int:
    """The time at which a delayed job is due, from its score."""
    due = float(score)
    return int(due) // _DELAY_STEP if math.isfinite(due) else FOREVER_MS


def before_forever(run_at_ms: int | None) -> int | None:
    """As it is told: what only a signal wakes has no due time."""
    return None if run_at_ms is None or run_at_ms >= FOREVER_MS else run_at_ms


def _read_claimed(job: Sequence[Any], written: Sequence[bytes], keys: Keys) -> ClaimedJob:
    base, job_id, token, epoch = job[-4:]
    ref = JobRef(keys.queue_of(base), job_id.decode())
    known = [*job[:-4], *written, _EPOCH, b"%d" % epoch]
    return ClaimedJob(Lease(ref, token.decode(), epoch), read_record(ref, State.ACTIVE, None, known, keys))


def read_record(ref: JobRef, state: State, run_at_ms: int | None, flat: Sequence[bytes], keys: Keys) -> JobRecord:
    """A job from its stored fields, of which the later ones count."""
    fields = dict(zip(flat[::2], flat[1::2], strict=True))
    get = fields.get
    record = JobRecord(
        ref=ref,
        name=get(_NAME, b"").decode(),
        data=get(_DATA, b"{}"),
        state=state,
        spec=decode_options(get(_OPTIONS, b"")),
        priority=_count(get(_PRIORITY)),
        epoch=_int(get(_EPOCH)) or 0,
        added_ms=_int(get(_ADDED)) or 0,
        run_at_ms=before_forever(run_at_ms),
        started_ms=_int(get(_STARTED)),
        worker=_text(get(_WORKER)),
    )
    if fields.keys() <= _OF_A_FRESH_JOB:
        return record
    return msgspec.structs.replace(record, **_read_rarer(fields, state, keys))


def _read_rarer(fields: Fields, state: State, keys: Keys) -> dict[str, Any]:
    """What a job that is claimed for the first time has nothing of: most of those that a worker reads."""
    get = fields.get
    doomed, parent, cancelling = get(_F["doomed"]), get(_F["parent_key"]), get(_F["cancelling"])
    attempts_made = _count(get(_F["attempts_made"]) or get(_F["legacy_attempts_made"]))
    is_delayed = state is State.DELAYED
    return {
        "attempts_made": attempts_made,
        "crashes": _crashes(fields),
        "finished_ms": _int(get(_F["finished"])),
        "progress": get(_F["progress"]),
        "result": get(_F["result"]),
        "failure": _failure(fields, attempts_made),
        "stacks": _stacks(get(_F["stacks"])),
        "cancelling": None if cancelling is None else cancelling.decode(),
        "note": _text(get(_F["note"])) if is_delayed else None,
        "parked": _parked(get(_F["parked"])) if is_delayed else None,
        "doomed": None if doomed is None else _doom(doomed.decode()),
        "parent": None if parent is None else keys.ref_of(parent),
    }


def _int(stored: bytes | None, most: int = _MOST) -> int | None:
    """The nearest number that there may be; None for what is none."""
    if not stored:
        return None
    try:
        number: float = int(stored)
    except ValueError:
        # JavaScript may have written a fraction of a millisecond, or Infinity.
        try:
            number = float(stored)
        except ValueError:
            return None
    if -most <= number <= most:
        return int(number)
    return None if math.isnan(number) else int(math.copysign(most, number))


def _count(stored: bytes | None) -> int:
    return _int(stored, _MOST_COUNT) or 0


def _text(stored: bytes | None) -> str | None:
    return stored.decode(errors="replace") if stored else None


def _stacks(stored: bytes | None) -> tuple[str, ...]:
    if not stored:
        return ()
    try:
        return _decode_texts(stored)
    except msgspec.DecodeError:
        return ()


def _parked(stored: bytes | None) -> tuple[str, ...] | None:
    return None if stored is None else _decode_texts(stored)


def _doom(reason: str) -> Failure:
    return Failure(reason, _kind_of(reason) or FailureKind.UNRECOVERABLE)


def _kind_of(reason: str) -> FailureKind | None:
    """What BullMQ's own texts say, which come without our details."""
    if reason == _STALLED:
        return FailureKind.STALLED
    return FailureKind.CHILD_FAILED if _CHILD_FAILED.fullmatch(reason) else None


def _failure(fields: Fields, attempts_made: int) -> Failure | None:
    reason = fields.get(_F["failed_reason"])
    if reason is None:
        return None
    message = reason.decode(errors="replace")
    # The details are ours; after a later attempt that failed elsewhere they tell of another failure.
    told_at, _, details = fields.get(_F["failure"], b"").partition(b" ")
    if _int(told_at) != attempts_made:
        return Failure(message, _kind_of(message) or FailureKind.ERROR)
    return read_failure(message, details)


def read_failure(message: str, details: bytes | None) -> Failure:
    if not details:
        return Failure(message)
    told = _decode_details(details)
    return Failure(message, FailureKind(told.kind), told.type)


def _crashes(fields: Fields) -> dict[str, int]:
    """By kind, as far as we were told; what only BullMQ counted was noticed by the missing heartbeat."""
    crashes = {_CRASHES[name]: _count(fields[name]) for name in _CRASHES.keys() & fields.keys()}
    unknown = _count(fields.get(_F["stalls"])) - stalls_in(crashes)
    if unknown > 0:
        crashes[CrashKind.LOST_HEARTBEAT] = crashes.get(CrashKind.LOST_HEARTBEAT, 0) + unknown
    return crashes


# ── events ───────────────────────────────────────────────────────────────────────────────

_KINDS = {kind.value.encode(): kind for kind in EventKind}
_STATE_OF_KEY = {"wait": State.WAITING.value, "paused": State.WAITING.value}


def read_event(entry_id: str, flat: Sequence[bytes], cursor: str) -> Event | None:
    """One entry of the log, or None for what only BullMQ speaks of."""
    # Compared one by one, not gathered by name: on this path each entry of every log is read.
    told = job_id = tenant = prev = name = result = data = recorded = None
    is_plain = True
    pairs = iter(flat)
    for field, value in zip(pairs, pairs, strict=False):
        if field == b"event":
            told = value
        elif field == b"jobId":
            job_id = value
        elif field == b"data":
            data = value
        elif field == b"prev":
            prev = value
        elif field == b"at":
            recorded = value
        elif field == b"tenant":
            tenant = value
        elif field == b"name":
            name = value
        elif field == b"returnvalue":
            result = value
        else:
            is_plain = False
    kind = _KINDS.get(told or b"")
    if kind is None:
        return None
    state = _text(prev)
    event = Event(
        kind=kind,
        job_id=_text(job_id),
        at_ms=int(entry_id.partition("-")[0]),
        tenant=_text(tenant),
        prev=state and _STATE_OF_KEY.get(state, state),
        name=_text(name),
        value=data if result is None else result,
        cursor=cursor,
        recorded_ms=_int(recorded),
    )
    return event if is_plain else _with_more(event, dict(zip(flat[::2], flat[1::2], strict=True)))


def _with_more(event: Event, fields: Fields) -> Event:
    get = fields.get
    reason = get(b"failedReason")
    return msgspec.structs.replace(
        event,
        run_at_ms=before_forever(_int(get(b"delay"))),
        failure=None if reason is None else read_failure(_text(reason) or "", get(b"failure")),
        other_job_id=_text(get(b"deduplicatedJobId")),
        count=_int(get(b"count") or get(b"attemptsMade"), _MOST_COUNT),
        priority=_count(get(b"priority")),
        is_gone=get(b"kept") == b"0",
    )
