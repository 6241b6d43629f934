"""Lists of any length: one page is in the document, and the address says which."""

import re

import pytest
from playwright.async_api import Route, expect

from tests.dashboard.conftest import Opener
from tests.dashboard.stage import Stage

pytestmark = [pytest.mark.asyncio(loop_scope="session"), pytest.mark.xdist_group("dashboard")]

_PAGE = 50


async def test_a_long_list_is_read_page_by_page_and_back(open_page: Opener, stage: Stage) -> None:
    queue = stage.shop.pen.queue("long")  # nobody works on it: its jobs stay as they are
    await queue.add_bulk([queue.prepare("item", {"n": n}) for n in range(2 * _PAGE + 20)])
    page = await open_page("/jobs?queue=long")
    names = page.locator("td .job-name")
    older, newer = page.get_by_role("button", name="Older"), page.get_by_role("button", name="Newer")
    await expect(names).to_have_count(_PAGE)
    first = await names.first.inner_text()
    await expect(newer).to_be_disabled()
    await older.click()
    await expect(page).to_have_url(re.compile("cursor="))
    await expect(names.first).not_to_have_text(first)
    await older.click()
    await expect(names).to_have_count(20)
    await expect(older).to_be_disabled()
    address = page.url
    await newer.click()
    await expect(names).to_have_count(_PAGE)
    await page.go_back()
    await expect(page).to_have_url(address)
    await expect(names).to_have_count(20)
    await page.reload()
    await expect(names).to_have_count(20)
    await newer.click()
    await expect(names).to_have_count(_PAGE)
    await expect(page).to_have_url(re.compile("cursor="))
    await page.get_by_role("button", name="Newest").click()
    await expect(names.first).to_have_text(first)
    await expect(newer).to_be_disabled()
    shared = await open_page(address)
    await expect(shared.locator("td .job-name")).to_have_count(20)
    await expect(shared.get_by_role("button", name="Newer")).to_be_disabled()
    await expect(shared.get_by_role("button", name="Newest")).to_be_enabled()


async def test_a_short_list_is_read_on_to_its_end_and_of_a_long_one_the_first_pages(
    open_page: Opener, stage: Stage
) -> None:
    for n in range(11):
        await stage.shop.pen.schedule(f"tick-{n}", stage.shop.quick.prepare(n=n), every=3600)
    page = await open_page("/settings/appearance")
    sizes = ["limit=2"]

    async def few_at_once(route: Route) -> None:
        await route.continue_(url=route.request.url.replace("limit=500", sizes[-1]))

    await page.route("**/v1/schedules?*", few_at_once)
    await page.get_by_role("link", name="Schedules").click()
    rows, first = page.get_by_role("row", name=re.compile("tick-")), page.get_by_text("The first 10;")
    await expect(rows).to_have_count(11)
    await expect(first).to_have_count(0)
    sizes.append("limit=1")
    await page.get_by_role("link", name="Workers").click()
    await page.get_by_role("link", name="Schedules").click()
    await expect(first).to_be_visible()
    await expect(rows).to_have_count(10)
