"""A context for calling a job type directly, as in a unit test: no store, no worker.

Durable steps are recorded in memory. A sleep takes no time; a signal is there if the test gave it.
"""

import time
from collections.abc import Mapping, Sequence
from typing import Any

from bullpen.job.options import JobOptions
from bullpen.job.record import JobRecord, JobRef
from bullpen.job.spec import NewJob
from bullpen.job.state import State
from bullpen.queue.payload import to_bytes
from bullpen.stores.base import ChildState
from bullpen.testing.steps import DirectSteps
from bullpen.worker.context import Context
from bullpen.worker.desk import FixedDesk
from bullpen.worker.family import ChildOutcome


class RecordingContext(Context):
    """A context that keeps what the handler says, for the test to look at."""

    def __init__(
        self,
        job: JobRecord,
        data: Any,
        signals: Mapping[str, Any] | None = None,
        children: Sequence[ChildOutcome] = (),
    ) -> None:
        self._words = _Words()
        self._direct = DirectSteps(job, signals or {})
        self._kin = _Kin(children)
        super().__init__(job, data, FixedDesk(self._words, self._direct, self._kin))

    @property
    def logs(self) -> list[str]:
        """The lines that the handler logged."""
        return self._words.lines

    @property
    def progress_values(self) -> list[Any]:
        """What it said of its progress, in order."""
        return self._words.progress_values

    @property
    def sent_signals(self) -> list[tuple[JobRef, str, Any]]:
        """The signals that the handler sent, each with its payload."""
        return self._direct.sent

    @property
    def follow_ups(self) -> list[NewJob]:
        """The jobs that would be added with its completion."""
        return self._words.follow_ups

    @property
    def added_children(self) -> list[NewJob]:
        """The jobs that it added as children."""
        return self._kin.added


def test_context(
    name: str = "job",
    data: Any = None,
    *,
    queue: str = "default",
    id: str = "1",  # noqa: A002 - the option's name everywhere
    attempt: int = 1,
    attempts: int | None = None,
    tenant: str | None = None,
    workspace: str | None = None,
    headers: Mapping[str, str] | None = None,
    epoch: int = 1,
    cancel_reason: str | None = None,
    signals: Mapping[str, Any] | None = None,
    children: Sequence[ChildOutcome] = (),
) -> RecordingContext:
    """A context to hand to a job type: `await welcome(test_context(attempt=2), user_id=42)`.

    `cancel_reason` lets the handler see that its job is to stop; `children` are those that it finds. `signals`
    are those that it can wait for, by name, each with its payload: `test_context(signals={"approved": {"by": "ada"}})`.
    """
    if attempt < 1:
        raise ValueError(f"attempt: 1 for the first try, not {attempt}")
    now_ms = time.time_ns() // 1_000_000
    tries = max(attempt, attempts or 1)
    options = JobOptions(attempts=tries, tenant=tenant, workspace=workspace, headers=headers or {})
    payload = {} if data is None else data
    job = JobRecord(
        JobRef(queue, id),
        name,
        to_bytes(payload, what="data"),
        State.ACTIVE,
        options.to_spec(now_ms),
        attempts_made=attempt - 1,
        epoch=epoch,
        added_ms=now_ms,
        started_ms=now_ms,
        worker="test",
    )
    context = RecordingContext(job, payload, signals, children)
    if cancel_reason is not None:
        context.mark_cancelled(cancel_reason)
    return context


# Its name begins like a test's, and it is imported into test modules.
setattr(test_context, "__test__", False)  # noqa: B010 - a plain assignment is no attribute that type checkers know


class _Words:
    """A reporter that sends nothing."""

    def __init__(self) -> None:
        self.lines: list[str] = []
        self.progress_values: list[Any] = []
        self.follow_ups: list[NewJob] = []

    def log(self, line: str) -> None:
        self.lines.append(str(line))

    def progress(self, value: Any) -> None:
        to_bytes(value, what="progress")  # what no store would take is refused here too
        self.progress_values.append(value)

    def then(self, job: NewJob) -> None:
        self.follow_ups.append(job)


class _Kin:
    """A family without a store: what is added is pending for ever."""

    def __init__(self, children: Sequence[ChildOutcome]) -> None:
        self.added: list[NewJob] = []
        self._known = list(children)

    async def children(self) -> list[ChildOutcome]:
        return list(self._known)

    async def add(self, jobs: Sequence[NewJob]) -> list[JobRef]:
        refs = [JobRef(job.queue, job.id or f"child-{len(self.added) + n}") for n, job in enumerate(jobs, 1)]
        self.added += jobs
        self._known += [ChildOutcome(ref, ChildState.PENDING) for ref in refs]
        return refs
