"""The connection to a server: each call is JSON, may be repeated, and fails in our own words."""

import asyncio
import logging
import ssl
from collections.abc import Iterator
from types import TracebackType
from typing import Self, TypeVar

import httpx
import msgspec

from bullpen import errors
from bullpen.errors import BullpenError, RemoteRefused, StoreError, StoreUnavailable
from bullpen.remote.address import ServerAddress
from bullpen.remote.messages import Ask, encode
from bullpen.scheduling.pauses import Pauses

logger = logging.getLogger("bullpen.remote")

Answer = TypeVar("Answer")

_CONNECT_S = 10.0
_ANSWER_S = 30.0
"""How long an answer may take beyond what a call itself waits for."""
_FIRST_PAUSE_S = 0.1
_LONGEST_PAUSE_S = 5.0


class _Problem(msgspec.Struct, frozen=True):
    """What a server says of an error; whatever stands between us may say less."""

    code: str = ""
    detail: str = ""


class Connection:
    """Speaks with the server; belongs to one event loop."""

    def __init__(self, address: ServerAddress) -> None:
        self._address = address
        self._client: httpx.AsyncClient | None = None

    async def __aenter__(self) -> Self:
        return self

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        await self.close()

    async def close(self) -> None:
        """Safe to call twice."""
        if self._client is not None:
            client, self._client = self._client, None
            await client.aclose()

    async def call(
        self, verb: str, ask: Ask, answer: type[Answer], *, waits_s: float = 0, patience_s: float | None = 0
    ) -> Answer:
        """What the server answers; its error raised, or StoreUnavailable once patience is over.

        Every call may be made again after a lost answer. With None for patience it is made until there is one.
        """
        pauses = Pauses(_FIRST_PAUSE_S, _LONGEST_PAUSE_S)
        loop = asyncio.get_running_loop()
        start = loop.time()
        while True:
            try:
                return await self._call_once(verb, ask, answer, waits_s)
            except StoreUnavailable as error:
                if patience_s is not None and loop.time() - start >= patience_s:
                    raise
                logger.warning("the server did not answer, trying again: %s", error)
                await asyncio.sleep(pauses.next_s())

    async def _call_once(self, verb: str, ask: Ask, answer: type[Answer], waits_s: float) -> Answer:
        timeout = httpx.Timeout(_CONNECT_S, read=waits_s + _ANSWER_S)
        try:
            response = await self._opened().post(f"/v1/remote/{verb}", content=encode(ask), timeout=timeout)
        except (httpx.TransportError, httpx.InvalidURL) as error:
            if isinstance(error.__cause__, ssl.SSLCertVerificationError) or "CERTIFICATE_VERIFY_FAILED" in str(error):
                raise RemoteRefused(f"the certificate of {self._address} is not one to trust: {error}") from error
            raise StoreUnavailable(f"no answer from {self._address}: {type(error).__name__}: {error}") from error
        if response.status_code != httpx.codes.OK:
            raise self._error_of(response)
        try:
            return msgspec.json.decode(response.content, type=answer)
        except msgspec.DecodeError as error:
            raise StoreUnavailable(f"{self._address} does not answer as a Bullpen server does: {error}") from error

    def _opened(self) -> httpx.AsyncClient:
        if self._client is None:
            self._client = httpx.AsyncClient(
                base_url=self._address.url,
                headers={"Authorization": f"Bearer {self._address.token}", "Content-Type": "application/json"},
                verify=self._address.tls(),
                # No proxy or password from the environment or a .netrc is to be met unawares.
                trust_env=False,
            )
        return self._client

    def _error_of(self, response: httpx.Response) -> BullpenError:
        try:
            problem = msgspec.json.decode(response.content, type=_Problem)
        except msgspec.DecodeError:
            problem = _Problem()
        said = problem.detail or f"HTTP {response.status_code}"
        if response.status_code >= httpx.codes.INTERNAL_SERVER_ERROR or response.status_code in (408, 429):
            return StoreUnavailable(f"{self._address}: {said}")
        kind = _BY_CODE.get(problem.code)
        # What a server says of its store is for us to try again, and nothing else.
        if kind is None or issubclass(kind, StoreError):
            return RemoteRefused(f"{self._address}: {said}")
        return kind(said)


def _below(kind: type[BullpenError]) -> Iterator[type[BullpenError]]:
    for one in kind.__subclasses__():
        yield one
        yield from _below(one)


_BY_CODE = {kind.code: kind for base in (errors.UsageError, errors.JobError) for kind in (base, *_below(base))}
