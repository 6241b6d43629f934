"""From rows to records."""

from collections.abc import Sequence
from functools import lru_cache

import msgspec

from bullpen.job.record import Failure, JobRecord, JobRef
from bullpen.job.spec import JobSpec
from bullpen.job.state import State
from bullpen.stores.base import FOREVER_MS
from bullpen.stores.sqlite.schema import ACTIVE, COMPLETED, DELAYED, FAILED, READY, WAITING_CHILDREN
from bullpen.stores.sqlite.transaction import Row, Transaction, as_list

COLUMNS = (
    "job.key, job.own_id, job.state, job.priority, job.added_ms, job.due_ms, job.started_ms, job.finished_ms,"
    " job.worker, job.epoch, job.attempts_made, job.crashes, job.cancelling, job.note, job.progress, job.result,"
    " job.failure, job.stacks, job.parked, job.doomed, job.parent_ref, body.name, body.data, body.spec"
)
SELECT = f"SELECT {COLUMNS} FROM job JOIN body ON body.key = job.key"
_SELECT_THESE = f"{SELECT} WHERE job.key IN (SELECT value FROM json_each(?))"
# Most jobs are claimed for the first time, with nothing behind them. Their records are made of these few columns, since
# each column of a row costs several calls in the driver, and gives the interpreter lock away. Of another job the last
# column says by when it must start, and the rest of it is looked up.
SELECT_TO_CLAIM = f"""\
SELECT job.key, job.own_id, job.priority, job.added_ms, body.name, body.data, body.spec,
  CASE WHEN job.epoch > 0 OR job.attempts_made > 0 OR coalesce(job.due_ms, job.start_by_ms, job.finished_ms,
    job.crashes, job.progress, job.result, job.failure, job.stacks, job.parked, job.doomed, job.parent_ref) IS NOT NULL
  THEN coalesce(job.start_by_ms, {FOREVER_MS}) END
FROM job JOIN body ON body.key = job.key"""

STATE_NUMBER: dict[State, int] = {
    State.WAITING: READY,
    State.PRIORITIZED: READY,
    State.DELAYED: DELAYED,
    State.ACTIVE: ACTIVE,
    State.WAITING_CHILDREN: WAITING_CHILDREN,
    State.COMPLETED: COMPLETED,
    State.FAILED: FAILED,
}
_ACTIVE = State.ACTIVE  # looked up once, not for each job: see completing.py
_STATE_OF = {number: state for state, number in STATE_NUMBER.items() if number != READY}

encode = msgspec.json.Encoder().encode
decode_failure = msgspec.json.Decoder(Failure).decode
decode_stacks = msgspec.json.Decoder(tuple[str, ...]).decode
decode_names = msgspec.json.Decoder(tuple[str, ...]).decode
decode_crashes = msgspec.json.Decoder(dict[str, int]).decode
# Most jobs of a queue have the same spec, so each distinct one is read once.
decode_spec = lru_cache(maxsize=1024)(msgspec.json.Decoder(JobSpec).decode)


def state_of(number: int, priority: int) -> State:
    if number == READY:
        return State.PRIORITIZED if priority else State.WAITING
    return _STATE_OF[number]


def run_at_ms(due_ms: int | None) -> int | None:
    """As it is told: what only a signal wakes has no due time."""
    return None if due_ms is None or due_ms >= FOREVER_MS else due_ms


def record_from(row: Row, queue: str) -> JobRecord:
    (
        key, own_id, state, priority, added_ms, due_ms, started_ms, finished_ms, worker, epoch, attempts_made,
        crashes, cancelling, note, progress, result, failure, stacks, parked, doomed, parent, name, data, spec,
    ) = row  # fmt: skip
    return JobRecord(
        JobRef(queue, own_id or str(key)),
        name,
        data,
        state_of(state, priority),
        decode_spec(spec),
        priority,
        attempts_made,
        epoch,
        decode_crashes(crashes) if crashes else {},
        added_ms,
        run_at_ms(due_ms),
        started_ms,
        finished_ms,
        progress,
        result,
        decode_failure(failure) if failure else None,
        decode_stacks(stacks) if stacks else (),
        worker,
        cancelling,
        note,
        decode_names(parked) if parked is not None else None,
        decode_failure(doomed) if doomed else None,
        _ref(parent) if parent else None,
    )


def records_of_claimed(tx: Transaction, queue: str, rows: Sequence[Row], worker: str) -> list[JobRecord]:
    """The records of jobs (rows of SELECT_TO_CLAIM) that were made active just now."""
    others = [row[0] for row in rows if row[-1] is not None]
    found = {} if not others else {row[0]: row for row in tx.db.execute(_SELECT_THESE, (as_list(others),))}
    return [
        _fresh(row, queue, worker, tx.now_ms) if row[-1] is None else record_from(found[row[0]], queue) for row in rows
    ]


def _fresh(row: Row, queue: str, worker: str, now_ms: int) -> JobRecord:
    key, own_id, priority, added_ms, name, data, spec, _ = row
    return JobRecord(
        JobRef(queue, own_id or str(key)),
        name,
        data,
        _ACTIVE,
        decode_spec(spec),
        priority,
        0,
        1,
        {},
        added_ms,
        None,
        now_ms,
        worker=worker,
    )


def _ref(text: str) -> JobRef:
    queue, _, job_id = text.partition("/")
    return JobRef(queue, job_id)
