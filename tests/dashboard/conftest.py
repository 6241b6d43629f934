"""One browser for all tests, a fresh stage for each module, and pages that tolerate no error."""

import os
import re
from collections.abc import AsyncIterator, Awaitable, Callable
from datetime import UTC, datetime, timedelta
from email.utils import format_datetime

import pytest
import pytest_asyncio
from playwright.async_api import Browser, BrowserContext, ConsoleMessage, Error, Page, Route, async_playwright, expect

import hatch_build
from tests.dashboard.stage import ROOT, Stage, find_browser

_FLAGS = [
    "--no-sandbox",
    "--disable-gpu",
    "--disable-background-networking",
    "--disable-component-update",
    "--disable-sync",
]
_PATIENCE_MS = 60_000
_ANSWERED = re.compile(r"/v1/(?!live|events)")
"""All that the page asks for, but for streams: these have no end."""

expect.set_options(timeout=_PATIENCE_MS)


@pytest_asyncio.fixture(scope="session", loop_scope="session")
async def browser() -> AsyncIterator[Browser]:
    program = find_browser()
    if program is None:
        if "CI" in os.environ:
            pytest.fail("no Chromium; scripts/servers.py installs it")
        pytest.skip("no Chromium")
    async with async_playwright() as playwright:
        browser = await playwright.chromium.launch(executable_path=program, args=_FLAGS)
        yield browser
        await browser.close()


@pytest_asyncio.fixture(scope="module", loop_scope="session")
async def stage(tmp_path_factory: pytest.TempPathFactory) -> AsyncIterator[Stage]:
    hatch_build.build(ROOT)
    async with Stage(tmp_path_factory.mktemp("stage")) as stage:
        await stage.start_worker()
        yield stage


Opener = Callable[..., Awaitable[Page]]


@pytest_asyncio.fixture(loop_scope="session")
async def open_page(browser: Browser, stage: Stage) -> AsyncIterator[Opener]:
    """Opens an address in a fresh browser profile; any error of the page itself fails the test."""
    contexts: list[BrowserContext] = []
    faults: list[str] = []

    async def open_page(path: str = "/", *, width: int = 1280, may_fail: bool = False, **options: object) -> Page:
        # What moves is painted again sixty times a second, by the cores that all tests share.
        options.setdefault("reduced_motion", "reduce")
        context = await browser.new_context(
            base_url=stage.url,
            viewport={"width": width, "height": 900},
            **options,  # type: ignore[arg-type]  # the options of a context, passed on as they are
        )
        contexts.append(context)
        page = await context.new_page()
        page.set_default_timeout(_PATIENCE_MS)
        page.on("pageerror", lambda error: faults.append(_words(error)))
        if not may_fail:
            page.on("console", lambda message: faults.extend(_complaint(message)))
        await page.goto(path)
        return page

    yield open_page
    for context in contexts:
        for page in context.pages:
            # An answer that is still on its way would be an error of the next test.
            await page.unroute_all(behavior="ignoreErrors")
        await context.close()
    assert faults == []


_HIDING = """isHidden => {
    Object.defineProperty(document, "hidden", { configurable: true, get: () => isHidden });
    document.dispatchEvent(new Event("visibilitychange"));
}"""


async def set_hidden(page: Page, is_hidden: bool) -> None:
    """As a tab that another one covers; the browser of tests has no window in which one could."""
    await page.evaluate(_HIDING, is_hidden)


async def set_ahead(page: Page, ahead: timedelta) -> None:
    """For the page it is so much later: it goes by the time that the server's answers tell."""

    async def told_later(route: Route) -> None:
        answer = await route.fetch()
        date = format_datetime(datetime.now(UTC) + ahead, usegmt=True)
        await route.fulfill(response=answer, headers={**answer.headers, "date": date})

    await page.route(_ANSWERED, told_later)


def _words(error: Error) -> str:
    return f"{error.name}: {error.message}"


def _complaint(message: ConsoleMessage) -> list[str]:
    """What the browser reports as an error: a script that broke, a file that is missing, a policy that was violated."""
    return [message.text] if message.type == "error" else []
