"""Steering one job, or a queue, by hand."""

from collections.abc import Sequence

from bullpen.errors import JobMissing, WrongState
from bullpen.job.events import Event, EventKind
from bullpen.job.record import JobRef
from bullpen.job.state import FINISHED, State
from bullpen.job.words import storable
from bullpen.stores.base import Cancellation
from bullpen.stores.sqlite.adding import release_dedup
from bullpen.stores.sqlite.claiming import make_runnable
from bullpen.stores.sqlite.family import any_active, child_back, descendants, has_pending
from bullpen.stores.sqlite.forgetting import forget
from bullpen.stores.sqlite.grouping import forget_all
from bullpen.stores.sqlite.looking import ORDER, parts_of
from bullpen.stores.sqlite.rows import STATE_NUMBER, state_of
from bullpen.stores.sqlite.scheduling import PENDING_TICKS, is_next_tick
from bullpen.stores.sqlite.schema import ACTIVE, COMPLETED, DELAYED, FAILED, READY, WAITING_CHILDREN, moving_tables
from bullpen.stores.sqlite.settling import Held, cancelled, end_unstarted, look_up
from bullpen.stores.sqlite.transaction import Row, Transaction, counter_of

BULK = 5_000
"""How many jobs a bulk verb moves in one commit; callers go on until all are done."""
_NO_TICK = f" AND (own_id IS NULL OR own_id NOT IN ({PENDING_TICKS}))"
"""The next tick of a schedule is never swept away: without it the schedule would stop."""


def cancel(tx: Transaction, ref: JobRef, reason: str) -> Cancellation:
    job = _job(tx, ref)
    if job.state == ACTIVE:
        tx.db.execute("UPDATE job SET cancelling = ? WHERE key = ?", (storable(reason), job.key))
        tx.tell(job.queue, Event(EventKind.CANCELLING, job.id, tx.now_ms, job.tenant))
        tx.news.cancelling = True
        return Cancellation.CANCELLING
    if job.state in (COMPLETED, FAILED):
        raise _wrong_state(ref, job, "to be cancelled")
    end_unstarted(tx, job.key, cancelled(reason))
    return Cancellation.CANCELLED


def retry(tx: Transaction, ref: JobRef) -> None:
    job = _job(tx, ref)
    if job.state not in (COMPLETED, FAILED):
        raise _wrong_state(ref, job, "to be retried")
    _retry(tx, job)


def retry_all(tx: Transaction, queue_name: str, state: State, finished_by_ms: int, limit: int) -> int:
    queue = tx.existing_queue(queue_name)
    if state not in FINISHED:
        raise WrongState(f"only completed and failed jobs can be retried, not {state} ones")
    rows = tx.db.execute(
        f"SELECT key FROM job WHERE queue = ? AND state = {STATE_NUMBER[state]:d}"
        " AND finished_ms <= ? ORDER BY finished_ms, key LIMIT ?",
        (queue, finished_by_ms, limit),
    ).fetchall()
    for (key,) in rows:
        job = look_up(tx, key)
        assert job is not None
        _retry(tx, job)
    return len(rows)


def _retry(tx: Transaction, job: Held) -> None:
    prev = state_of(job.state, job.priority)
    must_wait = job.has_children and has_pending(tx.db, job.key)
    state = WAITING_CHILDREN if must_wait else READY
    tx.db.execute(
        "UPDATE job SET state = ?, position = ?, entered_ms = ?, attempts_made = 0, crashes = NULL,"
        " started_ms = NULL, finished_ms = NULL, start_by_ms = NULL, result = NULL, failure = NULL, progress = NULL"
        " WHERE key = ?",
        (state, tx.take_numbers(1), tx.now_ms, job.key),
    )
    tx.count(job.queue, counter_of(job.state, job.priority), -1)
    tx.count(job.queue, counter_of(state, job.priority), 1)
    tx.count_grouped(job.queue, job.spec.group, state, 1)
    if job.parent is not None:
        child_back(tx, job.key, job.parent)
    add_log(tx, job, [f"retried by hand from {prev} after {job.attempts_made} attempts"])
    kind = EventKind.WAITING_CHILDREN if must_wait else EventKind.WAITING
    tx.tell(job.queue, Event(kind, job.id, tx.now_ms, job.tenant, prev=prev))
    tx.now_runnable(job.queue)


def promote(tx: Transaction, ref: JobRef) -> None:
    job = _delayed(tx, ref, "to be promoted")
    rows: list[Row] = [(job.key, job.own_id, job.tenant, job.priority, job.spec.group)]
    make_runnable(tx, job.queue, rows, prev=State.DELAYED)


def change_delay(tx: Transaction, ref: JobRef, delay_ms: int) -> None:
    job = _delayed(tx, ref, "for another delay")
    due_ms = tx.now_ms + delay_ms
    tx.db.execute("UPDATE job SET due_ms = ?, position = ? WHERE key = ?", (due_ms, tx.take_numbers(1), job.key))
    tx.tell(job.queue, Event(EventKind.DELAYED, job.id, tx.now_ms, job.tenant, run_at_ms=due_ms))
    tx.now_runnable(job.queue)


def change_priority(tx: Transaction, ref: JobRef, priority: int) -> None:
    job = _job(tx, ref)
    if job.state in (COMPLETED, FAILED):
        raise _wrong_state(ref, job, "for another priority")
    tx.db.execute("UPDATE job SET priority = ? WHERE key = ?", (priority, job.key))
    if job.state == READY:
        tx.db.execute("UPDATE job SET position = ? WHERE key = ?", (tx.take_numbers(1), job.key))
    tx.count(job.queue, counter_of(job.state, job.priority), -1)
    tx.count(job.queue, counter_of(job.state, priority), 1)


def remove(tx: Transaction, ref: JobRef) -> None:
    job = _job(tx, ref)
    if job.state == ACTIVE:
        raise _wrong_state(ref, job, "to be removed; cancel it first")
    if is_next_tick(tx, job.queue, job.id):
        raise WrongState(f"job {ref.id!r} of queue {ref.queue!r} is the next one of a schedule; remove the schedule")
    family = descendants(tx, job.key) if job.has_children else [(job.key, job.state)]
    if any_active(family):
        raise WrongState(f"job {ref.id!r} of queue {ref.queue!r} has a child that is active; cancel that first")
    _forget_and_tell(tx, [key for key, _ in family], remember_ids=False)


def _forget_and_tell(tx: Transaction, keys: Sequence[int], *, remember_ids: bool) -> None:
    for key, queue, own_id, tenant, dedup, state, priority, *_ in forget(tx, keys, remember_ids=remember_ids):
        prev = state_of(state, priority)
        tx.tell(queue, Event(EventKind.REMOVED, own_id or str(key), tx.now_ms, tenant, prev=prev))
        if dedup is not None and state not in (COMPLETED, FAILED):
            release_dedup(tx, queue, dedup, key)
            tx.db.execute("DELETE FROM dedup WHERE queue = ? AND id = ? AND owner = ?", (queue, dedup, key))


def update_data(tx: Transaction, ref: JobRef, data: bytes) -> None:
    tx.db.execute("UPDATE body SET data = ? WHERE key = ?", (data, tx.key(ref)))


def set_progress(tx: Transaction, ref: JobRef, progress: bytes) -> None:
    job = _job(tx, ref)
    tx.db.execute("UPDATE job SET progress = ? WHERE key = ?", (progress, job.key))
    tx.tell(job.queue, Event(EventKind.PROGRESS, job.id, tx.now_ms, job.tenant, value=progress))


def log(tx: Transaction, ref: JobRef, lines: Sequence[str]) -> int:
    return add_log(tx, _job(tx, ref), lines)


def add_log(tx: Transaction, job: Held, lines: Sequence[str]) -> int:
    last, first = tx.db.execute("SELECT max(line), min(line) FROM log WHERE job = ?", (job.key,)).fetchone()
    start = (last or 0) + 1
    rows: list[Row] = [(job.key, start + n, storable(line)) for n, line in enumerate(lines)]
    if rows:
        tx.execute_rows("INSERT INTO log(job, line, text) VALUES", "", rows)
    newest = start + len(rows) - 1
    oldest = max(first or 1, newest - job.spec.keep_logs + 1)
    tx.db.execute("DELETE FROM log WHERE job = ? AND line < ?", (job.key, oldest))
    return newest - oldest + 1


# ── queues ───────────────────────────────────────────────────────────────────────────────


def pause(tx: Transaction, name: str) -> None:
    queue = tx.queue(name)
    if tx.counters(queue, "paused") == [0]:
        tx.count(queue, "paused", 1)
        tx.tell(queue, Event(EventKind.PAUSED, at_ms=tx.now_ms))


def resume(tx: Transaction, name: str) -> None:
    queue = tx.existing_queue(name)
    if tx.counters(queue, "paused") == [1]:
        tx.count(queue, "paused", -1)
        tx.tell(queue, Event(EventKind.RESUMED, at_ms=tx.now_ms))
        tx.now_runnable(queue)


def drain(tx: Transaction, name: str, *, delayed: bool) -> int:
    queue = tx.existing_queue(name)
    states = f"{READY}, {DELAYED}" if delayed else f"{READY}"
    rows = tx.db.execute(
        f"SELECT key FROM job WHERE queue = ? AND state IN ({states}){_NO_TICK} LIMIT ?", (queue, queue, BULK)
    ).fetchall()
    _forget_and_tell(tx, [key for (key,) in rows], remember_ids=True)
    return len(rows)


def clean(tx: Transaction, name: str, state: State, entered_by_ms: int, limit: int) -> int:
    queue = tx.existing_queue(name)
    if state == State.ACTIVE:
        raise WrongState("active jobs cannot be cleaned; cancel them")
    keys: list[int] = []
    for part in parts_of(state):
        keys += _old_keys(tx, queue, state, part, entered_by_ms, limit - len(keys))
    if state in FINISHED:
        forget(tx, keys, remember_ids=True)
    else:
        _forget_and_tell(tx, keys, remember_ids=True)
    if keys:
        tx.tell(queue, Event(EventKind.CLEANED, at_ms=tx.now_ms, count=len(keys)))
    return len(keys)


def _old_keys(tx: Transaction, queue: int, state: State, part: str, entered_by_ms: int, limit: int) -> list[int]:
    """In the order of the state's index: to sort by age would read all jobs for each portion."""
    entered, but = ("finished_ms", "") if state in FINISHED else ("entered_ms", _NO_TICK)
    rows = tx.db.execute(
        f"SELECT key FROM job WHERE queue = ? AND state = {STATE_NUMBER[state]:d}{part} AND {entered} <= ?{but}"
        f" ORDER BY {', '.join(ORDER[state])} LIMIT ?",
        (queue, entered_by_ms, *([queue] if but else []), limit),
    ).fetchall()
    return [key for (key,) in rows]


def obliterate(tx: Transaction, name: str, *, force: bool) -> bool:
    """Remove a portion of the queue; whether nothing is left. It stays paused until then."""
    queue = tx.existing_queue(name)
    (active,) = tx.counters(queue, "active")
    if active and not force:
        raise WrongState(f"queue {name!r} has {active} active jobs: stop its workers first, or force")
    rows = tx.db.execute("SELECT key FROM job WHERE queue = ? LIMIT ?", (queue, BULK)).fetchall()
    forget(tx, [key for (key,) in rows], remember_ids=False, with_queue=queue)
    if len(rows) == BULK:
        pause(tx, name)
        return False
    (paused,) = tx.counters(queue, "paused")
    tx.count(queue, "paused", -paused)
    tx.count(queue, "limited", -tx.counters(queue, "limited")[0])
    forget_all(tx, queue)
    for table in ("dedup", "id_memory", "event", "schedule", "queue_limit", *moving_tables(tx.db)):
        tx.db.execute(f"DELETE FROM {table} WHERE queue = ?", (queue,))
    tx.unlist(queue)
    return True


# ── shared ───────────────────────────────────────────────────────────────────────────────


def _job(tx: Transaction, ref: JobRef) -> Held:
    job = look_up(tx, tx.key(ref))
    if job is None:
        raise JobMissing(f"no job {ref.id!r} in queue {ref.queue!r}")
    return job


def _delayed(tx: Transaction, ref: JobRef, purpose: str) -> Held:
    job = _job(tx, ref)
    if job.state != DELAYED:
        raise _wrong_state(ref, job, purpose)
    return job


def _wrong_state(ref: JobRef, job: Held, purpose: str) -> WrongState:
    return WrongState(
        f"job {ref.id!r} of queue {ref.queue!r} is {state_of(job.state, job.priority)}, not in a state {purpose}"
    )
