"""What a model is told of a call of a tool: what came of it, what went wrong in it, and where the rest of it is."""

from collections.abc import Mapping
from typing import Any

import msgspec

from bullpen.agents.llm.words import ToolCall, ToolResult
from bullpen.agents.tools.shortening import shortened
from bullpen.agents.tools.tool import Tool, ToolContext
from bullpen.errors import AgentError, BadData, CheckpointFailed, CheckpointMissing, SandboxTimeout, WorkspaceUnsaved

_encode = msgspec.json.Encoder().encode


async def called(
    call: ToolCall, tool: Tool, context: ToolContext, arguments: Mapping[str, Any], *, most: int
) -> tuple[ToolResult, Exception | None]:
    """Call it: what the model is told, of at most so many characters, and what went wrong, if anything did."""
    try:
        found = await tool.call(context, arguments)
    except (CheckpointFailed, CheckpointMissing, SandboxTimeout):
        raise  # nothing that a model could do otherwise
    except (AgentError, BadData) as error:
        return ToolResult(call.id, await as_text(context, tool, str(error), most), is_error=True), error
    return ToolResult(call.id, await as_text(context, tool, found, most)), None


async def as_text(context: ToolContext, tool: Tool, value: object, most: int) -> str:
    """As the model reads it: a text as it is, anything else as JSON. Of what is too long the whole is an artifact."""
    is_text = isinstance(value, str)
    text = value if isinstance(value, str) else _encode(value).decode()
    if len(text) <= most:
        return text
    name, mime = ("output.txt", "text/plain") if is_text else ("output.json", "application/json")
    data = text.encode(errors="replace")
    short = await shortened(context, f"{tool.name}-{name}", data, most=most, mime=mime)
    return f"{short.text}\n({short.note})"


def unsaved(result: ToolResult, error: WorkspaceUnsaved) -> ToolResult:
    """What came of a call whose files are not safe: the model may make room, and the next call saves them."""
    note = f"{error}. What is in it since the last call that was saved may be lost: remove what is not needed."
    return msgspec.structs.replace(result, text=f"{result.text}\n({note})", is_error=True)
