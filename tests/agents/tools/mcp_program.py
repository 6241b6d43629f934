"""A server of the Model Context Protocol, by the protocol's own package: `python mcp_program.py [http]`."""

import asyncio
import os
import socket
import sys
from pathlib import Path
from typing import Any

import uvicorn
from mcp.server.mcpserver import Image, MCPServer
from mcp.server.mcpserver.exceptions import ToolError
from mcp.types import ToolAnnotations

server = MCPServer("parts")


@server.tool(annotations=ToolAnnotations(read_only_hint=True))
def add(a: int, b: int = 1) -> int:
    """Add two numbers."""
    return a + b


@server.tool(annotations=ToolAnnotations(idempotent_hint=True))
def note(text: str) -> str:
    """Write it down."""
    return f"noted: {text}"


@server.tool(name="who.am/i")
def who() -> dict[str, Any]:
    """What this process sees of its surroundings."""
    return {"pid": os.getpid(), "secret": os.environ.get("WORKER_SECRET", ""), "given": os.environ.get("GIVEN", "")}


@server.tool()
def fail() -> str:
    """Fail."""
    raise ToolError("no such part")


@server.tool()
def die() -> str:
    """Die in the middle of a call."""
    os._exit(7)


@server.tool()
async def hang(began: str) -> str:
    """Never answer."""
    Path(began).touch()
    await asyncio.Event().wait()
    return ""


@server.tool()
def picture() -> Image:
    """A picture."""
    return Image(data=b"\x89PNG picture", format="png")


async def _serve_http() -> None:
    listening = socket.create_server(("127.0.0.1", int(sys.argv[2])))
    print(listening.getsockname()[1], flush=True)
    config = uvicorn.Config(server.streamable_http_app(), log_level="warning", timeout_graceful_shutdown=1)
    await uvicorn.Server(config).serve(sockets=[listening])


if __name__ == "__main__":
    if sys.argv[1:2] == ["http"]:
        asyncio.run(_serve_http())
    else:
        server.run("stdio")
