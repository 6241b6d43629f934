"""A list of jobs is kept under a name: saved, opened by a click or an address, shared, removed."""

import asyncio
import re

import pytest
from playwright.async_api import Locator, Page, Route, expect

from bullpen.records.records import Records
from tests.dashboard.axe import serious_findings
from tests.dashboard.conftest import Opener
from tests.dashboard.stage import Stage

pytestmark = [pytest.mark.asyncio(loop_scope="session"), pytest.mark.xdist_group("dashboard")]

PASSWORD = "correct horse battery"


def _views(page: Page) -> Locator:
    return page.get_by_role("navigation", name="Saved views")


def _chip(page: Page, name: str) -> Locator:
    return _views(page).get_by_role("link", name=re.compile(f"^{name}"))


async def _save(page: Page, name: str, *, is_shared: bool = False) -> None:
    await page.get_by_role("button", name="Save view").click()
    dialog = page.get_by_role("dialog", name="Save this view")
    await dialog.get_by_label("Name").fill(name)
    await dialog.get_by_label("Share it").set_checked(is_shared)
    await dialog.get_by_role("button", name="Save").click()
    await expect(dialog).to_have_count(0)


async def test_without_views_the_page_says_how_one_is_made(open_page: Opener) -> None:
    page = await open_page("/jobs")
    await expect(_views(page)).to_contain_text("No saved views yet")


async def test_the_button_stays_under_the_pointer_when_the_views_come(open_page: Opener) -> None:
    page = await open_page("about:blank")
    come = asyncio.Event()

    async def late(route: Route) -> None:
        await come.wait()
        await route.continue_()

    await page.route("**/v1/views*", late)
    await page.goto("/jobs")
    await page.get_by_role("button", name="Save view").hover()
    await page.mouse.down()
    come.set()
    await expect(_views(page)).to_contain_text("No saved views yet")
    await page.mouse.up()
    await expect(page.get_by_role("dialog", name="Save this view")).to_be_visible()


async def test_a_view_is_saved_opened_by_click_and_removed(open_page: Opener, stage: Stage) -> None:
    for tenant in ("acme", "globex"):
        await stage.shop.quick.options(tenant=tenant).add(n=1)
    page = await open_page("/jobs?tenant=acme")
    await _save(page, "Acme's jobs")
    chip = _chip(page, "Acme's jobs")
    await expect(chip).to_have_attribute("aria-current", "page")
    await page.get_by_role("link", name="Jobs", exact=True).click()
    await expect(chip).not_to_have_attribute("aria-current", "page")
    await expect(page.locator("td .job-name")).to_have_count(2)
    await chip.click()
    await expect(page).to_have_url(re.compile(r"/jobs\?tenant=acme$"))
    await expect(page.locator("td .job-name")).to_have_count(1)
    await page.get_by_role("button", name="Remove the view Acme's jobs").click()
    await expect(chip).to_have_count(0)
    await page.get_by_role("button", name="Undo").click()
    await expect(chip).to_have_count(1)
    await page.reload()
    await expect(chip).to_have_count(1)


async def test_a_view_has_an_address_and_keeps_a_span_of_time_as_a_span(open_page: Opener, stage: Stage) -> None:
    page = await open_page("/jobs")
    await page.get_by_label("Added").select_option("Last hour")
    await expect(page).to_have_url(re.compile("within=3600000"))
    await _save(page, "Lately")
    address = await _chip(page, "Lately").get_attribute("href")
    assert address is not None
    other = await open_page(address)
    await expect(other).to_have_url(re.compile(r"/jobs\?within=3600000$"))
    await expect(other.get_by_label("Added")).to_have_value("3600000")
    await expect(_chip(other, "Lately")).to_have_attribute("aria-current", "page")
    await expect(other.locator("td .job-name")).to_have_count(2)


async def test_an_address_of_no_view_says_so(open_page: Opener) -> None:
    page = await open_page("/jobs?view=nobodys")
    await expect(page.get_by_role("status").filter(has_text="There is no such view")).to_be_visible()
    await expect(page).to_have_url(re.compile(r"/jobs$"))


async def test_saving_under_the_same_name_replaces_it(open_page: Opener) -> None:
    page = await open_page("/jobs?state=failed")
    await _save(page, "Mine")
    await page.get_by_label("State", exact=True).select_option("completed")
    await _save(page, "Mine")
    await expect(_chip(page, "Mine")).to_have_count(1)
    await expect(_chip(page, "Mine")).to_have_attribute("aria-current", "page")


async def test_each_list_has_its_own_views(open_page: Opener) -> None:
    page = await open_page("/dead-letters?name=broken")
    await expect(_views(page)).to_contain_text("No saved views yet")
    await _save(page, "Broken ones")
    await expect(_chip(page, "Broken ones")).to_have_count(1)
    await page.goto("/jobs")
    await expect(_chip(page, "Mine")).to_have_count(1)
    await expect(_chip(page, "Broken ones")).to_have_count(0)


async def test_by_keyboard_alone(open_page: Opener) -> None:
    page = await open_page("/jobs?state=delayed", bypass_csp=True)
    await expect(_chip(page, "Mine")).to_be_visible()
    await page.keyboard.press("v")
    dialog = page.get_by_role("dialog", name="Save this view")
    await expect(dialog.get_by_label("Name")).to_be_focused()
    assert await serious_findings(page) == []
    await page.keyboard.type("Later")
    await page.keyboard.press("Enter")
    await expect(_chip(page, "Later")).to_have_attribute("aria-current", "page")
    await _chip(page, "Mine").focus()
    await page.keyboard.press("Enter")
    await expect(page).to_have_url(re.compile(r"/jobs\?state=completed$"))


async def test_what_is_shared_others_open_but_cannot_remove(open_page: Opener, stage: Stage) -> None:
    """The last test here: from the first user on everybody must log in."""
    records = await Records.open(stage.records)
    for name in ("ann", "rex"):
        await records.users.create(name, PASSWORD, role="operator")
    await records.close()
    page = await open_page("/jobs?state=failed", may_fail=True)
    await _log_in(page, "ann")
    await _save(page, "Failed for all", is_shared=True)
    await _save(page, "For ann alone")
    other = await open_page("/jobs", may_fail=True)
    await _log_in(other, "rex")
    await expect(_chip(other, "Failed for all")).to_contain_text("user:ann")
    await expect(_chip(other, "For ann alone")).to_have_count(0)
    await expect(other.get_by_role("button", name=re.compile("^Remove the view"))).to_have_count(0)
    await _chip(other, "Failed for all").click()
    await expect(other).to_have_url(re.compile(r"/jobs\?state=failed$"))


async def _log_in(page: Page, name: str) -> None:
    await page.get_by_label("Name").fill(name)
    await page.get_by_label("Password").fill(PASSWORD)
    await page.get_by_role("button", name="Log in").click()
