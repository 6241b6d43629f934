"""A task that this worker cannot do, for want of a tool, a provider or a sandbox: it goes back to its line.

Another worker of the queue may have what it needs, or the next one to be started. The run is told once what is
missing, and looks in between come ever more seldom. If nobody came within the time that the task may take, it fails.
"""

from typing import Any, Self

import msgspec
from sqlalchemy.ext.asyncio import AsyncConnection

from bullpen.agents.ending import Ending
from bullpen.agents.loop.words import Stop
from bullpen.agents.surroundings import Sandboxed
from bullpen.agents.words import TaskTerms, problem_of
from bullpen.agents.workshop import Workshop
from bullpen.errors import BadOption, BullpenError, ModelAccess
from bullpen.job.verdicts import Parked
from bullpen.records.database import Database
from bullpen.records.runs.moving import RunsOn
from bullpen.records.runs.words import ProgressEvent, ProgressKind, Task, TaskState, Told

_SOONEST_MS, _LATEST_MS = 1_000, 60_000


class Lack(msgspec.Struct, frozen=True, omit_defaults=True):
    """What a task needs and a worker has not."""

    tools: tuple[str, ...] = ()
    model: str | None = None
    """One for which it has no provider."""
    sandbox: str | None = None
    """A type of sandboxes that are not its own."""

    def __bool__(self) -> bool:
        return bool(self.tools or self.model or self.sandbox)

    def __or__(self, other: Self) -> "Lack":
        return Lack(
            tuple(dict.fromkeys((*self.tools, *other.tools))), self.model or other.model, self.sandbox or other.sandbox
        )

    def __str__(self) -> str:
        model = [] if self.model is None else [f"a provider of the model {self.model!r}"]
        sandbox = [] if self.sandbox is None else [f"sandboxes of the type {self.sandbox!r}"]
        return " and ".join([*(f"the tool {name!r}" for name in self.tools), *model, *sandbox])

    def error(self, seconds: float) -> BullpenError:
        """For whoever waited so long in vain."""
        nobody = f"no worker that has {self} came within {seconds:g} seconds"
        if self.tools:
            return BadOption(f"tools: {nobody}")
        if self.sandbox and not self.model:
            return BadOption(f"sandbox.type: {nobody}")
        return ModelAccess(f"model: {nobody}", model=self.model or "")


def lack_of(workshop: Workshop, terms: TaskTerms) -> Lack:
    """What the task needs and is not in this workshop; empty if all is there."""
    tools = tuple(name for name in dict.fromkeys(terms.tools or ()) if not workshop.tools.known(name))
    return Lack(tools, None if workshop.provider.serves(terms.model) else terms.model, _sandbox_lacked(workshop, terms))


def _sandbox_lacked(workshop: Workshop, terms: TaskTerms) -> str | None:
    wanted, there = None if terms.sandbox is None else terms.sandbox.type, workshop.surroundings
    return wanted if wanted is not None and isinstance(there, Sandboxed) and there.type != wanted else None


class WaitForWorker:
    """One look at such a task: what the run is told, when to look again, and whether it waited long enough."""

    def __init__(self, database: Database, task: Task, terms: TaskTerms, lack: Lack) -> None:
        self._database = database
        self._task = task
        self._most_ms = round(terms.timeout_s * 1000)
        self._lack = lack
        self._now_ms = database.clock.now_ms()
        self._since_ms = self._now_ms

    async def note(self, connection: AsyncConnection) -> None:
        """Tell of it in this transaction, unless the last look did."""
        runs = RunsOn(connection, self._database)
        known = Lack()
        if (last := await runs.last_told(self._task)) is not None and _is_wait(last):
            known = msgspec.convert(last.data["lack"], Lack)
            self._since_ms = last.data["since_ms"]
        # Of two workers each may lack something else: both are told, once.
        self._lack = known | self._lack
        if self._lack == known:
            return
        data: dict[str, Any] = {
            "message": f"waits for a worker that has {self._lack}",
            "lack": msgspec.to_builtins(self._lack),
            "since_ms": self._since_ms,
        }
        await runs.move(self._task.id, TaskState.QUEUED, Told(ProgressKind.JOB_SUSPENDED, data))

    @property
    def is_over(self) -> bool:
        return self._now_ms >= self._since_ms + self._most_ms

    def parked(self) -> Parked:
        """Until the next look: after as long again as it has waited, so that nobody is kept busy by it."""
        pause_ms = min(max(self._now_ms - self._since_ms, _SOONEST_MS), _LATEST_MS)
        until_ms = min(self._now_ms + pause_ms, self._since_ms + self._most_ms)
        return Parked(until_ms, note=f"waits for a worker that has {self._lack}")

    def ending(self) -> Ending:
        return Ending(Stop.ERROR, problem_of(self._lack.error(self._most_ms / 1000)))


def _is_wait(event: ProgressEvent) -> bool:
    return event.kind is ProgressKind.JOB_SUSPENDED and "lack" in event.data
