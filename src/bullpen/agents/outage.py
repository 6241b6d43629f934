"""A task of whose model no provider is in health: it waits until the next of them is probed."""

from typing import Any

from bullpen.agents.redacting import Redactor
from bullpen.agents.waiting import Wait
from bullpen.agents.words import TaskTerms, problem_of, to_plain
from bullpen.errors import BullpenError, ProvidersDown
from bullpen.records.database import Database
from bullpen.records.runs.words import Task

_SOONEST_MS = 1_000


class WaitForProvider(Wait):
    """For one that answers again."""

    told_as = "error"

    def __init__(
        self, database: Database, task: Task, terms: TaskTerms, error: ProvidersDown, *, redactor: Redactor
    ) -> None:
        super().__init__(database, task, terms)
        self._error = error
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
