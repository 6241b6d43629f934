"""The one place that speaks HTTP with providers.

A provider's module says what to send and how to read it (`Reader`). All else is the same for all and is
here: times, the key, statuses, events, and how an answer can be none.
"""

import asyncio
import contextlib
from collections.abc import AsyncGenerator, AsyncIterator, Iterable, Mapping
from typing import Any, Protocol

import httpx
import msgspec

from bullpen.agents.llm.allowance import allowance_of
from bullpen.agents.llm.deltas import Delta, End, Gathering, Started
from bullpen.agents.llm.endpoint import Endpoint
from bullpen.agents.llm.failing import Said, error_for, hiding, said_in
from bullpen.agents.llm.sse import EventReader, ServerEvent
from bullpen.agents.llm.words import to_json
from bullpen.clock import SYSTEM_CLOCK, Clock
from bullpen.errors import AnswerBroken, BadAnswer, ModelError, ModelTimeout

_WHOLE_BYTES = 33_554_432
"""Far more than any model writes."""
_READ_OUT_S = 0.5
_REQUEST_IDS = ("x-request-id", "request-id", "apim-request-id")


class Reader(Protocol):
    """Reads one answer in a provider's own form; one for each call."""

    def event(self, event: ServerEvent) -> Iterable[Delta]:
        """What an event of the stream says. DecodeError if it makes no sense, ProviderFailed if it is an error."""

    def whole(self, body: bytes) -> Iterable[Delta]:
        """What an answer says that came as one. DecodeError if it makes no sense."""

    def close(self) -> Iterable[Delta]:
        """The stream ended: what is still to say; without an End it broke off."""


class ProviderFailed(Exception):
    """The provider says in the midst of a stream that it failed."""

    def __init__(self, status: int, said: Said) -> None:
        super().__init__(said.words)
        self.status = status
        self.said = said


class Wire:
    """Calls to one provider; belongs to one event loop."""

    def __init__(
        self, provider: str, endpoint: Endpoint, headers: Mapping[str, str], clock: Clock = SYSTEM_CLOCK
    ) -> None:
        self.endpoint = endpoint
        self.hide = hiding(*endpoint.secrets())
        self._provider = provider
        self._headers = {**headers, **endpoint.headers}
        self._clock = clock
        self._client: httpx.AsyncClient | None = None

    def __repr__(self) -> str:
        return f"<Wire to {self.endpoint.host}>"

    async def close(self) -> None:
        if self._client is not None:
            client, self._client = self._client, None
            await client.aclose()

    async def call(
        self, path: str, body: Mapping[str, Any], reader: Reader, *, model: str, idempotency_key: str | None
    ) -> AsyncGenerator[Delta, None]:
        """Post the body; what comes back, as deltas. A ModelError says how far it came."""
        call = _Call(self._provider, model, self.endpoint)
        headers = {"idempotency-key": idempotency_key} if idempotency_key else {}
        request = self._opened().build_request("POST", self.endpoint.url(path), content=to_json(body), headers=headers)
        async with self._answered(request, call) as response:
            if response.status_code != httpx.codes.OK:
                raise await self._refusal(response, call)
            allowance = allowance_of(response.headers, self._clock.now_ms())
            yield call.came(Started(model, _request_id(response), allowance, self._provider))
            async with contextlib.aclosing(self._deltas(response, reader, call)) as deltas:
                async for delta in deltas:
                    yield call.came(delta)
        if call.gathering.end is None:
            raise call.error(AnswerBroken, "the answer ended too early")

    async def probe(self, path: str) -> None:
        """Ask for something that costs nothing."""
        call = _Call(self._provider, "a probe", self.endpoint)
        request = self._opened().build_request("GET", self.endpoint.url(path))
        async with self._answered(request, call) as response:
            if response.status_code != httpx.codes.OK:
                raise await self._refusal(response, call)

    def _opened(self) -> httpx.AsyncClient:
        if self._client is None:
            self._client = httpx.AsyncClient(
                headers=self._headers,
                params=dict(self.endpoint.query),
                timeout=httpx.Timeout(self.endpoint.silence_s, connect=self.endpoint.connect_s),
                limits=httpx.Limits(max_connections=None, max_keepalive_connections=20),
                proxy=self.endpoint.proxy,
                # No proxy or password from the environment or a .netrc is to be met unawares.
                trust_env=False,
                # A key must not follow to wherever an answer points.
                follow_redirects=False,
            )
        return self._client

    @contextlib.asynccontextmanager
    async def _answered(self, request: httpx.Request, call: "_Call") -> AsyncIterator[httpx.Response]:
        response: httpx.Response | None = None
        try:
            async with call.time():
                response = await self._opened().send(request, stream=True)
        except (httpx.TransportError, httpx.InvalidURL, TimeoutError) as error:
            # Not chained, here and below: the driver's errors hold the request, and with it the key.
            raise self._translated(error, call, sent=not isinstance(error, httpx.ConnectError)) from None
        try:
            yield response
        finally:
            await response.aclose()

    async def _chunks(self, response: httpx.Response, call: "_Call") -> AsyncGenerator[bytes, None]:
        chunks, left = response.aiter_bytes(), _WHOLE_BYTES
        while left > 0:
            try:
                async with call.time():
                    chunk = await anext(chunks)
            except StopAsyncIteration:
                return
            except (httpx.TransportError, httpx.DecodingError, TimeoutError) as error:
                raise self._translated(error, call, sent=True) from None
            left -= len(chunk)
            yield chunk
        raise call.error(BadAnswer, f"the answer is over {_WHOLE_BYTES:,} bytes")

    async def _deltas(self, response: httpx.Response, reader: Reader, call: "_Call") -> AsyncGenerator[Delta, None]:
        kind = response.headers.get("content-type", "").partition(";")[0].strip().lower()
        read = _READ_BY_KIND.get(kind)
        if read is None:
            raise call.error(BadAnswer, f"the answer is {self.hide(kind)[:100]}, not events or JSON")
        async with (
            contextlib.aclosing(self._chunks(response, call)) as chunks,
            contextlib.aclosing(read(chunks, reader)) as deltas,
        ):
            try:
                async for delta in deltas:
                    if isinstance(delta, End):
                        await _read_out(chunks)
                        yield delta
                        return
                    yield delta
            except (msgspec.MsgspecError, ValueError) as error:
                raise call.error(BadAnswer, self.hide(f"the answer makes no sense: {error}")) from None
            except ProviderFailed as told:
                raise self._broken_by(told, call) from None

    async def _refusal(self, response: httpx.Response, call: "_Call") -> ModelError:
        now_ms = self._clock.now_ms()
        allowance = allowance_of(response.headers, now_ms)
        retry_after = (allowance.hold_s(now_ms) or None) if allowance is not None else None
        async with contextlib.aclosing(self._chunks(response, call)) as chunks:
            said = said_in(await _gathered(chunks))
        return self._error(response.status_code, said, call, retry_after)

    def _error(self, status: int, said: Said, call: "_Call", retry_after: float | None = None) -> ModelError:
        place = {"provider": self._provider, "model": call.model}
        return error_for(status, said, **place, retry_after=retry_after, hide=self.hide)

    def _broken_by(self, told: ProviderFailed, call: "_Call") -> ModelError:
        error = self._error(told.status, told.said, call)
        error.may_cost, error.usage = True, call.gathering.usage
        return error

    def _translated(self, error: Exception, call: "_Call", *, sent: bool) -> ModelError:
        said = self.hide(str(error)) or type(error).__name__
        if isinstance(error, httpx.ConnectTimeout):
            return call.error(ModelTimeout, f"no connection within {self.endpoint.connect_s:g} s", may_cost=False)
        if isinstance(error, TimeoutError | httpx.TimeoutException):
            return call.error(ModelTimeout, call.lateness())
        if call.has_begun:
            return call.error(AnswerBroken, f"the answer broke off: {said}")
        return call.error(ModelError, f"no answer: {said}", may_cost=sent)


class _Call:
    """One call under way: how long it may still take, and how far its answer is."""

    def __init__(self, provider: str, model: str, endpoint: Endpoint) -> None:
        self.model = model
        self.gathering = Gathering()
        self.has_begun = False
        self._provider = provider
        self._endpoint = endpoint
        self._loop = asyncio.get_running_loop()
        self._ends = self._loop.time() + endpoint.whole_s

    def came(self, delta: Delta) -> Delta:
        self.has_begun = True
        self.gathering.take(delta)
        return delta

    def time(self) -> asyncio.Timeout:
        """Around each wait, and not around the call: what its reader does between two pieces is not the provider's."""
        return asyncio.timeout_at(min(self._loop.time() + self._endpoint.silence_s, self._ends))

    def lateness(self) -> str:
        if self._loop.time() >= self._ends:
            return f"the answer was not whole within {self._endpoint.whole_s:g} s"
        return f"nothing came for {self._endpoint.silence_s:g} s"

    def error(self, kind: type[ModelError], what: str, *, may_cost: bool | None = None) -> ModelError:
        so_far = f"; {self.gathering.progress()} had come" if self.has_begun else ""
        return kind(
            f"{self._provider}: {self.model}: {what}{so_far}",
            provider=self._provider,
            model=self.model,
            usage=self.gathering.usage,
            is_whole=self.gathering.end is not None,
            may_cost=may_cost,
        )


async def _read_events(chunks: AsyncIterator[bytes], reader: Reader) -> AsyncGenerator[Delta, None]:
    events = EventReader()
    async for chunk in chunks:
        for event in events.feed(chunk):
            for delta in reader.event(event):
                yield delta
    for delta in reader.close():
        yield delta


async def _read_whole(chunks: AsyncIterator[bytes], reader: Reader) -> AsyncGenerator[Delta, None]:
    for delta in reader.whole(await _gathered(chunks)):
        yield delta


_READ_BY_KIND = {"text/event-stream": _read_events, "": _read_events, "application/json": _read_whole}


async def _read_out(chunks: AsyncIterator[bytes]) -> None:
    """After the last word, so that the connection can be used again; one that does not end then is given up."""
    with contextlib.suppress(TimeoutError, ModelError):
        async with asyncio.timeout(_READ_OUT_S):
            async for _ in chunks:
                pass


async def _gathered(chunks: AsyncIterator[bytes]) -> bytes:
    return b"".join([chunk async for chunk in chunks])


def _request_id(response: httpx.Response) -> str:
    return next((response.headers[name] for name in _REQUEST_IDS if name in response.headers), "")
