"""Artifacts of a run, kept in memory: what tools made is read again."""

from collections.abc import Mapping
from typing import Any

from bullpen.agents.tools.office import KeptFile
from bullpen.agents.tools.tool import Tool, ToolContext


class Kept:
    """Keeps by key and name, as a run does: the same call keeps the same artifact."""

    def __init__(self) -> None:
        self.files: dict[str, KeptFile] = {}

    async def keep(
        self, key: str, name: str, data: bytes, *, mime: str, metadata: Mapping[str, Any] | None = None
    ) -> str:
        self.files[f"{key}/{name}"] = KeptFile(name, data, mime)
        return f"{key}/{name}"

    async def read(self, context: ToolContext, artifact: str) -> KeptFile | None:
        return self.files.get(artifact)

    def context(self, key: str = "r1/1") -> ToolContext:
        return ToolContext(task_id="r1", key=key, files=self.keep)

    async def made_by(self, tool: Tool, key: str = "r1/1", **arguments: Any) -> bytes:
        """What the tool kept, after a look at what it told of it."""
        told = await tool.call(self.context(key), arguments)
        file = self.files[told["artifact"]]
        assert (told["name"], told["mime"], told["bytes"]) == (file.name, file.mime, len(file.data))
        return file.data
