"""Agents with all tools that this machine and its settings can offer.

agents = Agents(pen, equipment=equipped)      # as long as they are open, in whichever process
async with equipped(agents): …                # or for the length of a block
"""

from collections.abc import AsyncIterator, Iterable
from contextlib import asynccontextmanager

from bullpen.agents.agents import Agents
from bullpen.agents.surroundings import Sandboxed
from bullpen.agents.tools.builtin import Toolset, builtin_tools
from bullpen.agents.tools.mcp import McpServer
from bullpen.agents.tools.office import KeptFile, ReadFile, office_tools
from bullpen.agents.tools.tool import ToolContext
from bullpen.errors import RecordMissing


@asynccontextmanager
async def equipped(agents: Agents, *, servers: Iterable[McpServer] = ()) -> AsyncIterator[Toolset]:
    """Give them the built-in tools, and those of MCP servers, for the length of a block.

    Where sandboxes have network, what may be done there is not done twice: see `code_execute`.

    What a tool holds for a task, such as a browser, goes back when an activation of it ends.
    """
    around = agents.surroundings
    network = isinstance(around, Sandboxed) and around.spec.limits.network
    toolset = await builtin_tools(network=network, servers=servers, more=office_tools(read_file=_reading(agents)))
    async with toolset:
        for tool in toolset:
            agents.tools.put(tool)
        agents.on_activation_end = toolset.end_run
        try:
            yield toolset
        finally:
            agents.on_activation_end = None
            for tool in toolset:
                agents.tools.take(tool)


def _reading(agents: Agents) -> ReadFile:
    async def read(context: ToolContext, artifact: str) -> KeptFile | None:
        files = (await agents.records()).files
        try:
            found = await files.get(artifact, tenant=context.tenant)
        except RecordMissing:
            return None
        return KeptFile(found.name, await files.read(artifact, tenant=context.tenant), found.mime)

    return read
