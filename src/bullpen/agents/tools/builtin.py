"""The built-in tools that can be offered here, and what they hold while runs use them.

async with await builtin_tools() as toolset:
    …                               # Toolbox(toolset) is what a run chooses from
    await toolset.end_run(task_id)  # when a run ends here, however it ends
"""

from collections.abc import Iterable, Iterator, Sequence
from importlib.util import find_spec
from typing import Self

from bullpen.agents.tools.browser import Browsers
from bullpen.agents.tools.browsing import browser_action
from bullpen.agents.tools.executing import code_execute, shell_execute
from bullpen.agents.tools.files import file_read, file_write
from bullpen.agents.tools.mcp import McpServer, McpSource
from bullpen.agents.tools.searching import SearchBackend, search_from_environment, web_search
from bullpen.agents.tools.tool import Tool


class Toolset:
    """Tools, with what has to be closed after them."""

    def __init__(
        self,
        tools: Iterable[Tool],
        *,
        browsers: Browsers | None = None,
        search: SearchBackend | None = None,
        sources: Sequence[McpSource] = (),
    ) -> None:
        self._tools = tuple(tools)
        self._browsers = browsers
        self._search = search
        self._sources = tuple(sources)

    def __iter__(self) -> Iterator[Tool]:
        return iter(self._tools)

    async def __aenter__(self) -> Self:
        return self

    async def __aexit__(self, *_: object) -> None:
        await self.close()

    async def end_run(self, task_id: str) -> None:
        """Give back what the tools hold for a run. Safe to call twice, and for a run that used none."""
        if self._browsers is not None:
            await self._browsers.end_run(task_id)

    async def close(self) -> None:
        """Give back all. Safe to call twice."""
        if self._browsers is not None:
            await self._browsers.close()
        if self._search is not None:
            await self._search.close()
        for source in self._sources:
            await source.close()


async def builtin_tools(
    *,
    sandbox: bool = True,
    network: bool = False,
    search: SearchBackend | None = None,
    browsers: Browsers | None = None,
    servers: Iterable[McpServer] = (),
    more: Iterable[Tool] = (),
) -> Toolset:
    """All that this machine and these settings allow.

    - `sandbox`: runs have one, so that code, commands and files are there; with `network`, it may have network.
    - `search`: what searches; else what `BULLPEN_SEARCH` names, and no search if it names nothing.
    - `browsers`: a browser where Playwright is installed, unless it is told otherwise.
    - `servers`: MCP servers, whose tools are listed now. ToolError if one does not answer.
    - `more`: tools of your own.
    """
    tools: list[Tool] = []
    if sandbox:
        tools += [code_execute(network=network), shell_execute(network=network), file_read(), file_write()]
    search = search or search_from_environment()
    if search is not None:
        tools.append(web_search(search))
    if browsers is None and find_spec("playwright") is not None:
        browsers = Browsers()
    if browsers is not None:
        tools.append(browser_action(browsers))
    sources = [McpSource(server) for server in servers]
    toolset = Toolset((), browsers=browsers, search=search, sources=sources)
    try:
        for source in sources:
            tools += await source.tools()
    except BaseException:
        await toolset.close()
        raise
    return Toolset([*tools, *more], browsers=browsers, search=search, sources=sources)
