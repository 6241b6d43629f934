"""A task whose model nobody answers for at present: it waits until one of its providers is probed, or may be asked.

Which provider that is, is known by the task: others in its queue go on, and those in other queues wait as well.
"""

from collections.abc import Iterable
from typing import Any

from bullpen.agents.ending import Ending
from bullpen.agents.llm.health import limit_ms
from bullpen.agents.loop.words import Stop
from bullpen.agents.redacting import Redactor
from bullpen.agents.waiting import Wait
from bullpen.agents.words import TaskTerms, problem_at, problem_of, to_plain
from bullpen.errors import BullpenError, ModelLimited, ModelOverloaded, ProvidersDown, SandboxTimeout
from bullpen.job.entries import EntryState, JournalEntry
from bullpen.records.database import Database
from bullpen.records.runs.moving import RunsOn
from bullpen.records.runs.words import ProgressKind, Task

_SOONEST_MS, _LATEST_MS = 1_000, 60_000


class WaitForProvider(Wait):
    """For one that answers again."""

    told_as = "error"

    def __init__(
        self,
        database: Database,
        task: Task,
        terms: TaskTerms,
        error: ProvidersDown | ModelLimited,
        *,
        redactor: Redactor,
    ) -> None:
        super().__init__(database, task, terms)
        self._error: ProvidersDown | ModelLimited = error
        self._redactor = redactor

    @property
    def message(self) -> str:
        return f"waits for a provider of the model {self._error.model!r}: none is in health"

    def adds_to(self, known: Any) -> bool:
        return known is None

    def told(self) -> Any:
        return self._redactor.all_in(to_plain(problem_of(self._error)))

    @property
    def pause_ms(self) -> int:
        return max(round(1000 * (self._error.retry_after or 0)), _SOONEST_MS)

    def error(self) -> BullpenError:
        return self._error


class WaitForTurn(WaitForProvider):
    """For one that has enough to take calls again."""

    @property
    def message(self) -> str:
        return f"waits for a provider of the model {self._error.model!r}: each has enough for now"

    @property
    def pause_ms(self) -> int:
        """Until it may be asked. Whoever has waited long looks less often, so that a long line keeps nobody busy."""
        return max(round(1000 * (self._error.retry_after or 0)), (self.now_ms - self.since_ms) // 10)

    @property
    def over_ms(self) -> int | None:
        """One that has not begun waits for its turn as in any line."""
        return None if self._task.started_ms is None else super().over_ms


async def limited_since_ms(database: Database, task: Task, entries: Iterable[JournalEntry]) -> int:
    """Since when its activations were set back, with no step done in between; now, if this is the first."""
    done_ms = max((entry.ended_ms for entry in entries if entry.state is EntryState.DONE), default=0)
    async with database.reading(brief=True) as connection:
        told = await RunsOn(connection, database).told_of(task, ProgressKind.JOB_RETRYING)
    return min((line.at_ms for line in told if line.at_ms >= done_ms), default=database.clock.now_ms())


def pause_after(error: ModelLimited | ModelOverloaded | SandboxTimeout, went_ms: int) -> tuple[int, str]:
    """How long a task that met this in the midst of its work leaves its slot to others, and what it is said to do."""
    if isinstance(error, SandboxTimeout):
        return min(max(went_ms // 4, _SOONEST_MS), _LATEST_MS), "waits for a sandbox"
    return limit_ms(error), f"waits until {error.provider} may be asked again"


def over_after(error: ModelLimited | ModelOverloaded | SandboxTimeout) -> Ending:
    """For one whose time went by with that."""
    if isinstance(error, SandboxTimeout):
        return Ending(Stop.ERROR, problem_of(error))
    return Ending(Stop.TIMEOUT, problem_at(Stop.TIMEOUT))
