"""Schedules: one row each, whose newest tick is a job like others."""

import sqlite3
from collections.abc import Sequence

import msgspec

from bullpen.errors import ScheduleMissing
from bullpen.job.events import Event, EventKind
from bullpen.job.record import Lease
from bullpen.job.schedule import Overlap, Schedule, ScheduleRecord, Tick, tick_of
from bullpen.job.spec import NewJob
from bullpen.stores.base import ScheduleOutcome, TickStart
from bullpen.stores.sqlite.adding import add
from bullpen.stores.sqlite.forgetting import forget
from bullpen.stores.sqlite.rows import state_of
from bullpen.stores.sqlite.schema import ACTIVE, DELAYED, READY
from bullpen.stores.sqlite.settling import look_up
from bullpen.stores.sqlite.tokens import key_and_token
from bullpen.stores.sqlite.transaction import Row, Transaction, find_key

PENDING_TICKS = "SELECT tick FROM schedule WHERE queue = ?"
_IDLE_AT_ONCE = 100
_encode = msgspec.json.Encoder().encode
_decode = msgspec.json.Decoder(Schedule).decode

# To be claimed for the first time: one that was handed back is on its way already.
_IS_PENDING = f"(job.state IN ({READY}, {DELAYED}) AND job.started_ms IS NULL)"
_SELECT = (
    "SELECT schedule.definition, schedule.last_ms, schedule.count, schedule.ticks, schedule.skipped,"
    " schedule.paused, schedule.ended, ifnull(" + _IS_PENDING + ", 0) FROM schedule"
    " LEFT JOIN job ON job.queue = schedule.queue AND job.own_id = schedule.tick"
)


# ── changing ─────────────────────────────────────────────────────────────────────────────


def put(
    tx: Transaction, schedule: Schedule, next_ms: int | None, seen_ms: int | None, *, count: int, paused: bool
) -> ScheduleOutcome:
    queue = tx.queue_number_if_known(schedule.queue)
    known = _find(tx.db, queue, schedule.id)
    if (None if known is None else known.last_ms) != seen_ms:
        return ScheduleOutcome.CHANGED
    tick = Tick(schedule.id, (seen_ms or tx.now_ms) if next_ms is None else next_ms)
    old_tick = Tick(schedule.id, known.last_ms) if known is not None and known.pending else None
    if next_ms is not None and tick != old_tick and _state(tx.db, queue, tick.job_id) is not None:
        return ScheduleOutcome.TAKEN
    queue = tx.queue(schedule.queue)
    if old_tick is not None:
        _drop(tx, queue, old_tick)
    ticks = 0 if known is None else known.ticks
    tx.db.execute(
        "INSERT OR REPLACE INTO schedule(queue, id, definition, last_ms, tick, count, ticks, skipped, paused, ended,"
        " running) VALUES(?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?)",
        (
            queue, schedule.id, _encode(schedule), tick.at_ms, "" if next_ms is None else tick.job_id, count,
            ticks + (next_ms is not None) - (old_tick is not None), 0 if known is None else known.skipped, paused,
            next_ms is None and not paused, _running(tx.db, queue, schedule.id),
        ),
    )  # fmt: skip
    if next_ms is not None:
        _add_tick(tx, schedule, tick)
    return ScheduleOutcome.DONE


def advance(tx: Transaction, queue_name: str, schedule_id: str, tick_ms: int, next_ms: int | None) -> bool:
    queue = tx.queue_number_if_known(queue_name)
    known = _find(tx.db, queue, schedule_id)
    if known is None or known.last_ms != tick_ms or known.pending or known.paused or known.ended:
        return False
    if next_ms is None:
        tx.db.execute("UPDATE schedule SET ended = 1 WHERE queue = ? AND id = ?", (queue, schedule_id))
        return True
    tick = Tick(schedule_id, next_ms)
    if _state(tx.db, queue, tick.job_id) is not None:
        return False
    tx.db.execute(
        "UPDATE schedule SET last_ms = ?, tick = ?, count = count + 1, ticks = ticks + 1 WHERE queue = ? AND id = ?",
        (next_ms, tick.job_id, queue, schedule_id),
    )
    _add_tick(tx, known.schedule, tick)
    return True


def start_tick(tx: Transaction, lease: Lease, tick: Tick | None) -> TickStart:
    key, token = key_and_token(lease)
    held = look_up(tx, key, token)
    known = None if held is None or tick is None else _find(tx.db, held.queue, tick.schedule)
    if held is None or tick is None or known is None:
        return TickStart(None)
    if known.schedule.overlap == Overlap.ALLOW:
        return TickStart(known)
    running = _running(tx.db, held.queue, tick.schedule)
    if running is not None and running != lease.ref.id and _is_at_work(tx, held.queue, running):
        if held.attempts_made == 0:
            tx.db.execute(
                "UPDATE schedule SET skipped = skipped + 1 WHERE queue = ? AND id = ?", (held.queue, tick.schedule)
            )
        return TickStart(_find(tx.db, held.queue, tick.schedule), running)
    tx.db.execute(
        "UPDATE schedule SET running = ? WHERE queue = ? AND id = ?", (lease.ref.id, held.queue, tick.schedule)
    )
    return TickStart(known)


def remove(tx: Transaction, queue_name: str, schedule_id: str) -> None:
    queue = tx.queue_number_if_known(queue_name)
    known = _find(tx.db, queue, schedule_id)
    if known is None:
        raise _missing(queue_name, schedule_id)
    if known.pending:
        _drop(tx, queue, Tick(schedule_id, known.last_ms))
    tx.db.execute("DELETE FROM schedule WHERE queue = ? AND id = ?", (queue, schedule_id))


def is_next_tick(tx: Transaction, queue: int, job_id: str) -> bool:
    """Whether a schedule would stop without this job."""
    tick = tick_of(job_id)
    if tick is None:
        return False
    row = tx.db.execute(
        "SELECT 1 FROM schedule WHERE queue = ? AND id = ? AND tick = ?", (queue, tick.schedule, job_id)
    ).fetchone()
    return row is not None and _state(tx.db, queue, job_id) in (READY, DELAYED)


def _drop(tx: Transaction, queue: int, tick: Tick) -> None:
    key = find_key(tx.db, queue, tick.job_id)
    for _, _, _, tenant, _, state, priority, *_ in forget(tx, [] if key is None else [key], remember_ids=False):
        prev = state_of(state, priority)
        tx.tell(queue, Event(EventKind.REMOVED, tick.job_id, tx.now_ms, tenant, prev=prev))


def _add_tick(tx: Transaction, schedule: Schedule, tick: Tick) -> None:
    spec = msgspec.structs.replace(schedule.spec, delay_ms=max(0, tick.at_ms - tx.now_ms))
    add(tx, [NewJob(schedule.queue, schedule.name, schedule.data, tick.job_id, spec)])


# ── looking ──────────────────────────────────────────────────────────────────────────────


def one(db: sqlite3.Connection, queue_name: str, schedule_id: str) -> ScheduleRecord:
    record = _find(db, _queue_number(db, queue_name), schedule_id)
    if record is None:
        raise _missing(queue_name, schedule_id)
    return record


def all_of(db: sqlite3.Connection, queue_name: str) -> list[ScheduleRecord]:
    queue = _queue_number(db, queue_name)
    return [_record(row) for row in db.execute(f"{_SELECT} WHERE schedule.queue = ? ORDER BY schedule.id", (queue,))]


def idle(db: sqlite3.Connection, queue_names: Sequence[str], now_ms: int) -> list[ScheduleRecord]:
    found: list[ScheduleRecord] = []
    for name in queue_names:
        rows = db.execute(
            f"{_SELECT} WHERE schedule.queue = ? AND schedule.paused = 0 AND schedule.ended = 0"
            f" AND schedule.last_ms <= ? AND NOT ifnull({_IS_PENDING}, 0) ORDER BY schedule.last_ms LIMIT ?",
            (_queue_number(db, name), now_ms, _IDLE_AT_ONCE),
        )
        found += map(_record, rows)
    return found


def _find(db: sqlite3.Connection, queue: int, schedule_id: str) -> ScheduleRecord | None:
    row = db.execute(f"{_SELECT} WHERE schedule.queue = ? AND schedule.id = ?", (queue, schedule_id)).fetchone()
    return None if row is None else _record(row)


def _record(row: Row) -> ScheduleRecord:
    definition, last_ms, count, ticks, skipped, paused, ended, pending = row
    return ScheduleRecord(
        schedule=_decode(definition),
        last_ms=last_ms,
        pending=bool(pending),
        count=count,
        ticks=ticks,
        skipped=skipped,
        paused=bool(paused),
        ended=bool(ended),
    )


def _queue_number(db: sqlite3.Connection, name: str) -> int:
    row = db.execute("SELECT id FROM queue WHERE name = ?", (name,)).fetchone()
    return 0 if row is None else int(row[0])


def _running(db: sqlite3.Connection, queue: int, schedule_id: str) -> str | None:
    row = db.execute("SELECT running FROM schedule WHERE queue = ? AND id = ?", (queue, schedule_id)).fetchone()
    return None if row is None or row[0] is None else str(row[0])


def _is_at_work(tx: Transaction, queue: int, job_id: str) -> bool:
    """Whether the job runs and its worker is alive, as far as its lease says."""
    row = tx.db.execute(
        f"SELECT 1 FROM job WHERE queue = ? AND own_id = ? AND state = {ACTIVE} AND lease_until_ms >= ?",
        (queue, job_id, tx.now_ms),
    ).fetchone()
    return row is not None


def _state(db: sqlite3.Connection, queue: int, job_id: str) -> int | None:
    row = db.execute("SELECT state FROM job WHERE queue = ? AND own_id = ?", (queue, job_id)).fetchone()
    return None if row is None else int(row[0])


def _missing(queue: str, schedule_id: str) -> ScheduleMissing:
    return ScheduleMissing(f"no schedule {schedule_id!r} in queue {queue!r}")
