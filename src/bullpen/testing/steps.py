"""Durable steps in a test that calls its handler directly."""

from collections.abc import Callable, Mapping
from typing import Any

from bullpen.errors import BadStep
from bullpen.job.record import Failure, JobRecord, JobRef
from bullpen.job.verdicts import Parked
from bullpen.journal.program import Program, Terms
from bullpen.journal.steps import Steps
from bullpen.journal.sync import SyncSteps
from bullpen.queue.payload import to_bytes
from bullpen.stores.base import Delivery
from bullpen.testing.clock import ManualClock
from bullpen.testing.memory import MemoryJournal
from bullpen.worker.judging import describe
from bullpen.worker.options import RetryPolicy


class DirectSteps:
    """Takes the place of a worker's own; nothing leaves the handler, and no time passes but its own."""

    def __init__(self, job: JobRecord, signals: Mapping[str, Any]) -> None:
        run = str(job.ref)
        journal = MemoryJournal()
        for name, payload in signals.items():
            journal.signal(run, name, to_bytes(payload, what=f"signal {name!r}"))
        clock = ManualClock(job.added_ms)
        terms = Terms(clock=clock, describe=_describe, in_place_ms=0)
        self.steps = Steps(_Patient(clock, journal, run, f"{run}@{job.added_ms}", journal.begin(run), terms))
        self.sent: list[tuple[JobRef, str, Any]] = []

    def sync(self, is_to_stop: Callable[[], bool]) -> SyncSteps:
        raise BadStep("a plain handler with steps is tested with run_until_empty, which runs it in a thread")

    async def signal(self, ref: JobRef, name: str, payload: Any) -> Delivery:
        to_bytes(payload, what=f"signal {name!r}")
        self.sent.append((ref, name, payload))
        return Delivery.KEPT

    def verdict_at_end(self) -> Parked | None:
        return None


class _Patient(Program):
    def __init__(self, clock: ManualClock, *rest: Any) -> None:
        super().__init__(*rest)
        self._manual = clock

    def suspend(self, verdict: Parked) -> None:
        if verdict.until_ms is None:
            raise AssertionError(f"it {verdict.note} and would park: give the signal to test_context(signals={{…}})")
        self._manual.advance(verdict.until_ms - self._manual.now_ms())


def _describe(error: BaseException) -> Failure:
    return describe(error, RetryPolicy())
