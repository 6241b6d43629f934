"""A task that this worker cannot do, for want of a tool, a provider or a sandbox: it goes back to its line.

Another worker of the queue may have what it needs, or the next one to be started. The run is told once what is
missing, and looks in between come ever more seldom. If nobody came within the time that the task may take, it fails.
"""

from typing import Any, Self

import msgspec

from bullpen.agents.surroundings import Sandboxed
from bullpen.agents.waiting import Wait
from bullpen.agents.words import TaskTerms
from bullpen.agents.workshop import Workshop
from bullpen.errors import BadOption, BullpenError, ModelAccess
from bullpen.records.database import Database
from bullpen.records.runs.words import Task

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


class WaitForWorker(Wait):
    """For one that has what the task needs."""

    told_as = "lack"

    def __init__(self, database: Database, task: Task, terms: TaskTerms, lack: Lack) -> None:
        super().__init__(database, task, terms)
        self._lack = lack

    @property
    def message(self) -> str:
        return f"waits for a worker that has {self._lack}"

    def adds_to(self, known: Any) -> bool:
        # Of two workers each may lack something else: both are told, once.
        before = Lack() if known is None else msgspec.convert(known, Lack)
        self._lack = before | self._lack
        return self._lack != before

    def told(self) -> Any:
        return msgspec.to_builtins(self._lack)

    @property
    def pause_ms(self) -> int:
        """A part of what it has waited: nobody is kept busy by it, and bad luck with who claims it costs little."""
        return min(max((self.now_ms - self.since_ms) // 4, _SOONEST_MS), _LATEST_MS)

    def error(self) -> BullpenError:
        return self._lack.error(self.most_ms / 1000)
