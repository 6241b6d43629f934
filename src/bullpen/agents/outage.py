"""A task whose model nobody answers for at present: it waits until one of its providers is probed, or may be asked.

Which provider that is, is known by the task: others in its queue go on, and those in other queues wait as well.
"""

from typing import Any

from bullpen.agents.redacting import Redactor
from bullpen.agents.waiting import Wait
from bullpen.agents.words import TaskTerms, problem_of, to_plain
from bullpen.errors import BullpenError, ModelLimited, ProvidersDown
from bullpen.records.database import Database
from bullpen.records.runs.words import Task

_SOONEST_MS = 1_000


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
