"""Short words for tests that ask a provider."""

import contextlib
from collections.abc import Callable
from typing import Any

from bullpen.agents.llm.deltas import Delta
from bullpen.agents.llm.endpoint import Endpoint
from bullpen.agents.llm.provider import Provider, complete
from bullpen.agents.llm.words import Request, ToolSpec, user
from tests.agents.llm.wire_server import Answer, serving

KEY = "sk-very-secret-0123456789"
WEATHER = ToolSpec("weather", "Tells the weather", {"type": "object", "properties": {"place": {"type": "string"}}})


def ask(text: str = "Hello?", **fields: Any) -> Request:
    return Request(**{"model": "gpt", "messages": (user(text),), **fields})


def endpoint(url: str, **fields: Any) -> Endpoint:
    return Endpoint(base_url=url, key=KEY, **fields)


async def deltas_of(provider: Provider, request: Request) -> list[Delta]:
    async with contextlib.aclosing(provider.stream(request)) as deltas:
        return [delta async for delta in deltas]


async def reply_by(provider_of: Callable[..., Provider], answer: Answer, **options: Any) -> Any:
    """What comes of this answer of the server, by such a provider with these options."""
    async with serving(answer) as server:
        provider = provider_of(endpoint(server.url), **options)
        try:
            return await complete(provider, ask(tools=(WEATHER,)))
        finally:
            await provider.close()
