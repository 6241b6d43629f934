"""Calls of tools that were under way when their worker died."""

import msgspec

from bullpen.agents.llm.words import ToolCall, ToolResult
from bullpen.agents.loop.calling import as_text
from bullpen.agents.loop.recorder import Recorder
from bullpen.agents.loop.words import Answer, NeedsAnswer
from bullpen.agents.tools.policy import Policy
from bullpen.agents.tools.tool import NOT_MADE, Tool, ToolContext
from bullpen.job.entries import JournalEntry

_decode_answer = msgspec.json.Decoder(Answer).decode


class AfterCrash:
    """Finds out what became of one, as its tool's policy says: by the tool itself, or by a person."""

    def __init__(self, recorder: Recorder, *, most: int) -> None:
        self._recorder = recorder
        self._most = most
        """Characters of a result."""

    async def found(
        self, entry: JournalEntry, call: ToolCall, tool: Tool, context: ToolContext, arguments: dict[str, object]
    ) -> ToolResult | None:
        """What came of the call; None if it is to be made again. NeedsAnswer."""
        match tool.policy:
            case Policy.READ_ONLY | Policy.IDEMPOTENT:
                return None
            case Policy.RECONCILE:
                assert tool.reconcile is not None
                found = await tool.reconcile(context, arguments)
                if found is NOT_MADE:
                    return None
                return ToolResult(call.id, await as_text(context, tool, found, self._most))
            case Policy.ONCE:
                return await self._ask_a_person(entry, call)

    async def _ask_a_person(self, entry: JournalEntry, call: ToolCall) -> ToolResult | None:
        # Another one for each time that it is made: who said "make it again" knows nothing of what became of that.
        place, signal = entry.place + 1, f"answer/{entry.place}/{entry.attempts}"
        said = self._recorder.at(place)
        value = said.value if said is not None else await self._recorder.answer(place, signal)
        if value is None:
            raise NeedsAnswer(signal, call.name, call.arguments)
        answer = _decode_answer(value)
        return None if answer.result is None else ToolResult(call.id, answer.result, is_error=answer.is_error)
