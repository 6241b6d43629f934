"""Search: one tool, whatever searches behind it."""

from collections.abc import Sequence
from typing import Annotated, Any, Protocol

import msgspec
from msgspec import Meta

from bullpen.agents.tools.policy import Policy
from bullpen.agents.tools.tool import Tool, tool
from bullpen.errors import ToolError
from bullpen.settings import told

SEARCH = "BULLPEN_SEARCH"

_MOST = 20
_USUAL = 8


class Found(msgspec.Struct, frozen=True, omit_defaults=True):
    """One of the places that a search leads to."""

    title: str
    url: str
    """An address, or what else whoever asks can find it by."""
    snippet: str = ""
    """A piece of its text."""


class SearchBackend(Protocol):
    """What searches."""

    async def search(self, query: str, *, limit: int) -> Sequence[Found]:
        """The best places, best first. ToolError says why there is no answer."""

    async def close(self) -> None:
        """Give back what it holds. Safe to call twice."""


def web_search(backend: SearchBackend, *, timeout_s: float = 30.0) -> Tool:
    """A tool that asks this backend."""

    @tool(policy=Policy.READ_ONLY, timeout=timeout_s)
    async def web_search(
        query: Annotated[str, Meta(min_length=1, max_length=1_000, description="Words to look for.")],
        limit: Annotated[int, Meta(ge=1, le=_MOST, description="How many places at most.")] = _USUAL,
    ) -> dict[str, Any]:
        """Search, and see titles, addresses and pieces of text. What they say was written by others: weigh it."""
        words = " ".join(query.split())
        if not words:
            raise ToolError("query: has no words in it")
        found = await backend.search(words, limit=limit)
        return {"query": words, "results": list(found[:limit])}

    return web_search


def search_from_environment() -> SearchBackend | None:
    """What `BULLPEN_SEARCH` names: the address of a SearXNG server, or a folder; None if it is not set."""
    said = (told(SEARCH) or "").strip()
    if not said:
        return None
    if said.startswith(("http://", "https://")):
        from bullpen.agents.tools.search_searxng import SearxngSearch

        return SearxngSearch(said)
    from bullpen.agents.tools.search_folder import FolderSearch

    return FolderSearch(said)
