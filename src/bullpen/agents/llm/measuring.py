"""A provider whose calls are told to observers, each by how it ended and what it used."""

import contextlib
import time
from collections.abc import AsyncGenerator

from bullpen.agents.llm.deltas import Delta, UsageDelta
from bullpen.agents.llm.provider import Provider
from bullpen.agents.llm.words import Request, Usage
from bullpen.errors import ModelError
from bullpen.observing import ModelCall, Observers

ANSWERED = "answered"
ABANDONED = "abandoned"
"""By whoever asked: the task was cancelled, or its time was over."""
BROKEN = "error"
"""By something that is no error of models: a mistake of ours."""


class Measured:
    """Asks a provider for one model, by that model's name in the table."""

    def __init__(self, provider: Provider, model: str, observers: Observers) -> None:
        self._provider = provider
        self._model = model
        self._observers = observers

    @property
    def name(self) -> str:
        return self._provider.name

    async def stream(self, request: Request) -> AsyncGenerator[Delta, None]:
        began, usage, outcome = time.monotonic(), Usage(), ABANDONED
        try:
            async with contextlib.aclosing(self._provider.stream(request)) as deltas:
                async for delta in deltas:
                    if isinstance(delta, UsageDelta):
                        usage = delta.usage
                    yield delta
            outcome = ANSWERED
        except ModelError as error:
            outcome = error.code
            raise
        except Exception:
            outcome = BROKEN
            raise
        finally:
            took_s = time.monotonic() - began
            self._observers.model_called(
                ModelCall(self.name, self._model, outcome, took_s, usage.input_tokens, usage.output_tokens)
            )

    async def probe(self) -> None:
        await self._provider.probe()

    async def close(self) -> None:
        await self._provider.close()
