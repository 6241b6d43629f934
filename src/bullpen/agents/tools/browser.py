"""Browsers of runs: one Chromium for all, and in it a profile for each run, which no other run sees.

    browsers = Browsers()
    …                                # `page_of(task_id)` opens the run's own
    await browsers.end_run(task_id)  # whoever runs a run calls this when it ends, however it ends
    await browsers.close()           # when the worker stops

Everything that a page loads goes through the run's own proxy, which refuses private addresses.
"""

import asyncio
import contextlib
import logging
import os
import shutil
from collections.abc import AsyncIterator
from dataclasses import dataclass, field
from typing import TYPE_CHECKING

from bullpen.agents.tools.guarded_proxy import GuardedProxy
from bullpen.builtin.addresses import Allowed
from bullpen.builtin.outgoing import Resolve
from bullpen.errors import ToolError

if TYPE_CHECKING:
    from playwright.async_api import Browser, BrowserContext, Page, Playwright

_LOG = logging.getLogger("bullpen.agents.tools")
_PROGRAMS = ("chromium", "chromium-browser", "google-chrome-stable", "google-chrome")
_FLAGS = (
    "--disable-gpu",
    "--disable-background-networking",
    "--disable-component-update",
    "--disable-sync",
    # What would go past the proxy.
    "--disable-quic",
    "--force-webrtc-ip-handling-policy=disable_non_proxied_udp",
)
_HANDED_ON = ("PATH", "HOME", "LANG", "LC_ALL", "TZ", "TMPDIR", "XDG_RUNTIME_DIR")
_CLOSE_S = 10.0
_MOST_PAGES = 5


@dataclass(slots=True)
class _OfRun:
    proxy: GuardedProxy
    turn: asyncio.Lock = field(default_factory=asyncio.Lock)
    context: "BrowserContext | None" = None


class Browsers:
    """Started when first asked for. Safe to share within an event loop."""

    def __init__(
        self,
        *,
        program: str | None = None,
        allowed: Allowed | None = None,
        walls: bool = True,
        resolve: Resolve | None = None,
    ) -> None:
        """`walls` are Chromium's own, around each page: they need a kernel on which users may make namespaces."""
        self._program = program
        self._allowed = Allowed.from_environment() if allowed is None else allowed
        self._walls = walls and os.geteuid() != 0  # it refuses to have them as root
        self._resolve = resolve
        self._starting = asyncio.Lock()
        self._playwright: Playwright | None = None
        self._browser: Browser | None = None
        self._runs: dict[str, _OfRun] = {}

    @contextlib.asynccontextmanager
    async def page_of(self, task_id: str) -> "AsyncIterator[tuple[Page, GuardedProxy]]":
        """The page that a run looks at, for one action: actions of a run wait for each other."""
        mine = self._runs.setdefault(task_id, _OfRun(GuardedProxy(self._allowed, self._resolve)))
        async with mine.turn:
            if self._runs.get(task_id) is not mine:
                raise ToolError("the run has ended, and its browser with it")
            if mine.context is None or self._is_gone(mine.context):
                mine.context = await self._new_context(mine)
                if self._runs.get(task_id) is not mine:  # it ended meanwhile, when there was nothing to close yet
                    await _close(mine)
                    raise ToolError("the run has ended, and its browser with it")
            pages = mine.context.pages
            # What a click opened comes last, and is what a person would look at.
            yield (pages[-1] if pages else await mine.context.new_page()), mine.proxy
            for old in mine.context.pages[:-_MOST_PAGES]:
                await old.close()

    async def end_run(self, task_id: str) -> None:
        """Close a run's browser with all that it kept; nothing if it has none. Safe to call twice."""
        mine = self._runs.pop(task_id, None)
        if mine is not None:
            await _close(mine)

    async def close(self) -> None:
        """End all. Safe to call twice."""
        for task_id in list(self._runs):
            await self.end_run(task_id)
        async with self._starting:
            browser, self._browser = self._browser, None
            playwright, self._playwright = self._playwright, None
            if browser is not None:
                with contextlib.suppress(Exception):  # a browser that died is closed
                    await browser.close()
            if playwright is not None:
                await playwright.stop()

    @staticmethod
    def _is_gone(context: "BrowserContext") -> bool:
        return context.browser is None or not context.browser.is_connected()

    async def _new_context(self, mine: _OfRun) -> "BrowserContext":
        browser = await self._started()
        await mine.proxy.start()
        # Without the bypass a browser would go to its own machine past any proxy.
        return await browser.new_context(
            proxy={"server": mine.proxy.url, "bypass": "<-loopback>"},
            accept_downloads=False,
            service_workers="block",
            viewport={"width": 1280, "height": 800},
        )

    async def _started(self) -> "Browser":
        async with self._starting:
            if self._browser is not None and self._browser.is_connected():
                return self._browser
            try:
                from playwright.async_api import Error, async_playwright
            except ImportError:
                raise ToolError("the browser needs Playwright: pip install 'bullpen[browser]'") from None
            if self._playwright is None:
                self._playwright = await async_playwright().start()
            try:
                self._browser = await self._playwright.chromium.launch(
                    executable_path=self._program or find_browser(),
                    args=list(_FLAGS),
                    chromium_sandbox=self._walls,
                    # The keys of the worker are none of a page's business.
                    env={name: os.environ[name] for name in _HANDED_ON if name in os.environ},
                )
            except Error as error:
                first = error.message.strip().splitlines()[0]
                fix = "install Chromium, or allow users to make namespaces" if self._walls else "install Chromium"
                raise ToolError(f"no browser can be started; {fix}: {first}") from error
            return self._browser


def find_browser() -> str | None:
    """The system's own; None leaves it to Playwright, which may have one."""
    return next((path for name in _PROGRAMS if (path := shutil.which(name))), None)


async def _close(mine: _OfRun) -> None:
    try:
        if mine.context is not None:
            async with asyncio.timeout(_CLOSE_S):
                await mine.context.close()
    except Exception as error:  # noqa: BLE001 - it may have died with its browser, which is as well
        _LOG.warning("a run's browser could not be closed: %s", error)
    finally:
        await mine.proxy.close()
