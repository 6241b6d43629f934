"""Answers as servers of chat completions give them."""

from collections.abc import Iterable
from typing import Any

import msgspec

from tests.agents.llm.wire_server import Answer, Ending

USAGE = {
    "prompt_tokens": 20,
    "completion_tokens": 7,
    "total_tokens": 27,
    "prompt_tokens_details": {"cached_tokens": 12},
    "completion_tokens_details": {"reasoning_tokens": 3},
}


def data(*chunks: Any) -> list[bytes]:
    """Each as an event of the stream; a text as it stands."""
    return [
        b"data: " + (chunk.encode() if isinstance(chunk, str) else msgspec.json.encode(chunk)) + b"\n\n"
        for chunk in chunks
    ]


def chunk(finish: str | None = None, **delta: Any) -> dict[str, Any]:
    choice = {"index": 0, "delta": delta, "finish_reason": finish}
    return {"id": "c1", "object": "chat.completion.chunk", "model": "gpt", "choices": [choice], "usage": None}


def used(usage: Any = USAGE) -> dict[str, Any]:
    return {"id": "c1", "object": "chat.completion.chunk", "model": "gpt", "choices": [], "usage": usage}


def call(
    index: int | None, call_id: str | None = None, name: str | None = None, arguments: Any = None
) -> dict[str, Any]:
    said = {"index": index, "id": call_id, "type": "function", "function": {"name": name, "arguments": arguments}}
    return {key: value for key, value in said.items() if value is not None}


def words(*texts: str, finish: str = "stop") -> list[bytes]:
    """A usual answer of these pieces of text."""
    begin = chunk(role="assistant", content="")
    return data(begin, *(chunk(content=text) for text in texts), chunk(finish), used(), "[DONE]")


def stream(chunks: Iterable[bytes], ending: Ending = Ending.GOOD, **headers: str) -> Answer:
    named = {name.replace("_", "-"): value for name, value in headers.items()}
    return Answer(chunks=list(chunks), ending=ending, headers=named)


def whole(body: Any, status: int = 200, **headers: str) -> Answer:
    named = {name.replace("_", "-"): value for name, value in headers.items()}
    encoded = body if isinstance(body, bytes) else msgspec.json.encode(body)
    return Answer(chunks=[encoded], status=status, kind="application/json", headers=named)
