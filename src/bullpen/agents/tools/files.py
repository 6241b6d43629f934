"""Files of the run's workspace.

A write is done again after a crash, in the workspace as its last checkpoint has it. A checkpoint is taken between
calls, never beside them: else one that has an addition to a file already would get it twice.
"""

import mimetypes
from typing import Annotated, Any

from msgspec import Meta

from bullpen.agents.sandbox.base import Level, Sandbox
from bullpen.agents.tools.policy import Policy
from bullpen.agents.tools.tool import Tool, ToolContext, tool
from bullpen.errors import SandboxRefused, ToolError

_MOST_BYTES = 10_000_000
_MOST_CHARACTERS = 15_000
_MOST_LINES = 2_000
_USUAL_S = 120.0
_APPEND = 'mkdir -p -- "$(dirname -- "$1")" && cat >> "$1"'

Path = Annotated[str, Meta(min_length=1, max_length=4_096, description="In the workspace, such as notes/plan.md.")]


def file_read(*, most_bytes: int = _MOST_BYTES, most_characters: int = _MOST_CHARACTERS) -> Tool:
    """A tool that reads a file of the workspace or of `/inputs`: no larger than this, so much of it at a time."""

    @tool(policy=Policy.READ_ONLY, timeout=_USUAL_S, isolation=Level.NAMESPACE)
    async def file_read(
        ctx: ToolContext,
        path: Path,
        offset: Annotated[int, Meta(ge=0, description="How many lines to pass over.")] = 0,
        limit: Annotated[int, Meta(ge=1, description="How many lines to read at most.")] = _MOST_LINES,
    ) -> dict[str, Any]:
        """Read a text file of the workspace, or of /inputs; of a folder, the names of what is in it."""
        sandbox = await ctx.needs_sandbox()
        _check(path)
        try:
            data, cut = await sandbox.read(path, limit=most_bytes)
        except SandboxRefused as error:
            if error.kind == "not-a-file":
                return await _listing(sandbox, path, error)
            raise _told(path, error) from None
        if cut:
            raise ToolError(f"path: {path} is larger than {most_bytes} bytes; read a part of it by a command")
        text = _text(data)
        if text is None:
            kind = mimetypes.guess_type(path)[0] or "of an unknown kind"
            return {"path": path, "bytes": len(data), "note": f"this is no text but binary ({kind}): it is not shown"}
        return {"path": path, **_part(text, offset, limit, most_characters)}

    return file_read


def file_write(*, most_bytes: int = _MOST_BYTES) -> Tool:
    """A tool that writes a text file of the workspace, no more than this at a time."""

    @tool(policy=Policy.IDEMPOTENT, timeout=_USUAL_S, isolation=Level.NAMESPACE)
    async def file_write(
        ctx: ToolContext,
        path: Path,
        text: Annotated[str, "All that is to be in it, or to be added."],
        append: Annotated[bool, "Add to what is in it, instead of replacing it."] = False,
    ) -> dict[str, Any]:
        """Write a text file of the workspace, with the folders above it."""
        sandbox = await ctx.needs_sandbox()
        _check(path)
        data = text.encode(errors="replace")  # half a surrogate is in no file
        if len(data) > most_bytes:
            raise ToolError(f"text: {len(data)} bytes, and no more than {most_bytes} may be written at a time")
        try:
            if append:
                await _append(sandbox, path, data)
            else:
                await sandbox.write(path, data)
        except SandboxRefused as error:
            raise _told(path, error) from None
        return {"path": path, "bytes_written": len(data)}

    return file_write


async def _append(sandbox: Sandbox, path: str, data: bytes) -> None:
    """In one command: of two that add to a file side by side, none is lost."""
    try:
        await sandbox.read(path, limit=0)  # says what a shell would not: that it leads out, or is a folder
    except SandboxRefused as error:
        if error.kind != "missing":
            raise
    for start in range(0, max(1, len(data)), 1 << 20):
        outcome = await sandbox.run(["sh", "-c", _APPEND, "sh", path], stdin=data[start : start + (1 << 20)])
        if not outcome.ok:
            said = outcome.stderr.decode(errors="replace").strip() or f"it ended by {outcome.ended}"
            raise ToolError(f"path: {path} cannot be added to: {said}")


async def _listing(sandbox: Sandbox, path: str, error: SandboxRefused) -> dict[str, Any]:
    try:
        entries = await sandbox.list(path)
    except SandboxRefused:
        raise _told(path, error) from None
    return {"path": path, "folder": [f"{one.name}/" if one.kind == "folder" else one.name for one in entries]}


def _check(path: str) -> None:
    if "\0" in path:
        raise ToolError("path: has a NUL in it")


def _told(path: str, error: SandboxRefused) -> ToolError:
    match error.kind:
        case "outside":
            return ToolError(f"path: {path} leads out of the workspace")
        case "missing":
            return ToolError(f"path: there is no {path}")
        case "not-a-file":
            return ToolError(f"path: {path} is no regular file")
        case "disk-full":
            return ToolError(f"path: {path} was not written whole: the workspace is full")
        case _:
            return ToolError(f"path: {error}")


def _text(data: bytes) -> str | None:
    if b"\0" in data:
        return None
    try:
        return data.decode("utf-8-sig")
    except UnicodeDecodeError:
        return None


def _part(text: str, offset: int, limit: int, most_characters: int) -> dict[str, Any]:
    lines = text.splitlines(keepends=True)
    shown: list[str] = []
    room = most_characters
    for line in lines[offset : offset + limit]:
        if len(line) > room:
            if not shown:  # a line that alone is too long: else nothing would ever be read
                shown.append(f"{line[:room]} … {len(line) - room} characters of this line left out\n")
            break
        shown.append(line)
        room -= len(line)
    after = offset + len(shown)
    more = {"next_offset": after} if after < len(lines) else {}
    return {"text": "".join(shown), "lines": len(lines), **more}
