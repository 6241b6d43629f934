"""Settling one job: each verdict carried out, fenced by the lease's token."""

from collections.abc import Sequence
from typing import assert_never

import msgspec

from bullpen.job.events import Event, EventKind
from bullpen.job.record import CrashKind, CrashLimits, Failure, FailureKind, JobRef, stalls_in
from bullpen.job.spec import JobSpec
from bullpen.job.state import State
from bullpen.job.verdicts import (
    AwaitChildren,
    Cancelled,
    Completed,
    Failed,
    Limited,
    Parked,
    Postponed,
    Released,
    Retry,
    Settlement,
)
from bullpen.job.words import storable
from bullpen.stores.base import FOREVER_MS, SettleOutcome
from bullpen.stores.sqlite import mailbox
from bullpen.stores.sqlite.adding import release_dedup
from bullpen.stores.sqlite.family import child_failed, has_pending
from bullpen.stores.sqlite.forgetting import keep_of, retain
from bullpen.stores.sqlite.limiting import close_for
from bullpen.stores.sqlite.rows import (
    decode_crashes,
    decode_failure,
    decode_spec,
    decode_stacks,
    encode,
    run_at_ms,
    state_of,
)
from bullpen.stores.sqlite.schema import ACTIVE, DELAYED, FAILED, READY, WAITING_CHILDREN
from bullpen.stores.sqlite.tokens import key_and_token
from bullpen.stores.sqlite.transaction import Transaction, counter_of

_BY_ATTEMPTS = frozenset({FailureKind.ERROR, FailureKind.TIMEOUT, FailureKind.UNRECOVERABLE})


class Held(msgspec.Struct, frozen=True):
    """What settling one job needs to know of it."""

    key: int
    queue: int
    own_id: str | None
    state: int
    priority: int
    attempts_made: int
    crashes: dict[str, int]
    tenant: str | None
    dedup: str | None
    keep: bytes | None
    stacks: tuple[str, ...]
    spec: JobSpec
    cancelling: str | None
    parent: int | None
    has_children: bool
    doomed: Failure | None

    @property
    def id(self) -> str:
        return self.own_id or str(self.key)


def look_up(tx: Transaction, key: int, token: str | None = None) -> Held | None:
    """The job with this key; with a token, only if that still holds it."""
    row = tx.db.execute(
        "SELECT job.key, queue, own_id, state, priority, attempts_made, crashes, tenant, dedup, keep, stacks, spec,"
        " cancelling, parent, has_children, doomed, token FROM job JOIN body ON body.key = job.key WHERE job.key = ?",
        (key,),
    ).fetchone()
    if row is None or (token is not None and (row[-1] != token or row[3] != ACTIVE)):
        return None
    (
        key, queue, own_id, state, priority, attempts, crashes, tenant, dedup, keep, stacks, spec, cancelling,
        parent, has_children, doomed, _,
    ) = row  # fmt: skip
    return Held(
        key, queue, own_id, state, priority, attempts, decode_crashes(crashes) if crashes else {}, tenant, dedup,
        keep, decode_stacks(stacks) if stacks else (), decode_spec(spec), cancelling, parent, bool(has_children),
        decode_failure(doomed) if doomed else None,
    )  # fmt: skip


def settle_one(tx: Transaction, settlement: Settlement) -> SettleOutcome:
    key, token = key_and_token(settlement.lease)
    job = look_up(tx, key, token)
    if job is None:
        return SettleOutcome.LEASE_LOST
    match settlement.verdict:
        case Retry() | Postponed() | Parked() | AwaitChildren() if job.cancelling is not None:
            end_as_asked(tx, job, job.cancelling)
        case Completed():
            raise AssertionError("completions are carried out together, in completing.py")
        case Retry(failure, delay_ms):
            _retry(tx, job, failure, delay_ms)
        case Failed(failure):
            finish_failed(tx, job, failure, attempts=1)
        case Cancelled(reason):
            finish_failed(tx, job, cancelled(reason), attempts=1)
        case Postponed(delay_ms, note):
            _delay(tx, job, delay_ms, note=note, attempts=0)
        case Parked(until_ms, signals, note):
            _park(tx, job, until_ms, signals, note)
        case Released(crash, limits):
            release(tx, job, crash, limits)
        case AwaitChildren():
            _await_children(tx, job)
        case Limited(delay_ms, group_only):
            close_for(tx, job.queue, job.spec.group if group_only else None, delay_ms)
            release(tx, job, None)
        case unknown:
            assert_never(unknown)
    return SettleOutcome.SETTLED


def cancelled(reason: str) -> Failure:
    return Failure(f"cancelled: {reason}" if reason else "cancelled", FailureKind.CANCELLED)


# ── what becomes of a job that was active ────────────────────────────────────────────────


def _retry(tx: Transaction, job: Held, failure: Failure, delay_ms: int) -> None:
    _note_failure(tx, job, failure)
    if delay_ms > 0:
        _delay(tx, job, delay_ms, note="", attempts=1)
    else:
        _to_line(tx, job, head=job.spec.lifo, attempts=1)


def release(tx: Transaction, job: Held, crash: CrashKind | None, limits: CrashLimits | None = None) -> bool:
    """Back to the head of the line, no attempt used; the crash, if any, is recorded. Whether it waits again.

    A job that was asked to stop ends instead, and so does one that crashed too often.
    """
    crashes = job.crashes
    if crash is not None:
        crashes = {**crashes, crash: crashes.get(crash, 0) + 1}
        tx.db.execute("UPDATE job SET crashes = ? WHERE key = ?", (encode(crashes), job.key))
        if crash != CrashKind.DEPLOY:
            tx.tell(job.queue, Event(EventKind.STALLED, job.id, tx.now_ms, job.tenant, name=crash))
    if job.cancelling is not None:
        end_as_asked(tx, job, job.cancelling)
        return False
    if limits is not None and limits.exceeded_by(crashes):
        reason = f"lost its worker {stalls_in(crashes)} times (last: {crash})"
        finish_failed(tx, job, Failure(reason, FailureKind.STALLED), attempts=0)
        tx.failed.append(JobRef(tx.queue_name(job.queue), job.id))
        return False
    _to_line(tx, job, head=True, attempts=0)
    return True


def _to_line(tx: Transaction, job: Held, *, head: bool, attempts: int) -> None:
    place = tx.take_numbers(1)
    tx.db.execute(
        f"UPDATE job SET state = {READY}, position = ?, entered_ms = ?, attempts_made = attempts_made + ?,"
        " token = NULL, lease_until_ms = NULL, cancelling = NULL WHERE key = ?",
        (-place if head else place, tx.now_ms, attempts, job.key),
    )
    _moved(tx, job, READY)
    tx.tell(job.queue, Event(EventKind.WAITING, job.id, tx.now_ms, job.tenant, prev=State.ACTIVE))
    tx.now_runnable(job.queue)


def _park(tx: Transaction, job: Held, until_ms: int | None, signals: Sequence[str], note: str) -> None:
    """Until its time or a signal; one that is in the mailbox already came before the job could park."""
    due_ms = FOREVER_MS if until_ms is None else until_ms
    if due_ms <= tx.now_ms or mailbox.has_any(tx, job.key, signals):
        _to_line(tx, job, head=False, attempts=0)
        return
    _delay(tx, job, due_ms - tx.now_ms, note=note, attempts=0)
    tx.db.execute("UPDATE job SET parked = ? WHERE key = ?", (encode(signals), job.key))


def _await_children(tx: Transaction, job: Held) -> None:
    """Until none is pending; at the head of its line if none is by now."""
    if job.doomed is not None:
        finish_failed(tx, job, job.doomed, attempts=1)
    elif has_pending(tx.db, job.key):
        to_waiting_children(tx, job)
    else:
        _to_line(tx, job, head=True, attempts=0)


def to_waiting_children(tx: Transaction, job: Held) -> None:
    tx.db.execute(
        f"UPDATE job SET state = {WAITING_CHILDREN}, entered_ms = ?, token = NULL, lease_until_ms = NULL,"
        " cancelling = NULL WHERE key = ?",
        (tx.now_ms, job.key),
    )
    _moved(tx, job, WAITING_CHILDREN)
    tx.tell(job.queue, Event(EventKind.WAITING_CHILDREN, job.id, tx.now_ms, job.tenant, prev=State.ACTIVE))


def _delay(tx: Transaction, job: Held, delay_ms: int, *, note: str, attempts: int) -> None:
    due_ms = tx.now_ms + delay_ms
    tx.db.execute(
        f"UPDATE job SET state = {DELAYED}, due_ms = ?, position = ?, entered_ms = ?, note = ?,"
        " attempts_made = attempts_made + ?, token = NULL, lease_until_ms = NULL, cancelling = NULL WHERE key = ?",
        (due_ms, tx.take_numbers(1), tx.now_ms, storable(note) or None, attempts, job.key),
    )
    _moved(tx, job, DELAYED)
    tx.tell(
        job.queue,
        Event(EventKind.DELAYED, job.id, tx.now_ms, job.tenant, prev=State.ACTIVE, run_at_ms=run_at_ms(due_ms)),
    )
    tx.now_runnable(job.queue)


def finish_failed(tx: Transaction, job: Held, failure: Failure, *, attempts: int) -> None:
    """The job ends in the failed state, its subject is freed, its retention applied."""
    _note_failure(tx, job, failure)
    tx.db.execute(
        f"UPDATE job SET state = {FAILED}, finished_ms = ?, attempts_made = attempts_made + ?, due_ms = NULL,"
        " start_by_ms = NULL, token = NULL, lease_until_ms = NULL, cancelling = NULL, note = NULL, parked = NULL,"
        " doomed = NULL, delay_ms = NULL WHERE key = ?",
        (tx.now_ms, attempts, job.key),
    )
    _moved(tx, job, FAILED)
    prev = state_of(job.state, job.priority)
    tx.tell(job.queue, Event(EventKind.FAILED, job.id, tx.now_ms, job.tenant, prev=prev, failure=brief(failure)))
    if failure.kind in _BY_ATTEMPTS and job.attempts_made + attempts >= job.spec.attempts:
        exhausted = Event(
            EventKind.RETRIES_EXHAUSTED, job.id, tx.now_ms, job.tenant, count=job.attempts_made + attempts
        )
        tx.tell(job.queue, exhausted)
    if job.dedup is not None:
        release_dedup(tx, job.queue, job.dedup, job.key)
    if job.parent is not None:
        child_failed(tx, job.key, job.parent, storable(failure.message))
    retain(tx, job.queue, FAILED, [(job.key, keep_of(job.keep, FAILED))])


def end_as_asked(tx: Transaction, job: Held, reason: str) -> None:
    """End a job that was asked to stop while it ran, and whose worker left it to run again."""
    finish_failed(tx, job, cancelled(reason), attempts=0)


def expire(tx: Transaction, key: int) -> None:
    """End a job that is past its start-by time."""
    job = end_unstarted(tx, key, Failure("not started in time", FailureKind.EXPIRED))
    tx.failed.append(JobRef(tx.queue_name(job.queue), job.id))


def end_unstarted(tx: Transaction, key: int, failure: Failure) -> Held:
    """End a job that nobody runs: it expired, or was cancelled while it waited."""
    job = look_up(tx, key)
    assert job is not None
    assert job.state != ACTIVE
    finish_failed(tx, job, failure, attempts=0)
    return job


def _note_failure(tx: Transaction, job: Held, failure: Failure) -> None:
    stacks = job.stacks
    if failure.stack and job.spec.keep_stacks:
        stacks = (*stacks, storable(failure.stack))[-job.spec.keep_stacks :]
    tx.db.execute(
        "UPDATE job SET failure = ?, stacks = ? WHERE key = ?",
        (encode(brief(failure)), encode(stacks) if stacks else None, job.key),
    )


def brief(failure: Failure) -> Failure:
    """As it is kept: without the stack, which is kept once, in the job's list of stacks."""
    return Failure(storable(failure.message), failure.kind, storable(failure.type))


def _moved(tx: Transaction, job: Held, state: int) -> None:
    tx.count(job.queue, counter_of(job.state, job.priority), -1)
    tx.count(job.queue, counter_of(state, job.priority), 1)
    tx.count_grouped(job.queue, job.spec.group, job.state, -1)
    tx.count_grouped(job.queue, job.spec.group, state, 1)
