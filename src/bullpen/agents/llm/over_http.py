"""What all providers over HTTP have in common; each says where its calls go, and in which form."""

from abc import ABC, abstractmethod
from collections.abc import AsyncGenerator, Mapping
from typing import Any, ClassVar

from bullpen.agents.llm.deltas import Delta
from bullpen.agents.llm.wire import Reader, Wire
from bullpen.agents.llm.words import Request, check_request


class ProviderOverHttp(ABC):
    """A provider behind a wire."""

    _path: ClassVar[str]
    """Where calls go, below the endpoint."""
    _reader: ClassVar[type[Reader]]
    """Reads an answer in the provider's own form."""

    def __init__(self, name: str, wire: Wire) -> None:
        self._name = name
        self._wire = wire

    def __repr__(self) -> str:
        return f"<{type(self).__name__} {self._name} at {self._wire.endpoint.host}>"

    @property
    def name(self) -> str:
        return self._name

    async def stream(self, request: Request) -> AsyncGenerator[Delta, None]:
        check_request(request)
        deltas = self._wire.call(
            self._path,
            self.body(request),
            self._reader(),
            model=request.model,
            idempotency_key=request.idempotency_key,
        )
        try:
            async for delta in deltas:
                yield delta
        finally:
            await deltas.aclose()

    async def probe(self) -> None:
        await self._wire.probe("models")

    async def close(self) -> None:
        await self._wire.close()

    @abstractmethod
    def body(self, request: Request) -> Mapping[str, Any]:
        """The request as it is sent."""
