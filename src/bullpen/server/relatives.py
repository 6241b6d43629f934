"""What a job tells of its relatives, which may be none of the caller's: its parent, and the child with which it failed.

The reason of a failure names no child of another tenant: see the stores. Of other queues it may.
"""

from collections.abc import Iterable, Sequence
from typing import TypeVar

import msgspec

from bullpen.job.events import Event
from bullpen.job.record import Failure, JobRecord
from bullpen.remote.messages import RemoteJob
from bullpen.server.access.caller import Caller
from bullpen.server.descendants import sees
from bullpen.server.looking import look_up
from bullpen.server.models.jobs import without_child
from bullpen.stores.base import Store

AnyJob = TypeVar("AnyJob", JobRecord, RemoteJob)


async def without_strangers(store: Store, caller: Caller, jobs: Sequence[AnyJob]) -> list[AnyJob]:
    """The jobs, without what they tell of others that are not the caller's to see."""
    if caller.tenant is None and caller.queues is None:
        return list(jobs)
    known = await look_up(store, [job.parent for job in jobs if job.parent is not None])
    return [
        msgspec.structs.replace(
            job,
            parent=job.parent if job.parent and sees(caller, job.parent, known.get(job.parent)) else None,
            failure=_without_child(caller, job.failure),
        )
        for job in jobs
    ]


def events_without_strangers(caller: Caller, events: Iterable[Event]) -> list[Event]:
    """The same of what happened to a job."""
    return [msgspec.structs.replace(event, failure=_without_child(caller, event.failure)) for event in events]


def _without_child(caller: Caller, failure: Failure | None) -> Failure | None:
    if failure is None or caller.queues is None:
        return failure
    return msgspec.structs.replace(failure, message=without_child(failure.message))
