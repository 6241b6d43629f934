"""Chat completions, as OpenAI has them and as Azure, vLLM, Ollama and many gateways speak them, more or less."""

from collections.abc import Iterable
from typing import Any

import msgspec

from bullpen.agents.llm.deltas import CallDelta, Delta, End, TextDelta, UsageDelta
from bullpen.agents.llm.endpoint import Endpoint
from bullpen.agents.llm.failing import Said
from bullpen.agents.llm.over_http import ProviderOverHttp
from bullpen.agents.llm.sse import ServerEvent
from bullpen.agents.llm.wire import ProviderFailed, Wire
from bullpen.agents.llm.words import Message, Request, Role, StopReason, Usage
from bullpen.clock import SYSTEM_CLOCK, Clock

OPENAI_URL = "https://api.openai.com/v1"

_DONE = "[DONE]"
_NEW_NAME_HOSTS = ("api.openai.com", ".azure.com")
"""Where `max_tokens` is called `max_completion_tokens`; many others know the old name only."""
_STOPS = {
    "stop": StopReason.ANSWER,
    "length": StopReason.MAX_TOKENS,
    "tool_calls": StopReason.TOOL_CALLS,
    "function_call": StopReason.TOOL_CALLS,
    "content_filter": StopReason.REFUSED,
}


def _messages(message: Message) -> Iterable[dict[str, Any]]:
    if message.role == Role.TOOL:
        for result in message.results:
            text = f"Error: {result.text}" if result.is_error else result.text
            yield {"role": "tool", "tool_call_id": result.call_id, "content": text}
        return
    said: dict[str, Any] = {"role": message.role, "content": message.text}
    if message.calls:
        # Some servers refuse an empty text beside calls, none refuses null.
        said["content"] = message.text or None
        said["tool_calls"] = [
            {"id": call.id, "type": "function", "function": {"name": call.name, "arguments": call.arguments}}
            for call in message.calls
        ]
    yield said


def _choice(choice: str) -> str | dict[str, Any]:
    match choice:
        case "auto" | "none":
            return choice
        case "any":
            return "required"
        case _:
            return {"type": "function", "function": {"name": choice}}


# ── what comes back: all of it may be missing ────────────────────────────────────────────


class _Function(msgspec.Struct):
    name: str | None = None
    arguments: str | dict[str, Any] | None = None


class _ToolCall(msgspec.Struct):
    index: int | None = None
    id: str | None = None
    function: _Function | None = None


class _Words(msgspec.Struct):
    content: str | None = None
    refusal: str | None = None
    tool_calls: list[_ToolCall] | None = None


class _Choice(msgspec.Struct):
    delta: _Words | None = None
    message: _Words | None = None
    finish_reason: str | None = None


class _Cached(msgspec.Struct):
    cached_tokens: int | None = None


class _Thought(msgspec.Struct):
    reasoning_tokens: int | None = None


class _Tokens(msgspec.Struct):
    prompt_tokens: int | None = None
    completion_tokens: int | None = None
    prompt_tokens_details: _Cached | None = None
    completion_tokens_details: _Thought | None = None


class _Chunk(msgspec.Struct):
    choices: list[_Choice] | None = None
    usage: _Tokens | None = None
    error: Said | str | None = None


_decode = msgspec.json.Decoder(_Chunk).decode


class ChatReader:
    """Reads one answer."""

    def __init__(self) -> None:
        self._calls: list[str] = []
        """The id of each call so far, by its index in the reply."""
        self._by_index: dict[int, int] = {}
        """What the server calls them, to ours."""
        self._finish: str | None = None
        self._refused = False
        self._is_over = False

    def event(self, event: ServerEvent) -> Iterable[Delta]:
        if event.data.strip() == _DONE:
            yield from self.close()
        else:
            yield from self._chunk(_decode(event.data))

    def whole(self, body: bytes) -> Iterable[Delta]:
        chunk = _decode(body)
        if not chunk.choices and chunk.error is None:
            raise ValueError("it has no choices")
        yield from self._chunk(chunk)
        # A whole body cannot have broken off, so a server that gives no reason has at least said all.
        self._finish = self._finish or "stop"
        yield from self.close()

    def close(self) -> Iterable[Delta]:
        """A server that forgets [DONE] after a reason to finish has said all the same."""
        if self._finish is None or self._is_over:
            return
        self._is_over = True
        yield End(self._stop(), self._finish)

    def _stop(self) -> StopReason:
        if self._refused:
            return StopReason.REFUSED
        stop = _STOPS.get(self._finish or "", StopReason.OTHER)
        # vLLM and others say "stop" when a tool was to be called by name.
        return StopReason.TOOL_CALLS if self._calls and stop == StopReason.ANSWER else stop

    def _chunk(self, chunk: _Chunk) -> Iterable[Delta]:
        if chunk.error is not None:
            said = Said(message=chunk.error) if isinstance(chunk.error, str) else chunk.error
            raise ProviderFailed(said.code if isinstance(said.code, int) and said.code >= 400 else 500, said)
        for choice in (chunk.choices or [])[:1]:
            yield from self._words(choice.delta or choice.message or _Words())
            self._finish = choice.finish_reason or self._finish
        if chunk.usage is not None:
            yield UsageDelta(_usage(chunk.usage))

    def _words(self, words: _Words) -> Iterable[Delta]:
        if words.content:
            yield TextDelta(words.content)
        if words.refusal:
            self._refused = True
            yield TextDelta(words.refusal)
        for position, call in enumerate(words.tool_calls or []):
            yield self._call(call, position)

    def _call(self, call: _ToolCall, position: int) -> CallDelta:
        function = call.function or _Function()
        arguments = function.arguments
        if isinstance(arguments, dict):
            arguments = msgspec.json.encode(arguments).decode()
        index = self._index(call, position)
        return CallDelta(index, call.id or "", function.name or "", arguments or "")

    def _index(self, call: _ToolCall, position: int) -> int:
        """Which call it is about. Ollama gives each whole call the index 0, or none: another id is another call."""
        theirs = position if call.index is None else call.index
        known = self._by_index.get(theirs)
        is_new = known is None or bool(call.id and self._calls[known] and call.id != self._calls[known])
        if not is_new and known is not None:
            return known
        self._by_index[theirs] = len(self._calls)
        self._calls.append(call.id or "")
        return len(self._calls) - 1


def _usage(tokens: _Tokens) -> Usage:
    cached = tokens.prompt_tokens_details or _Cached()
    thought = tokens.completion_tokens_details or _Thought()
    return Usage(
        input_tokens=max(tokens.prompt_tokens or 0, 0),
        output_tokens=max(tokens.completion_tokens or 0, 0),
        cached_input_tokens=max(cached.cached_tokens or 0, 0),
        reasoning_tokens=max(thought.reasoning_tokens or 0, 0),
    )


class OpenAIProvider(ProviderOverHttp):
    """Speaks chat completions with the server at an endpoint."""

    _path = "chat/completions"
    _reader = ChatReader

    def __init__(
        self,
        endpoint: Endpoint,
        *,
        name: str = "openai",
        streams: bool = True,
        tells_usage: bool = True,
        clock: Clock = SYSTEM_CLOCK,
    ) -> None:
        self._streams = streams
        """Off for a server that cannot: the whole answer then comes as one piece."""
        self._tells_usage = tells_usage
        """Off for a server that refuses `stream_options`."""
        self._is_new = endpoint.host.endswith(_NEW_NAME_HOSTS)
        key = {"authorization": f"Bearer {endpoint.key}"} if endpoint.key else {}
        # Azure's older gateways take the key by this name only.
        azure = {"api-key": endpoint.key} if endpoint.key and endpoint.host.endswith(".azure.com") else {}
        super().__init__(name, Wire(name, endpoint, {"content-type": "application/json", **key, **azure}, clock))

    def body(self, request: Request) -> dict[str, Any]:
        """The request as it is sent."""
        body: dict[str, Any] = {
            "model": request.model,
            "messages": [said for message in request.messages for said in _messages(message)],
            "max_completion_tokens" if self._is_new else "max_tokens": request.max_tokens,
        }
        if request.tools:
            body["tools"] = [{"type": "function", "function": tool} for tool in request.tools]
            body["tool_choice"] = _choice(request.tool_choice)
            if not request.parallel_calls:
                body["parallel_tool_calls"] = False
        if request.temperature is not None:
            body["temperature"] = request.temperature
        if request.stop:
            body["stop"] = request.stop
        if "user" in request.metadata:
            body["user"] = request.metadata["user"]
        if self._streams:
            body["stream"] = True
            if self._tells_usage:
                body["stream_options"] = {"include_usage": True}
        return body
