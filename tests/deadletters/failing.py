"""Failed jobs, made by hand."""

import uuid
from collections.abc import Sequence
from typing import Any

from bullpen import Failure, JobRef, Queue, Store
from bullpen.job.verdicts import Failed, Settlement

STACK = """Traceback (most recent call last):
  File "/srv/app/worker.py", line 12, in run
    send(user)
  File "/srv/app/mail.py", line {line}, in send
    raise ValueError("no such user")
ValueError: no such user
"""


async def fail(
    store: Store, *, queue: str = "mail", name: str = "welcome", failure: Failure | None = None, **options: Any
) -> JobRef:
    """Add a job and fail it; its name and data may be anything."""
    data = options.pop("data", {})
    job = await Queue(store, queue, clock=store.clock).add(name, data, **options)
    await fail_waiting(store, [failure or Failure("broken", type="ValueError")], queue=queue)
    return job.ref


async def fail_waiting(store: Store, failures: Sequence[Failure], queue: str = "mail") -> None:
    """Fail as many waiting jobs, each in its own way."""
    claimed = await store.claim({queue: len(failures)}, worker="w", lease_ms=30_000, request=uuid.uuid4().hex)
    assert len(claimed.jobs) == len(failures)
    settlements = [Settlement(job.lease, Failed(how)) for job, how in zip(claimed.jobs, failures, strict=True)]
    await store.settle(settlements, request=uuid.uuid4().hex)
