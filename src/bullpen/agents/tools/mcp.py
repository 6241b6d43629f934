"""Servers of the Model Context Protocol as sources of tools.

    async with McpSource(McpServer(name="files", command=("mcp-files", "/srv/docs"))) as source:
        toolbox = Toolbox(await source.tools())

A server's tools are named `server__tool`. A server that died is started, or connected to, again at the next call.
"""

import asyncio
import re
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, Self
from urllib.parse import urlsplit

from bullpen.agents.sandbox.base import Level
from bullpen.agents.sandbox.limits import check_seconds
from bullpen.agents.tools.json_schema import reader_of
from bullpen.agents.tools.mcp_connection import Connection
from bullpen.agents.tools.mcp_results import result_of
from bullpen.agents.tools.policy import Policy
from bullpen.agents.tools.tool import Tool, ToolContext
from bullpen.errors import BadOption, ToolError, ToolTimeout

if TYPE_CHECKING:
    from mcp import Client
    from mcp import types as words

_NAME = re.compile(r"[A-Za-z0-9](?:_?[A-Za-z0-9-])*")
_LONGEST_NAME = 64
_MOST_PAGES = 100


@dataclass(frozen=True, slots=True, kw_only=True)
class McpServer:
    """A server: a program that is started here, or an address."""

    name: str
    """Letters, digits, `-` and single `_`: put before the names of its tools."""
    command: tuple[str, ...] = ()
    """The program and its arguments. It runs as the worker's user, outside of any sandbox."""
    env: Mapping[str, str] = field(default_factory=dict, repr=False)
    """For the program, beside a few such as PATH and HOME: nothing else of the worker's is handed on."""
    cwd: str | None = None
    url: str = ""
    """Of a server that speaks streamable HTTP. It is your own word, so it may be a private one."""
    headers: Mapping[str, str] = field(default_factory=dict, repr=False)
    """Sent with each call to the address, such as Authorization."""
    allow: tuple[str, ...] | None = None
    """The tools to take, by the server's own names; None takes all."""
    timeout_s: float = 60.0
    """Of a call."""
    connect_s: float = 30.0
    trust_hints: bool = True
    """Whether to believe the server that a tool only reads, or may be called twice."""

    def __post_init__(self) -> None:
        if not _NAME.fullmatch(self.name) or len(self.name) > 32:
            raise BadOption(f"name: up to 32 letters, digits, '-' and single '_', not {self.name!r}")
        if bool(self.command) == bool(self.url):
            raise BadOption(f"command: of {self.name!r}: either a command or a url")
        if self.url and (urlsplit(self.url).scheme not in {"http", "https"} or not urlsplit(self.url).hostname):
            raise BadOption(f"url: of {self.name!r}: an address that begins with https:// or http://")
        check_seconds("timeout_s", self.timeout_s)
        check_seconds("connect_s", self.connect_s)


class McpSource:
    """The tools of one server. Connects when first asked; `close` ends the connection, and the program with it."""

    def __init__(self, server: McpServer) -> None:
        self.server = server
        self._connecting = asyncio.Lock()
        self._connection: Connection | None = None

    async def __aenter__(self) -> Self:
        return self

    async def __aexit__(self, *_: object) -> None:
        await self.close()

    async def tools(self) -> list[Tool]:
        """Those that the server has and we allow. ToolError if it does not answer, BadOption if it lacks one."""
        connection = await self._connected()
        try:
            async with asyncio.timeout(self.server.connect_s):
                found = await connection.ask(_list_all(connection.client))
        except Exception as error:
            await self._drop(connection)
            raise self._failed(error) from error
        return self._as_tools(found)

    async def close(self) -> None:
        """Safe to call twice."""
        if self._connection is not None:
            await self._drop(self._connection)

    # ── its connection ───────────────────────────────────────────────────────────────────

    async def _connected(self) -> Connection:
        async with self._connecting:
            if self._connection is None or not self._connection.is_open():
                await self.close()
                connection = Connection(self.server)
                try:
                    await connection.open()
                except ToolError:
                    raise
                except Exception as error:
                    raise self._failed(error) from error
                self._connection = connection
            return self._connection

    async def _drop(self, connection: Connection) -> None:
        if self._connection is connection:
            self._connection = None
        await connection.close()

    # ── its tools ────────────────────────────────────────────────────────────────────────

    def _as_tools(self, found: "list[words.Tool]") -> list[Tool]:
        allow = self.server.allow
        there = {one.name for one in found}
        for name in allow or ():
            if name not in there:
                raise BadOption(
                    f"allow: {self.server.name!r} has no tool {name!r}; it has {', '.join(sorted(there)) or 'none'}"
                )
        return [self._as_tool(one) for one in found if allow is None or one.name in allow]

    def _as_tool(self, told: "words.Tool") -> Tool:
        name = _tool_name(self.server.name, told.name)
        try:
            read = reader_of(told.input_schema)
        except BadOption as error:
            raise BadOption(f"{name}: {error}") from None

        # By position alone: its arguments may have any name.
        async def call(ctx: ToolContext, /, **arguments: Any) -> Any:
            return await self._call(ctx, told.name, arguments)

        return Tool(
            name=name,
            description=told.description or told.title or told.name,
            parameters=told.input_schema,
            policy=self._policy(told.annotations),
            timeout_s=self.server.timeout_s + self.server.connect_s,
            isolation=Level.NONE,
            price=0,
            reconcile=None,
            _function=call,
            _read=read,
            _takes_context=True,
        )

    def _policy(self, hints: "words.ToolAnnotations | None") -> Policy:
        if hints is None or not self.server.trust_hints:
            return Policy.ONCE
        if hints.read_only_hint:
            return Policy.READ_ONLY
        return Policy.IDEMPOTENT if hints.idempotent_hint else Policy.ONCE

    async def _call(self, ctx: ToolContext, name: str, arguments: dict[str, Any]) -> Any:
        from mcp import MCPError
        from mcp.types import CONNECTION_CLOSED, INVALID_REQUEST

        connection = await self._connected()
        try:
            async with asyncio.timeout(self.server.timeout_s):
                answer = await connection.ask(connection.client.call_tool(name, arguments))
        except TimeoutError:
            raise ToolTimeout(f"{name} took longer than {self.server.timeout_s:g} s") from None
        except MCPError as error:
            # The second is how an address says that it no longer knows us.
            if error.code in {CONNECTION_CLOSED, INVALID_REQUEST}:
                await self._drop(connection)
                raise self._ended(error) from error
            raise ToolError(f"{name}: {error.message}") from None
        except Exception as error:
            await self._drop(connection)
            raise self._ended(error) from error
        return await result_of(ctx, name, answer)

    def _ended(self, error: Exception) -> ToolError:
        return ToolError(
            f"the connection to the MCP server {self.server.name!r} has ended ({_cause(error)}): whether the call had "
            "an effect is not known. The next call connects again."
        )

    def _failed(self, error: Exception) -> ToolError:
        if isinstance(error, TimeoutError):
            return ToolTimeout(f"the MCP server {self.server.name!r} did not answer within {self.server.connect_s:g} s")
        return ToolError(f"the MCP server {self.server.name!r} cannot be used: {_cause(error)}")


def _cause(error: BaseException) -> str:
    while isinstance(error, BaseExceptionGroup):
        error = error.exceptions[0]
    return f"{type(error).__name__}: {str(error)[:300]}"


def _tool_name(server: str, tool: str) -> str:
    """As models take names: what a server may put in beside letters and digits becomes `_`."""
    return f"{server}__{re.sub(r'[^A-Za-z0-9_-]', '_', tool)}"[:_LONGEST_NAME]


async def _list_all(client: "Client") -> "list[words.Tool]":
    found: list[words.Tool] = []
    cursor: str | None = None
    for _ in range(_MOST_PAGES):
        page = await client.list_tools(cursor=cursor)
        found += page.tools
        cursor = page.next_cursor
        if not cursor:
            break
    return found
