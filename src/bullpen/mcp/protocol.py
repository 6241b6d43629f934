"""JSON-RPC 2.0 in lines, as the Model Context Protocol has it: initialize, ping, list tools, call one.

    client ── {"id": 1, "method": "initialize"} ──▶
           ◀─ {"id": 1, "result": {…}} ───────────
           ── {"method": "notifications/initialized"} ──▶   (a notification has no id and no answer)
           ── {"id": 2, "method": "tools/call", …} ──▶

Requests are answered one after the other. What a tool refuses is an answer that the assistant reads,
not an error of the protocol.
"""

import json
from collections.abc import AsyncIterator, Awaitable, Callable, Sequence
from typing import Any

import msgspec

from bullpen.errors import BullpenError

VERSIONS = ("2025-06-18", "2025-03-26", "2024-11-05")
"""Of the protocol; the first is offered to a client that asks for none of them."""
_PARSE, _REQUEST, _METHOD, _PARAMS = -32700, -32600, -32601, -32602

Arguments = dict[str, Any]


class Tool(msgspec.Struct, frozen=True):
    name: str
    description: str
    arguments: dict[str, Any]
    """The JSON schema of each argument, by name."""
    call: Callable[[Arguments], Awaitable[Any]]
    required: tuple[str, ...] = ()
    writes: bool = False

    def listed(self) -> dict[str, Any]:
        schema = {
            "type": "object",
            "properties": self.arguments,
            "required": list(self.required),
            "additionalProperties": False,
        }
        hints = {"readOnlyHint": not self.writes, "destructiveHint": False, "openWorldHint": False}
        return {"name": self.name, "description": self.description, "inputSchema": schema, "annotations": hints}


class Refused(Exception):
    """The request is not one that can be answered."""

    def __init__(self, code: int, message: str) -> None:
        super().__init__(message)
        self.code = code


class McpServer:
    def __init__(self, tools: Sequence[Tool], instructions: str) -> None:
        self._tools = {tool.name: tool for tool in tools}
        self._instructions = instructions

    async def serve(self, lines: AsyncIterator[str], write: Callable[[str], None]) -> None:
        """Answer until the input ends."""
        async for line in lines:
            answer = await self.answer(line) if line.strip() else None
            if answer is not None:
                write(json.dumps(answer, ensure_ascii=False, separators=(",", ":")) + "\n")

    async def answer(self, line: str) -> dict[str, Any] | None:
        """The answer to one line; None where none is due."""
        try:
            message = json.loads(line)
        except ValueError:
            return _error(None, _PARSE, "not JSON")
        if not isinstance(message, dict) or not isinstance(message.get("method"), str):
            is_answer = isinstance(message, dict) and ("result" in message or "error" in message)
            return None if is_answer else _error(None, _REQUEST, "not a request")
        if "id" not in message:
            return None
        params = message.get("params")
        try:
            result = await self._do(message["method"], params if isinstance(params, dict) else {})
        except Refused as refused:
            return _error(message["id"], refused.code, str(refused))
        return {"jsonrpc": "2.0", "id": message["id"], "result": result}

    async def _do(self, method: str, params: dict[str, Any]) -> dict[str, Any]:
        match method:
            case "initialize":
                return self._introduce(params.get("protocolVersion"))
            case "ping":
                return {}
            case "tools/list":
                return {"tools": [tool.listed() for tool in self._tools.values()]}
            case "tools/call":
                return await self._call(params.get("name"), params.get("arguments") or {})
            case _:
                raise Refused(_METHOD, f"no method {method!r} here")

    def _introduce(self, asked: object) -> dict[str, Any]:
        from importlib.metadata import version  # slow to import, and asked for here only

        return {
            "protocolVersion": asked if asked in VERSIONS else VERSIONS[0],
            "capabilities": {"tools": {"listChanged": False}},
            "serverInfo": {"name": "bullpen", "version": version("bullpen")},
            "instructions": self._instructions,
        }

    async def _call(self, name: object, arguments: object) -> dict[str, Any]:
        tool = self._tools.get(name) if isinstance(name, str) else None
        if tool is None:
            raise Refused(_PARAMS, f"no tool {name!r}; there are {', '.join(self._tools)}")
        if not isinstance(arguments, dict):
            raise Refused(_PARAMS, "arguments: an object")
        try:
            _check(tool, arguments)
            value = await tool.call(arguments)
        except BullpenError as error:
            return _content(f"{error} [{error.code}]", is_error=True)
        except Wrong as error:
            return _content(str(error), is_error=True)
        return _content(json.dumps(value, indent=1, ensure_ascii=False)) | {"structuredContent": value}


class Wrong(Exception):
    """Arguments that do not fit; told to the assistant, who can mend them."""


_KINDS: dict[str, type | tuple[type, ...]] = {
    "string": str,
    "integer": int,
    "number": (int, float),
    "boolean": bool,
    "object": dict,
}


def _check(tool: Tool, arguments: Arguments) -> None:
    for name in tool.required:
        if name not in arguments:
            raise Wrong(f"{tool.name}: {name} is missing")
    for name, value in arguments.items():
        schema = tool.arguments.get(name)
        if schema is None:
            raise Wrong(f"{tool.name}: no argument {name!r}; there are {', '.join(tool.arguments) or 'none'}")
        kind = _KINDS[schema["type"]]
        if not isinstance(value, kind) or (isinstance(value, bool) and kind is not bool):
            raise Wrong(f"{tool.name}: {name} is a {schema['type']}, not {json.dumps(value)}")
        if "enum" in schema and value not in schema["enum"]:
            raise Wrong(f"{tool.name}: {name} is one of {', '.join(schema['enum'])}, not {value!r}")
        if not schema.get("minimum", 0) <= (value if isinstance(value, int) else 0) <= schema.get("maximum", 1 << 62):
            raise Wrong(f"{tool.name}: {name} is from {schema['minimum']} to {schema['maximum']}, not {value}")


def _content(text: str, *, is_error: bool = False) -> dict[str, Any]:
    return {"content": [{"type": "text", "text": text}], "isError": is_error}


def _error(request: object, code: int, message: str) -> dict[str, Any]:
    return {"jsonrpc": "2.0", "id": request, "error": {"code": code, "message": message}}
