"""What an MCP server answers, as a model reads it: text as it is, anything else as a file of the run."""

import base64
import mimetypes
from typing import TYPE_CHECKING, Any

from bullpen.agents.tools.tool import ToolContext
from bullpen.errors import ToolError

if TYPE_CHECKING:
    from mcp import types as words


async def result_of(ctx: ToolContext, name: str, answer: "words.CallToolResult") -> Any:
    """ToolError if the server says that it went wrong."""
    parts = [await _part(ctx, name, number, part) for number, part in enumerate(answer.content)]
    text = "\n".join(parts)
    if answer.is_error:
        raise ToolError(f"{name}: {text or 'it failed'}")
    return answer.structured_content if not parts and answer.structured_content is not None else text


async def _part(ctx: ToolContext, name: str, number: int, part: "words.ContentBlock") -> str:
    match part.type:
        case "text":
            return part.text
        case "image" | "audio":
            return await _kept(ctx, f"{name}-{number}", part.data, part.mime_type)
        case "resource_link":
            return f"[{part.title or part.name}]({part.uri})"
        case "resource":
            held = part.resource
            if hasattr(held, "text"):
                return str(held.text)
            return await _kept(ctx, f"{name}-{number}", held.blob, held.mime_type or "application/octet-stream")


async def _kept(ctx: ToolContext, stem: str, data: str, mime: str) -> str:
    try:
        raw = base64.b64decode(data, validate=True)
    except ValueError:
        return f"({mime}, which is broken)"
    if ctx.files is None:
        return f"({mime}, {len(raw)} bytes, which this run does not keep)"
    file = f"{stem}{mimetypes.guess_extension(mime) or '.bin'}"
    artifact = await ctx.keep_file(file, raw, mime=mime)
    return f"(the artifact {artifact}: {file}, {mime}, {len(raw)} bytes)"
