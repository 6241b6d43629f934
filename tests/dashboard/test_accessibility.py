"""axe-core finds nothing serious on any page, in either theme, wide or narrow; a phone shows all of it."""

from typing import Literal

import pytest
import pytest_asyncio
from playwright.async_api import Page, expect

from tests.dashboard.axe import serious_findings
from tests.dashboard.conftest import Opener
from tests.dashboard.shop import QUEUE
from tests.dashboard.stage import Stage

pytestmark = [pytest.mark.asyncio(loop_scope="session"), pytest.mark.xdist_group("dashboard")]

_PATHS = (
    "/",
    f"/queues/{QUEUE}",
    f"/queues/{QUEUE}?part=limits",
    f"/queues/{QUEUE}?part=groups",
    "/jobs",
    "{failed}",
    "{flow}",
    "/failures",
    "/dead-letters",
    "/schedules",
    "/workers",
    "/audit",
    "/settings",
    "/settings/keys",
    "/settings/users",
    "/settings/tenants",
    "/settings/alerts",
    "/settings/webhooks",
    "/no/such/page",
)


@pytest_asyncio.fixture(scope="module", loop_scope="session")
async def places(stage: Stage) -> dict[str, str]:
    """Something of each kind to look at, and where it is."""
    shop = stage.shop
    await shop.pen.schedule("nightly", shop.quick.prepare(n=1), cron="0 3 * * *")
    await shop.pen.queue(QUEUE).groups.pause("held")
    for n in range(3):
        await shop.quick.options(tenant="acme", tags=["one"]).add(n=n)
    await shop.quick.options(delay=3600).add(n=9)
    failed = await shop.broken.add(why="for all to see")
    flow = await shop.pen.flow(shop.root.prepare(), [shop.leaf.prepare(n=n) for n in range(2)])
    await flow.result(timeout=60)
    return {"{failed}": f"/queues/{QUEUE}/jobs/{failed.id}", "{flow}": f"/queues/flows/jobs/{flow.id}/flow"}


async def _settle(page: Page) -> None:
    """Until what was asked for is shown: no skeleton is left."""
    await expect(page.get_by_role("heading", level=1)).to_be_visible()
    await expect(page.locator(".skeleton")).to_have_count(0)


@pytest.mark.parametrize("theme", ["light", "dark"])
async def test_no_page_has_a_serious_finding(
    open_page: Opener, places: dict[str, str], theme: Literal["light", "dark"]
) -> None:
    # Axe is injected: that is nothing the page's own policy allows.
    page = await open_page("/", may_fail=True, color_scheme=theme, reduced_motion="reduce", bypass_csp=True)
    findings: dict[str, list[str]] = {}
    for path in _PATHS:
        await page.goto(places.get(path, path))
        await _settle(page)
        if found := await serious_findings(page):
            findings[path] = found
    assert findings == {}


async def test_dialogs_have_no_serious_finding(open_page: Opener, places: dict[str, str]) -> None:
    page = await open_page("/settings/keys", reduced_motion="reduce", bypass_csp=True)
    await page.get_by_role("button", name="New key").click()
    await expect(page.get_by_role("dialog")).to_be_visible()
    assert await serious_findings(page) == []
    await page.keyboard.press("Escape")
    await page.keyboard.press("?")
    await expect(page.get_by_role("dialog", name="Keyboard shortcuts")).to_be_visible()
    assert await serious_findings(page) == []


async def test_on_a_phone_no_page_is_wider_than_the_screen(open_page: Opener, places: dict[str, str]) -> None:
    page = await open_page("/", width=390, may_fail=True)
    too_wide = {}
    for path in _PATHS:
        await page.goto(places.get(path, path))
        await _settle(page)
        width = await page.evaluate("document.documentElement.scrollWidth")
        if width > 390:
            too_wide[path] = width
    assert too_wide == {}


async def test_on_a_phone_the_navigation_lies_behind_a_button(open_page: Opener, places: dict[str, str]) -> None:
    page = await open_page("/", width=390)
    link = page.get_by_role("navigation", name="Pages").get_by_role("link", name="Workers")
    await expect(link).to_have_count(0)
    await page.get_by_role("button", name="Open navigation").click()
    await link.click()
    await expect(page.get_by_role("heading", name="Workers", level=1)).to_be_visible()
    await expect(link).to_have_count(0)


async def test_a_phone_shows_the_tab_that_is_looked_at(open_page: Opener) -> None:
    page = await open_page("/settings/webhooks", width=390)
    await expect(page.get_by_role("button", name="Webhooks", pressed=True)).to_be_in_viewport(ratio=1)
