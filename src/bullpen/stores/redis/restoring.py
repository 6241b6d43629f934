"""Moving in: jobs of another store, written so that BullMQ reads them as its own."""

import msgspec

from bullpen.errors import MoveRefused, WrongState
from bullpen.job.names import is_generated_id
from bullpen.job.record import JobRecord
from bullpen.job.spec import NewJob
from bullpen.job.state import FINISHED, State
from bullpen.job.words import storable
from bullpen.stores.base import FOREVER_MS
from bullpen.stores.moving import ID_MARGIN, Cargo, Move, SavedJob, Subject
from bullpen.stores.redis import packing, scripts
from bullpen.stores.redis.asking import Message, as_text, encode, failure_details
from bullpen.stores.redis.codec import FIELDS, encode_options
from bullpen.stores.redis.site import Site

_encode_json = msgspec.json.Encoder().encode


async def begin_move(site: Site, queue: str, move: Move) -> None:
    is_paused = "paused" if move.paused else ""
    numbers = str(move.last_id), str(ID_MARGIN)
    word = await site.ask(scripts.BEGIN_MOVE, queue, move.origin, move.run, *numbers, is_paused)
    if word == b"occupied":
        raise MoveRefused(
            f"queue {queue!r} on the target has jobs that are not from this move: move to another file or prefix,"
            " or empty it first"
        )


async def restore(site: Site, queue: str, cargo: Cargo, run: str) -> int:
    message = {
        "now": site.clock.now_ms(),
        "run": run,
        "departed": cargo.departed,
        "jobs": [_job(queue, job) for job in cargo.jobs],
        "ids": cargo.ids,
        "subjects": [_subject(queue, subject) for subject in cargo.subjects],
    }
    match await site.ask(scripts.RESTORE, queue, encode(message)):
        case int(new):
            return new
        case [b"taken", job_id]:
            raise MoveRefused(
                f"job {job_id.decode()!r} of queue {queue!r}: the target gave this id to another job; begin again"
            )
        case _:
            raise MoveRefused(f"queue {queue!r}: another mover has taken over, or the queue was removed; begin again")


def _job(queue: str, job: SavedJob) -> Message:
    record = job.record
    if record.state in (State.ACTIVE, State.WAITING_CHILDREN):
        raise WrongState(f"job {job.id!r} is {record.state}: such jobs cannot be restored")
    message: Message = {
        "id": record.id,
        "state": record.state,
        "name": record.name,
        "priority": record.priority,
        "fields": [text for pair in _fields(queue, job).items() for text in pair],
        "logs": [storable(line) for line in job.logs],
        **packing.steps(job),
    }
    if record.state in FINISHED:
        return message | {"finished": record.finished_ms or 0}
    more = {
        "due": _due_ms(record) if record.state == State.DELAYED else None,
        "tenant": record.tenant,
        "group": record.spec.group,
        "start_by": job.start_by_ms,
        "subject": None if job.subject is None else _subject(queue, job.subject),
    }
    return message | {word: value for word, value in more.items() if value is not None}


def _subject(queue: str, subject: Subject) -> Message:
    message: Message = {"id": subject.id, "owner": subject.owner_id}
    if subject.until_ms is not None:
        message["until_ms"] = subject.until_ms
    if (kept := subject.kept) is not None:
        options = encode_options(msgspec.structs.replace(kept, queue=queue)).decode()
        message["kept"] = {"name": kept.name, "data": as_text(kept.data, kept.name), "options": options}
        if kept.id is not None:
            message["kept"]["id"] = kept.id
    return message


def _fields(queue: str, job: SavedJob) -> dict[str, str]:
    """The stored record: what `reading.read_record` reads, and what BullMQ does."""
    record = job.record
    as_added = NewJob(queue, record.name, record.data, None if is_generated_id(job.id) else job.id, record.spec)
    # Readers of BullMQ take the sum of these two for the time at which a delayed job is due.
    is_delayed = record.state == State.DELAYED
    delay_ms = max(0, _due_ms(record) - record.added_ms) if is_delayed else 0
    words: dict[str, str | int | None] = {
        "name": record.name,
        "data": as_text(record.data, record.ref),
        "options": encode_options(as_added).decode(),
        "added": record.added_ms,
        "delay": delay_ms,
        "priority": record.priority,
        "entered": job.entered_ms,
        "start_by": job.start_by_ms,
        "tenant": record.tenant,
        "group": record.spec.group,
        "dedup_id": record.spec.dedup.id if record.spec.dedup else None,
        "started": record.started_ms,
        "finished": record.finished_ms if record.state in FINISHED else None,
        "worker": record.worker,
        "epoch": record.epoch or None,
        "attempts_made": record.attempts_made or None,
        "stalls": record.stalls or None,
        "progress": None if record.progress is None else as_text(record.progress, record.ref),
        "result": None if record.result is None else as_text(record.result, record.ref),
        "note": record.note and storable(record.note),
        "parked": _encode_json(record.parked).decode() if is_delayed and record.parked is not None else None,
        "cancelling": record.cancelling and storable(record.cancelling),
        "doomed": None if record.doomed is None else storable(record.doomed.message),
        **_failure_words(record),
    }
    fields = {FIELDS[word]: str(value) for word, value in words.items() if value is not None}
    return fields | {FIELDS["crash"] + kind: str(count) for kind, count in record.crashes.items()}


def _due_ms(record: JobRecord) -> int:
    # Only who waits for a signal alone is delayed and has no time.
    return FOREVER_MS if record.run_at_ms is None else record.run_at_ms


def _failure_words(record: JobRecord) -> dict[str, str]:
    words: dict[str, str] = {}
    if record.failure is not None:
        words["failed_reason"] = storable(record.failure.message)
        words["failure"] = f"{record.attempts_made} {failure_details(record.failure)}"
    if record.stacks:
        words["stacks"] = _encode_json([storable(stack) for stack in record.stacks]).decode()
    return words
