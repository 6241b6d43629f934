"""What stands between a running job and the store: its words, its durable steps, its children.

Most jobs ask for none of them, so each is made when it is first asked for.
"""

import asyncio
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, Protocol

from bullpen.clock import Clock
from bullpen.job.record import ClaimedJob
from bullpen.job.verdicts import Parked
from bullpen.stores.workplace import Workplace
from bullpen.worker.durable import JobSteps, StepsOfJob
from bullpen.worker.family import Family, StoreFamily
from bullpen.worker.options import WorkerOptions
from bullpen.worker.reporting import Reporter, StoreReporter


class Desk(Protocol):
    """What a context turns to on behalf of its job."""

    @property
    def reporter(self) -> Reporter: ...

    @property
    def steps(self) -> StepsOfJob | None:
        """None where a handler cannot be suspended: in a process of its own, or in a batch."""

    @property
    def family(self) -> Family | None: ...


@dataclass(slots=True)
class FixedDesk:
    """All of it given from outside."""

    reporter: Reporter
    steps: StepsOfJob | None = None
    family: Family | None = None


@dataclass(frozen=True, slots=True)
class DeskSupplies:
    """What the desks of one worker share."""

    store: Workplace
    options: WorkerOptions
    clock: Clock
    loop: asyncio.AbstractEventLoop
    in_place_ms: int


class JobDesk:
    """Of one activation of a job on a worker."""

    __slots__ = ("_around", "_claimed", "_family", "_steps", "has_steps", "on_progress", "said")

    def __init__(self, around: DeskSupplies, claimed: ClaimedJob, *, has_steps: bool) -> None:
        self._around = around
        self._claimed = claimed
        self.said: StoreReporter | None = None
        """The reporter of a job that has said anything."""
        self._steps: JobSteps | None = None
        self._family: StoreFamily | None = None
        self.has_steps = has_steps
        self.on_progress: Callable[[Any], Any] | None = None
        """Also told of each progress, on the loop."""

    @property
    def reporter(self) -> StoreReporter:
        if self.said is None:
            around = self._around
            self.said = StoreReporter(around.store, self._claimed.job.ref, around.loop, self.on_progress)
        return self.said

    @property
    def steps(self) -> JobSteps | None:
        if self._steps is None and self.has_steps:
            around = self._around
            self._steps = JobSteps(
                around.store,
                self._claimed.job,
                around.options,
                around.clock,
                around.loop,
                in_place_ms=around.in_place_ms,
            )
        return self._steps

    @property
    def family(self) -> StoreFamily:
        if self._family is None:
            options = self._around.options
            self._family = StoreFamily(
                self._around.store, self._claimed.lease, self._claimed.job, options.codec, options.observers
            )
        return self._family

    def verdict_at_end(self) -> Parked | None:
        """Why the job parks though its handler returned; see StepsOfJob."""
        return None if self._steps is None else self._steps.verdict_at_end()
