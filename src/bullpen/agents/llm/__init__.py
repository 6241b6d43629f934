"""Models: one way to ask any of them, what it costs at most, and what to do when one does not answer."""

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from bullpen.agents.llm.anthropic import AnthropicProvider
    from bullpen.agents.llm.endpoint import Endpoint
    from bullpen.agents.llm.environment import providers_from
    from bullpen.agents.llm.models import models_from, table_of
    from bullpen.agents.llm.openai import OpenAIProvider
    from bullpen.agents.llm.pressure import hold_back, limited
    from bullpen.agents.llm.prices import as_credits, micro
    from bullpen.agents.llm.provider import complete
    from bullpen.agents.llm.router import Router
    from bullpen.agents.llm.scripted import CallTurn, Fault, Script, ScriptedProvider, Turn, script_in
    from bullpen.agents.llm.words import Request, Role, ToolResult, ToolSpec, Usage, results, system, user
else:
    from bullpen.exports import late

    __getattr__ = late(
        __name__,
        {
            "anthropic": ("AnthropicProvider",),
            "endpoint": ("Endpoint",),
            "environment": ("providers_from",),
            "models": ("models_from", "table_of"),
            "openai": ("OpenAIProvider",),
            "pressure": ("hold_back", "limited"),
            "prices": ("as_credits", "micro"),
            "provider": ("complete",),
            "router": ("Router",),
            "scripted": ("CallTurn", "Fault", "Script", "ScriptedProvider", "Turn", "script_in"),
            "words": ("Request", "Role", "ToolResult", "ToolSpec", "Usage", "results", "system", "user"),
        },
    )

__all__ = [
    "AnthropicProvider",
    "CallTurn",
    "Endpoint",
    "Fault",
    "OpenAIProvider",
    "Request",
    "Role",
    "Router",
    "Script",
    "ScriptedProvider",
    "ToolResult",
    "ToolSpec",
    "Turn",
    "Usage",
    "as_credits",
    "complete",
    "hold_back",
    "limited",
    "micro",
    "models_from",
    "providers_from",
    "results",
    "script_in",
    "system",
    "table_of",
    "user",
]
