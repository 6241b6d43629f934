"""All of it by keyboard."""

import re

import pytest
from playwright.async_api import expect

from tests.dashboard.conftest import Opener
from tests.dashboard.stage import Stage

pytestmark = [pytest.mark.asyncio(loop_scope="session"), pytest.mark.xdist_group("dashboard")]


async def test_two_keys_go_to_a_page(open_page: Opener) -> None:
    page = await open_page("/")
    heading = page.get_by_role("heading", level=1)
    await expect(heading).to_contain_text("Overview")
    for keys, title in (("gj", "Jobs"), ("gf", "Failures"), ("gw", "Workers"), ("gs", "Schedules"), ("go", "Overview")):
        for key in keys:
            await page.keyboard.press(key)
        await expect(heading).to_contain_text(title)


async def test_a_slash_leads_to_the_search_and_escape_leaves_it(open_page: Opener) -> None:
    page = await open_page("/")
    await expect(page.get_by_role("heading", level=1)).to_contain_text("Overview")
    await page.keyboard.press("/")
    search = page.get_by_role("searchbox", name="Search jobs")
    await expect(search).to_be_focused()
    await page.keyboard.type("gj")
    await expect(search).to_have_value("gj")
    await page.keyboard.press("Escape")
    await expect(search).not_to_be_focused()


async def test_j_and_k_move_enter_opens_and_x_selects(open_page: Opener, stage: Stage) -> None:
    jobs = [await stage.shop.quick.add(n=n) for n in range(3)]
    await jobs[-1].result(timeout=60)
    page = await open_page("/jobs")
    await expect(page.locator("td .job-name")).to_have_count(3)
    for key in ("j", "j", "k", "j", "x"):
        await page.keyboard.press(key)
    await expect(page.locator("tr[aria-current]")).to_have_count(1)
    await expect(page.locator("tr[aria-current]")).to_be_focused()
    await expect(page.get_by_text("1 job selected")).to_be_visible()
    await page.keyboard.press("Escape")
    await expect(page.get_by_text("1 job selected")).to_have_count(0)
    await page.keyboard.press("Enter")
    await expect(page).to_have_url(re.compile(rf"/jobs/{jobs[1].id}$"))


async def test_a_question_mark_lists_the_keys(open_page: Opener) -> None:
    page = await open_page("/")
    await expect(page.get_by_role("heading", level=1)).to_contain_text("Overview")
    await page.keyboard.press("?")
    dialog = page.get_by_role("dialog", name="Keyboard shortcuts")
    await expect(dialog).to_contain_text("Search jobs")
    await page.keyboard.press("Escape")
    await expect(dialog).to_have_count(0)


async def test_another_page_begins_at_its_heading(open_page: Opener) -> None:
    page = await open_page("/")
    await expect(page.get_by_role("heading", level=1)).to_contain_text("Overview")
    await page.get_by_role("link", name="Workers", exact=True).click()
    await expect(page.get_by_role("heading", name="Workers", level=1)).to_be_focused()
    await page.go_back()
    await expect(page.get_by_role("heading", name="Overview", level=1)).to_be_focused()


async def test_a_part_of_the_same_page_leaves_the_focus_where_it_is(open_page: Opener) -> None:
    page = await open_page("/settings")
    users = page.get_by_role("button", name="Users")
    await users.click()
    await expect(page).to_have_url(re.compile("/settings/users"))
    await expect(users).to_be_focused()
