"""What the loop tells of its steps: short, since the journal has all of it."""

from collections.abc import Callable
from typing import Any

from bullpen.agents.llm.words import Reply, ToolCall, ToolResult, Usage
from bullpen.agents.loop.words import LoopLimits
from bullpen.agents.words import problem_of, to_plain
from bullpen.records.runs.words import NewProgress, ProgressKind

_SHORT = 500
"""Characters of a tool's input or output in an event."""


class Telling:
    """The events of one activation, in the order in which they come."""

    def __init__(self, limits: LoopLimits, redact: Callable[[str], str]) -> None:
        self._limits = limits
        self._redact = redact
        self._open_step: int | None = None
        self._usage = Usage()

    def asking(self, step: int, model: str) -> list[NewProgress]:
        """A model is asked; with that the step before is over."""
        before = [] if self._open_step is None else [self._over(self._open_step)]
        self._open_step = step
        started = NewProgress(ProgressKind.STEP_STARTED, {"step": step, "total_steps_estimate": self._limits.steps})
        return [*before, started, NewProgress(ProgressKind.LLM_STARTED, {"model": model, "status": "started"})]

    def answered(self, step: int, reply: Reply, *, spent: int, is_last: bool) -> list[NewProgress]:
        usage = reply.usage or Usage()
        self._usage += usage
        answer = {
            "model": reply.model,
            "input_tokens": usage.input_tokens,
            "output_tokens": usage.output_tokens,
            "content": reply.text,
            "tool_calls": [call.name for call in reply.calls],
            "status": "completed",
        }
        told = [NewProgress(ProgressKind.LLM_COMPLETED, answer)]
        if reply.calls and reply.text.strip():
            told.append(NewProgress(ProgressKind.THINKING, {"step": step, "content": reply.text}))
        told.append(NewProgress(ProgressKind.JOB_PROGRESS, self._standing(step, reply, spent, is_last=is_last)))
        if is_last:
            self._open_step = None
            told.append(self._over(step))
        return told

    def using(self, call: ToolCall) -> list[NewProgress]:
        data = {
            "call_id": call.id,
            "tool_name": call.name,
            "tool_input": self._short(call.arguments),
            "status": "started",
        }
        return [NewProgress(ProgressKind.TOOL_STARTED, data)]

    def used(
        self, call: ToolCall, result: ToolResult, *, seconds: float, error: Exception | None = None
    ) -> list[NewProgress]:
        data: dict[str, Any] = {
            "call_id": call.id,
            "tool_name": call.name,
            "tool_output": self._short(result.text),
            "duration_ms": round(seconds * 1000),
            "status": "failed" if result.is_error else "completed",
        }
        if error is not None:
            data["error"] = to_plain(problem_of(error))
        return [NewProgress(ProgressKind.TOOL_FAILED if result.is_error else ProgressKind.TOOL_COMPLETED, data)]

    def _over(self, step: int) -> NewProgress:
        return NewProgress(ProgressKind.STEP_COMPLETED, {"step": step})

    def _standing(self, step: int, reply: Reply, spent: int, *, is_last: bool) -> dict[str, Any]:
        uses = ", ".join(call.name for call in reply.calls)
        return {
            "percent_complete": 100 if is_last else min(99, 100 * step // self._limits.steps),
            "current_step": step,
            "total_steps_estimate": self._limits.steps,
            "message": "has an answer" if is_last else f"uses {uses}" if uses else "tells in short what happened",
            "tokens_used": self._usage.total_tokens,
            "credits_used": spent,
        }

    def _short(self, text: str) -> str:
        # What is left of a secret that was cut would not be known for one.
        text = self._redact(text)
        return text if len(text) <= _SHORT else f"{text[:_SHORT]}…"
