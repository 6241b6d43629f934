"""Messages, as Anthropic has them."""

from collections.abc import Iterable, Sequence
from typing import Any

import msgspec

from bullpen.agents.llm.deltas import CallDelta, Delta, End, TextDelta, UsageDelta
from bullpen.agents.llm.endpoint import Endpoint
from bullpen.agents.llm.failing import Said
from bullpen.agents.llm.over_http import ProviderOverHttp
from bullpen.agents.llm.sse import ServerEvent
from bullpen.agents.llm.wire import ProviderFailed, Wire
from bullpen.agents.llm.words import Message, Request, Role, StopReason, ToolCall, Usage
from bullpen.clock import SYSTEM_CLOCK, Clock
from bullpen.errors import BadData

ANTHROPIC_URL = "https://api.anthropic.com/v1"
_VERSION = "2023-06-01"
_STOPS = {
    "end_turn": StopReason.ANSWER,
    "max_tokens": StopReason.MAX_TOKENS,
    "model_context_window_exceeded": StopReason.MAX_TOKENS,
    "stop_sequence": StopReason.STOP_TEXT,
    "tool_use": StopReason.TOOL_CALLS,
    "refusal": StopReason.REFUSED,
}
_STATUS_OF = {
    "invalid_request_error": 400,
    "authentication_error": 401,
    "permission_error": 403,
    "not_found_error": 404,
    "request_too_large": 413,
    "rate_limit_error": 429,
    "timeout_error": 504,
    "overloaded_error": 529,
}
"""An error in the midst of a stream has a word for its status only."""
_CACHED = {"type": "ephemeral"}


def _turns(messages: Sequence[Message]) -> list[dict[str, Any]]:
    """What users and tools say is one role there, and two turns of one role are one."""
    turns: list[dict[str, Any]] = []
    for message in messages:
        content = list(_blocks(message))
        if message.role == Role.SYSTEM or not content:
            continue
        role = "assistant" if message.role == Role.ASSISTANT else "user"
        if turns and turns[-1]["role"] == role:
            turns[-1]["content"] += content
        else:
            turns.append({"role": role, "content": content})
    return turns


def _blocks(message: Message) -> Iterable[dict[str, Any]]:
    for result in message.results:
        block = {"type": "tool_result", "tool_use_id": result.call_id, "content": result.text}
        yield {**block, "is_error": True} if result.is_error else block
    if message.text.strip():  # an empty text is refused
        yield {"type": "text", "text": message.text}
    for call in message.calls:
        yield {"type": "tool_use", "id": call.id, "name": call.name, "input": _input(call)}


def _input(call: ToolCall) -> dict[str, Any]:
    """An object is wanted back even where the model wrote none; the result then says what was wrong."""
    try:
        return call.parsed()
    except BadData:
        return {"not_json": call.arguments}


def _choice(request: Request) -> dict[str, Any]:
    choice = request.tool_choice
    said = {"type": choice} if choice in {"auto", "none", "any"} else {"type": "tool", "name": choice}
    if not request.parallel_calls and choice != "none":
        return {**said, "disable_parallel_tool_use": True}
    return said


# ── what comes back: all of it may be missing ────────────────────────────────────────────


class _Tokens(msgspec.Struct):
    input_tokens: int | None = None
    output_tokens: int | None = None
    cache_read_input_tokens: int | None = None
    cache_creation_input_tokens: int | None = None


class _Block(msgspec.Struct):
    type: str = ""
    text: str = ""
    id: str = ""
    name: str = ""
    input: dict[str, Any] = {}


class _Piece(msgspec.Struct):
    type: str = ""
    text: str = ""
    partial_json: str = ""
    stop_reason: str | None = None


class _Whole(msgspec.Struct):
    content: list[_Block] = []
    stop_reason: str | None = None
    usage: _Tokens | None = None


class _Event(msgspec.Struct):
    type: str = ""
    index: int = 0
    message: _Whole | None = None
    content_block: _Block | None = None
    delta: _Piece | None = None
    usage: _Tokens | None = None
    error: Said | None = None


_decode_event = msgspec.json.Decoder(_Event).decode
_decode_whole = msgspec.json.Decoder(_Whole).decode


class MessageReader:
    """Reads one answer."""

    def __init__(self) -> None:
        self._calls: dict[int, int] = {}
        """The index of a block to that of the call that it is."""
        self._tokens: dict[str, int] = {}
        self._stop: str | None = None

    def event(self, event: ServerEvent) -> Iterable[Delta]:
        said = _decode_event(event.data)
        match said.type:
            case "message_start" if said.message is not None:
                yield from self._used(said.message.usage)
            case "content_block_start" if said.content_block is not None:
                yield from self._begin(said.index, said.content_block)
            case "content_block_delta" if said.delta is not None:
                yield from self._go_on(said.index, said.delta)
            case "message_delta":
                self._stop = (said.delta or _Piece()).stop_reason or self._stop
                yield from self._used(said.usage)
            case "message_stop":
                yield End(*self._ending())
            case "error":
                told = said.error or Said()
                raise ProviderFailed(_STATUS_OF.get(told.type or "", 500), told)
            case _:
                pass  # pings, ends of blocks, and whatever is new

    def whole(self, body: bytes) -> Iterable[Delta]:
        message = _decode_whole(body)
        for index, block in enumerate(message.content):
            yield from self._begin(index, block)
            if block.type == "tool_use":
                yield CallDelta(self._calls[index], arguments=msgspec.json.encode(block.input).decode())
        self._stop = message.stop_reason
        yield from self._used(message.usage)
        yield End(*self._ending())

    def close(self) -> Iterable[Delta]:
        """Nothing: only `message_stop` is an end."""
        return ()

    def _begin(self, index: int, block: _Block) -> Iterable[Delta]:
        if block.type == "tool_use":
            self._calls[index] = len(self._calls)
            yield CallDelta(self._calls[index], block.id, block.name)
        elif block.type == "text" and block.text:
            yield TextDelta(block.text)

    def _go_on(self, index: int, piece: _Piece) -> Iterable[Delta]:
        if piece.type == "text_delta" and piece.text:
            yield TextDelta(piece.text)
        elif piece.type == "input_json_delta" and piece.partial_json:
            if index not in self._calls:
                raise ValueError(f"block {index} goes on, and never began")
            yield CallDelta(self._calls[index], arguments=piece.partial_json)

    def _used(self, tokens: _Tokens | None) -> Iterable[Delta]:
        """Each event tells totals, and only those that it knows."""
        if tokens is None:
            return
        told = msgspec.structs.asdict(tokens)
        self._tokens |= {word: max(count, 0) for word, count in told.items() if count is not None}
        cached, written = self._count("cache_read_input_tokens"), self._count("cache_creation_input_tokens")
        yield UsageDelta(
            Usage(
                # Theirs leaves out what the cache has to do with, ours is all that was read.
                input_tokens=self._count("input_tokens") + cached + written,
                output_tokens=self._count("output_tokens"),
                cached_input_tokens=cached,
                cache_write_tokens=written,
            )
        )

    def _count(self, word: str) -> int:
        return self._tokens.get(word, 0)

    def _ending(self) -> tuple[StopReason, str]:
        word = self._stop or ""
        return _STOPS.get(word, StopReason.OTHER), word


class AnthropicProvider(ProviderOverHttp):
    """Speaks the messages API with the server at an endpoint."""

    _path = "messages"
    _reader = MessageReader

    def __init__(
        self,
        endpoint: Endpoint,
        *,
        name: str = "anthropic",
        streams: bool = True,
        caches: bool = False,
        clock: Clock = SYSTEM_CLOCK,
    ) -> None:
        self._streams = streams
        self._caches = caches
        """Let the provider keep tools and conversation for the next call, which then costs less; writing costs more."""
        headers = {"content-type": "application/json", "anthropic-version": _VERSION}
        if endpoint.key:
            headers["x-api-key"] = endpoint.key
        super().__init__(name, Wire(name, endpoint, headers, clock))

    def body(self, request: Request) -> dict[str, Any]:
        """The request as it is sent."""
        body: dict[str, Any] = {
            "model": request.model,
            "max_tokens": request.max_tokens,
            "messages": _turns(request.messages),
        }
        if instructions := "\n\n".join(one.text for one in request.messages if one.role == Role.SYSTEM):
            body["system"] = instructions
        if request.tools:
            body["tools"] = [
                {"name": tool.name, "description": tool.description, "input_schema": tool.parameters}
                for tool in request.tools
            ]
            body["tool_choice"] = _choice(request)
        if request.temperature is not None:
            body["temperature"] = min(request.temperature, 1.0)
        if request.stop:
            body["stop_sequences"] = request.stop
        if "user" in request.metadata:
            body["metadata"] = {"user_id": request.metadata["user"]}
        if self._caches:
            body["messages"][-1]["content"][-1]["cache_control"] = _CACHED
        if self._streams:
            body["stream"] = True
        return body
