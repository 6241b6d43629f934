"""Agent runs: the loop, models, tools, sandboxes, credits and progress."""

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from bullpen.agents.agents import Agents
    from bullpen.agents.checkpoints import Workspace
    from bullpen.agents.equipping import equipped
    from bullpen.agents.harvesting import Harvest
    from bullpen.agents.loop.loop import AgentLoop
    from bullpen.agents.loop.options import LoopOptions
    from bullpen.agents.loop.words import Answer
    from bullpen.agents.surroundings import Sandboxed
    from bullpen.agents.tools.builtin import builtin_tools
    from bullpen.agents.tools.mcp import McpServer, McpSource
    from bullpen.agents.tools.policy import Policy
    from bullpen.agents.tools.search_folder import FolderSearch
    from bullpen.agents.tools.searching import web_search
    from bullpen.agents.tools.tool import NOT_MADE, Tool, ToolContext, tool
    from bullpen.agents.tools.toolbox import Toolbox
    from bullpen.agents.words import TaskRequest
else:
    from bullpen.exports import late

    __getattr__ = late(
        __name__,
        {
            "agents": ("Agents",),
            "checkpoints": ("Workspace",),
            "equipping": ("equipped",),
            "harvesting": ("Harvest",),
            "loop.loop": ("AgentLoop",),
            "loop.options": ("LoopOptions",),
            "loop.words": ("Answer",),
            "surroundings": ("Sandboxed",),
            "tools.builtin": ("builtin_tools",),
            "tools.mcp": ("McpServer", "McpSource"),
            "tools.policy": ("Policy",),
            "tools.search_folder": ("FolderSearch",),
            "tools.searching": ("web_search",),
            "tools.tool": ("NOT_MADE", "Tool", "ToolContext", "tool"),
            "tools.toolbox": ("Toolbox",),
            "words": ("TaskRequest",),
        },
    )

__all__ = [
    "NOT_MADE",
    "AgentLoop",
    "Agents",
    "Answer",
    "FolderSearch",
    "Harvest",
    "LoopOptions",
    "McpServer",
    "McpSource",
    "Policy",
    "Sandboxed",
    "TaskRequest",
    "Tool",
    "ToolContext",
    "Toolbox",
    "Workspace",
    "builtin_tools",
    "equipped",
    "tool",
    "web_search",
]
