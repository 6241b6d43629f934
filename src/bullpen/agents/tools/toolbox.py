"""The tools of a run: those that are there, less those that it may not use."""

import dataclasses
from collections.abc import Iterable, Iterator, Mapping
from typing import Any

from bullpen.agents.llm.models import ModelTable
from bullpen.agents.llm.words import ToolSpec
from bullpen.agents.sandbox.base import Level, require
from bullpen.agents.tools.tool import Tool, ToolContext, replayed
from bullpen.errors import BadOption, ToolError


class Toolbox:
    """Tools by name."""

    def __init__(self, tools: Iterable[Tool] = ()) -> None:
        self._tools: dict[str, Tool] = {}
        for tool in tools:
            self.put(tool)

    def put(self, tool: Tool) -> None:
        """BadOption if there is another of this name."""
        if self._tools.setdefault(tool.name, tool) is not tool:
            raise BadOption(f"tools: there are two of the name {tool.name!r}")

    def take(self, tool: Tool) -> None:
        """Away, if it is there."""
        if self._tools.get(tool.name) is tool:
            del self._tools[tool.name]

    def __iter__(self) -> Iterator[Tool]:
        return iter(self._tools.values())

    def __len__(self) -> int:
        return len(self._tools)

    def allowed(self, names: Iterable[str] | None) -> "Toolbox":
        """Only these; BadOption names one that is not there. None: all."""
        if names is None:
            return self
        wanted = list(dict.fromkeys(names))
        for name in wanted:
            if name not in self._tools:
                raise BadOption(
                    f"tools: there is none of the name {name!r}; there are {', '.join(sorted(self._tools))}"
                )
        return Toolbox(self._tools[name] for name in wanted)

    def find(self, name: str) -> Tool:
        """ToolError, for the model to read, if it may not be used here or is not there: it is not told which."""
        found = self._tools.get(name)
        if found is None:
            raise ToolError(f"there is no tool {name!r} here; you may use: {', '.join(self._tools) or 'none'}")
        return found

    def known(self, name: str) -> str:
        """The name, for counting; empty if a model made it up."""
        return name if name in self._tools else ""

    def specs(self) -> tuple[ToolSpec, ...]:
        return tuple(tool.spec() for tool in self)

    def behind(self, given: Level) -> "Toolbox":
        """The same behind these walls: a call of a tool that asks for stronger ones ends with IsolationTooWeak."""
        return Toolbox(tool if tool.isolation <= given else _kept_in(tool, given) for tool in self)

    def priced(self, models: ModelTable) -> "Toolbox":
        """The same at the prices of the table; what it does not name keeps its own."""
        return Toolbox(_priced(tool, models) for tool in self)

    def check_isolation(self, given: Level) -> None:
        """IsolationTooWeak names the first tool that asks for stronger walls."""
        for tool in self:
            require(tool.isolation, given, f"the tool {tool.name!r}")


def _priced(tool: Tool, models: ModelTable) -> Tool:
    price = models.tool_price(tool.name)
    return tool if price is None else dataclasses.replace(tool, price=price, price_version=models.version)


def _kept_in(tool: Tool, given: Level) -> Tool:
    async def refuse(_: ToolContext, __: Mapping[str, Any]) -> None:
        require(tool.isolation, given, f"the tool {tool.name!r}")

    return replayed(tool, refuse)
