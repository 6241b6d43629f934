"""Whoever answers: the one interface to all models, and a whole reply of what streams from it."""

import contextlib
from collections.abc import AsyncGenerator, Callable
from typing import Protocol

from bullpen.agents.llm.deltas import Delta, Gathering
from bullpen.agents.llm.words import Reply, Request, StopReason
from bullpen.errors import BadAnswer

_MAY_BE_EMPTY = {StopReason.MAX_TOKENS, StopReason.REFUSED}
"""Reasons that say themselves why there are no words."""


class Provider(Protocol):
    """Answers requests. Belongs to one event loop, and takes any number of calls at once."""

    @property
    def name(self) -> str:
        """As the table of models names it."""

    def stream(self, request: Request) -> AsyncGenerator[Delta, None]:
        """The answer as it comes: Started first, End last, or a ModelError.

        Close it to hang up before its end: `contextlib.aclosing` does, and so does a cancellation.
        """

    async def probe(self) -> None:
        """Ask whether it is there, at no cost; a ModelError if it is not."""

    async def close(self) -> None:
        """Safe to call twice."""


async def complete(provider: Provider, request: Request, on_delta: Callable[[Delta], None] | None = None) -> Reply:
    """The whole reply; each piece is also told to `on_delta` as it comes. BadAnswer if it is empty."""
    gathering = Gathering()
    async with contextlib.aclosing(provider.stream(request)) as deltas:
        async for delta in deltas:
            gathering.take(delta)
            if on_delta is not None:
                on_delta(delta)
    reply = gathering.reply()
    if reply.stop not in _MAY_BE_EMPTY and not reply.calls and not reply.text.strip():
        raise bad_answer(reply, "gave an empty answer")
    return reply


def bad_answer(reply: Reply, what: str) -> BadAnswer:
    """The error about a reply that came whole, and is of no use."""
    return BadAnswer(
        f"{reply.model} {what}", provider=reply.provider, model=reply.model, usage=reply.usage, is_whole=True
    )
