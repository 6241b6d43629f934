"""From rows to records."""

from functools import lru_cache

import msgspec

from bullpen.job.record import Failure, JobRecord, JobRef
from bullpen.job.spec import JobSpec
from bullpen.job.state import State
from bullpen.stores.base import FOREVER_MS
from bullpen.stores.sqlite.schema import ACTIVE, COMPLETED, DELAYED, FAILED, READY, WAITING_CHILDREN
from bullpen.stores.sqlite.transaction import Row

COLUMNS = (
    "job.key, job.own_id, job.state, job.priority, job.added_ms, job.due_ms, job.started_ms, job.finished_ms,"
    " job.worker, job.epoch, job.attempts_made, job.crashes, job.cancelling, job.note, job.progress, job.result,"
    " job.failure, job.stacks, job.parked, job.doomed, job.parent_ref, body.name, body.data, body.spec"
)
SELECT = f"SELECT {COLUMNS} FROM job JOIN body ON body.key = job.key"
# A job that waits, read as it will be once it is claimed, so that its record is made once.
SELECT_TO_CLAIM = (
    f"SELECT job.key, job.own_id, {ACTIVE}, job.priority, job.added_ms, job.due_ms, :now_ms, job.finished_ms,"
    " :worker, job.epoch + 1, job.attempts_made, job.crashes, job.cancelling, NULL, job.progress, job.result,"
    " job.failure, job.stacks, job.parked, job.doomed, job.parent_ref, body.name, body.data, body.spec,"
    " job.start_by_ms FROM job JOIN body ON body.key = job.key"
)

STATE_NUMBER: dict[State, int] = {
    State.WAITING: READY,
    State.PRIORITIZED: READY,
    State.DELAYED: DELAYED,
    State.ACTIVE: ACTIVE,
    State.WAITING_CHILDREN: WAITING_CHILDREN,
    State.COMPLETED: COMPLETED,
    State.FAILED: FAILED,
}
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


def _ref(text: str) -> JobRef:
    queue, _, job_id = text.partition("/")
    return JobRef(queue, job_id)
