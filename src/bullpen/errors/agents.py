"""About an agent's run: its credits, tools and checkpoints."""

from datetime import UTC, datetime
from typing import ClassVar

from bullpen.errors.root import BullpenError


class AgentError(BullpenError):
    """About an agent's run."""

    code = "agent"
    agent_code: ClassVar[str] = "E999"
    """What the API, events and readers of runs know it by; several classes may share one."""
    retryable: bool = True
    safe_message: str = "Something went wrong on our side. Please try again."
    """For whoever asked for the run: names no provider, address or key."""


class CreditsShort(AgentError):
    """An account, of an organisation or a budget, has fewer credits than are needed; nothing was held or spent."""

    code = "credits-short"
    agent_code = "E003"
    retryable = False
    safe_message = "There are not enough credits for this."

    def __init__(self, message: str, *, required: int | None = None, available: int | None = None) -> None:
        super().__init__(message)
        self.required = required
        """Micro-credits."""
        self.available = available


class BudgetSpent(CreditsShort):
    """A budget of the tenant has no room for this until it renews; nothing was held or spent."""

    code = "budget-spent"

    def __init__(
        self, tenant: str, period: str, *, most: int, required: int, available: int, renews_ms: int | None
    ) -> None:
        name, renewal = _named(period, renews_ms)
        super().__init__(
            f"tenant {tenant!r}: {required} micro-credits are needed, and its {name}, {most}, leaves {available};"
            f" {renewal}",
            required=required,
            available=available,
        )
        self.period = period
        self.renews_ms = renews_ms
        """None: never."""
        self.safe_message = f"The {name} has too little left for this; {renewal}."


def _named(period: str, renews_ms: int | None) -> tuple[str, str]:
    """Which budget it is, and when all of it is there again."""
    if renews_ms is None:
        return "whole budget", "it does not renew"
    return (
        f"budget of the {period}",
        f"it renews at {datetime.fromtimestamp(renews_ms // 1000, UTC):%Y-%m-%d %H:%M} UTC",
    )


class ResearchFailed(AgentError):
    """Too few of the agents that worked on a research came to an answer."""

    code = "research-failed"
    agent_code = "E007"
    retryable = False
    safe_message = "Too few of the questions could be answered."


class BillingError(AgentError):
    """The books do not agree with what a run is to book; nothing was held or spent, and the run does not go on."""

    code = "billing-error"
    agent_code = "E014"
    safe_message = "The credits of the task could not be booked. Please try again."


class ToolError(AgentError):
    """A tool did not do what it was asked; the model is told, and may ask otherwise."""

    code = "tool-error"
    agent_code = "E010"
    safe_message = "A tool of the task has failed."


class ToolTimeout(ToolError, TimeoutError):
    """A tool took longer than it may."""

    code = "tool-timeout"
    agent_code = "E009"
    safe_message = "A tool of the task took too long."


class WorkspaceUnsaved(ToolError):
    """What a call left in the workspace cannot be saved, such as too much of it; the model is told."""

    code = "workspace-unsaved"


class CheckpointFailed(AgentError):
    """The workspace could not be saved. The run stops here, rather than go on with what nobody could restore."""

    code = "checkpoint-failed"
    agent_code = "E013"
    safe_message = "The state of the task could not be saved. Please try again."


class CheckpointMissing(AgentError):
    """The workspace that the run is to go on with is not kept any more, or is damaged."""

    code = "checkpoint-missing"
    agent_code = "E013"
    retryable = False
    safe_message = "The saved state of the task is gone. Please start it anew."
