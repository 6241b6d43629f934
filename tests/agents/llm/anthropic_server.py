"""Answers as servers of the messages API give them."""

from typing import Any

import msgspec

from tests.agents.llm.wire_server import Answer

READ = {"input_tokens": 8, "cache_read_input_tokens": 12, "cache_creation_input_tokens": 5, "output_tokens": 1}


def events(*said: Any) -> list[bytes]:
    return [b"event: " + one["type"].encode() + b"\ndata: " + msgspec.json.encode(one) + b"\n\n" for one in said]


def start(usage: Any = READ) -> dict[str, Any]:
    message = {"id": "m1", "type": "message", "role": "assistant", "content": [], "stop_reason": None, "usage": usage}
    return {"type": "message_start", "message": message}


def text(index: int, *pieces: str) -> list[dict[str, Any]]:
    block = {"type": "text", "text": ""}
    return [
        {"type": "content_block_start", "index": index, "content_block": block},
        {"type": "ping"},
        *({"type": "content_block_delta", "index": index, "delta": {"type": "text_delta", "text": p}} for p in pieces),
        {"type": "content_block_stop", "index": index},
    ]


def tool(index: int, call_id: str, name: str, *pieces: str) -> list[dict[str, Any]]:
    block = {"type": "tool_use", "id": call_id, "name": name, "input": {}}
    return [
        {"type": "content_block_start", "index": index, "content_block": block},
        *(
            {"type": "content_block_delta", "index": index, "delta": {"type": "input_json_delta", "partial_json": p}}
            for p in ("", *pieces)
        ),
        {"type": "content_block_stop", "index": index},
    ]


def stop(reason: str = "end_turn", output_tokens: int = 7) -> list[dict[str, Any]]:
    return [
        {"type": "message_delta", "delta": {"stop_reason": reason}, "usage": {"output_tokens": output_tokens}},
        {"type": "message_stop"},
    ]


def words(*pieces: str) -> Answer:
    return Answer(chunks=events(start(), *text(0, *pieces), *stop()))
