"""The transactional outbox: a job that is added if, and only if, your transaction is committed.

    with Session(engine) as session, session.begin():
        session.add(order)
        outbox.add(session, charge.prepare(order_id=order.id))

The row is written by your own session, so it stands or falls with what else the session writes. A
relay (`OutboxRelay`) then adds the job to the queue, at once or when the queue's store is back.

The table is `bullpen_outbox` on `outbox.metadata`: make it with your own migrations, or with
`outbox.metadata.create_all(engine)`. The database of `Records` has one already.
"""

import uuid
from typing import Any, Protocol

import msgspec
from sqlalchemy import Insert, insert

from bullpen.clock import SYSTEM_CLOCK
from bullpen.job.spec import NewJob
from bullpen.records.tables.outbox import OutboxBase, OutboxRow

metadata = OutboxBase.metadata
"""For `create_all`, and for Alembic's `target_metadata`."""

_encode = msgspec.json.Encoder().encode
_decode = msgspec.json.Decoder(NewJob).decode


class AnySession(Protocol):
    """A `Session` or an `AsyncSession`."""

    def add(self, instance: object) -> None: ...


def add(session: AnySession, job: NewJob) -> str:
    """Have this job added once the session's transaction is committed; the id that it will have.

    The session writes the row when it flushes, at the commit at the latest. `job` is what `prepare`
    of a job type or a queue gives.
    """
    values = row_of(job)
    session.add(OutboxRow(**values))
    return str(values["job_id"])


def statement(job: NewJob) -> Insert:
    """The same for a plain connection: `connection.execute(outbox.statement(job))`."""
    return insert(OutboxRow).values(**row_of(job))


def row_of(job: NewJob) -> dict[str, Any]:
    """The columns of a job's row. Its id is fixed here, so that however often it is sent it is one job."""
    job_id = job.id or f"outbox-{uuid.uuid4().hex}"
    return {
        "job_id": job_id,
        "queue": job.queue,
        "job": _encode(msgspec.structs.replace(job, id=job_id)),
        "written_ms": SYSTEM_CLOCK.now_ms(),
        "held_until_ms": 0,
    }


def job_of(stored: bytes) -> NewJob:
    return _decode(stored)
