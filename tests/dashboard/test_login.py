"""Users, from the first one on, with whom the door closes: the login, a session, what each role is shown."""

import re
from typing import Literal

import pytest
import pytest_asyncio
from playwright.async_api import Browser, Page, expect

from tests.dashboard.axe import serious_findings
from tests.dashboard.conftest import Opener
from tests.dashboard.stage import Stage

pytestmark = [pytest.mark.asyncio(loop_scope="session"), pytest.mark.xdist_group("dashboard")]

PASSWORD = "correct horse battery"


async def _log_in(page: Page, name: str, password: str = PASSWORD) -> None:
    await page.get_by_label("Name").fill(name)
    await page.get_by_label("Password").fill(password)
    await page.get_by_role("button", name="Log in").click()


async def _make_user(page: Page, name: str, role: str, tenant: str = "") -> None:
    await page.get_by_role("button", name="New user").click()
    dialog = page.get_by_role("dialog")
    await dialog.get_by_label("Name").fill(name)
    await dialog.get_by_label("Password").fill(PASSWORD)
    await dialog.get_by_label("Role").select_option(role)
    await dialog.get_by_label("Tenant").fill(tenant)
    await dialog.get_by_role("button", name="Make the user").click()


@pytest_asyncio.fixture(scope="module", loop_scope="session", autouse=True)
async def _first_user(browser: Browser, stage: Stage) -> None:
    """Ann, an admin. Whoever made her has to log in too."""
    page = await browser.new_page(base_url=stage.url)
    await page.goto("/settings/users")
    await _make_user(page, "ann", "admin")
    await expect(page.get_by_role("button", name="Log in")).to_be_visible()
    await page.close()


async def test_who_has_the_password_comes_in(open_page: Opener) -> None:
    page = await open_page("/settings/users", may_fail=True)
    await _log_in(page, "ann", "a wrong password")
    await expect(page.get_by_role("alert")).to_contain_text("unauthenticated")
    await _log_in(page, "ann")
    await expect(page.get_by_role("row", name=re.compile("ann"))).to_be_visible()


@pytest.mark.parametrize("theme", ["light", "dark"])
async def test_the_login_has_no_serious_finding(open_page: Opener, theme: Literal["light", "dark"]) -> None:
    page = await open_page("/", may_fail=True, color_scheme=theme, bypass_csp=True)
    await expect(page.get_by_role("button", name="Log in")).to_be_visible()
    assert await serious_findings(page) == []


async def test_a_session_writes_and_ends(open_page: Opener) -> None:
    page = await open_page("/settings/keys", may_fail=True)
    await _log_in(page, "ann")
    await page.get_by_role("button", name="New key").click()
    dialog = page.get_by_role("dialog")
    await dialog.get_by_label("Name").fill("ci")
    await dialog.get_by_role("button", name="Make the key").click()
    text = await page.get_by_role("dialog").locator(".secret code").inner_text()
    assert re.fullmatch(r"bp_[0-9a-f]{12}_[A-Za-z0-9_-]{43}", text)
    await page.get_by_role("button", name="Done").click()
    await expect(page.get_by_text(text)).to_have_count(0)
    row = page.get_by_role("row", name=re.compile(r"\bci\b"))
    await row.get_by_role("button", name="Revoke").click()
    await page.get_by_role("dialog").get_by_role("button", name="Revoke").click()
    await expect(row).to_contain_text("Revoked")
    await page.get_by_role("button", name="Log out").click()
    await expect(page.get_by_role("button", name="Log in")).to_be_visible()
    await page.goto("/jobs")
    await expect(page.get_by_role("button", name="Log in")).to_be_visible()


async def test_a_reviewer_is_shown_no_button_that_would_be_refused(open_page: Opener, stage: Stage) -> None:
    await stage.shop.broken.add(why="to be reviewed")
    page = await open_page("/settings/users", may_fail=True)
    await _log_in(page, "ann")
    await _make_user(page, "rex", "reviewer")
    await expect(page.get_by_role("row", name=re.compile("rex"))).to_be_visible()
    other = await open_page("/dead-letters", may_fail=True)
    await _log_in(other, "rex")
    await expect(other.get_by_role("button", name="Retry all that fit")).to_be_visible()
    await expect(other.get_by_role("button", name="Purge all that fit")).to_have_count(0)
    await other.get_by_role("link", name="Settings").click()
    await expect(other.get_by_role("button", name="Appearance")).to_be_visible()
    await expect(other.get_by_role("button", name="API keys")).to_have_count(0)


async def test_an_operator_of_a_tenant_is_shown_nothing_that_concerns_all_tenants(
    open_page: Opener, stage: Stage
) -> None:
    await stage.shop.pen.queue("work").add("quick", {"n": 1}, tenant="acme", group="acme")
    page = await open_page("/settings/users", may_fail=True)
    await _log_in(page, "ann")
    await _make_user(page, "olga", "operator", "acme")
    await expect(page.get_by_role("row", name=re.compile("olga"))).to_be_visible()
    other = await open_page("/queues/work", may_fail=True)
    await _log_in(other, "olga")
    await expect(other.get_by_role("heading", name="work", level=1)).to_be_visible()
    await expect(other.get_by_role("link", name="Schedules")).to_be_visible()
    await expect(other.get_by_role("link", name="Workers")).to_have_count(0)
    await expect(other.get_by_role("button", name=re.compile("^Pause|^More actions"))).to_have_count(0)
    await other.get_by_role("button", name="Groups").click()
    await expect(other.get_by_role("row", name=re.compile("acme"))).to_be_visible()
    await expect(other.get_by_role("button", name="Limits")).to_have_count(0)


async def test_a_producer_begins_at_what_it_may_see_and_asks_for_nothing_else(open_page: Opener) -> None:
    page = await open_page("/settings/users", may_fail=True)
    await _log_in(page, "ann")
    await _make_user(page, "pia", "producer")
    await expect(page.get_by_role("row", name=re.compile("pia"))).to_be_visible()
    other = await open_page("/login-first", may_fail=True)
    await _log_in(other, "pia")
    await expect(other.get_by_role("heading", name="There is no such page")).to_be_visible()
    refused: list[str] = []
    other.on("response", lambda response: refused.append(response.url) if response.status == 403 else None)
    await other.goto("/")
    await expect(other.get_by_role("heading", name="Jobs", level=1)).to_be_visible()
    await expect(other.get_by_role("link", name="Overview")).to_have_count(0)
    await expect(other.locator(".side .live")).to_have_text("Not live")
    await other.reload(wait_until="networkidle")
    assert refused == []


async def test_a_user_gets_another_password_and_role_and_is_disabled(open_page: Opener) -> None:
    """Each ends all sessions of the user; who is disabled comes in again once enabled."""
    page = await open_page("/settings/users", may_fail=True)
    await _log_in(page, "ann")
    await _make_user(page, "max", "reviewer")
    row, dialog = page.get_by_role("row", name=re.compile("max")), page.get_by_role("dialog")
    await row.get_by_role("button", name="Password").click()
    await dialog.get_by_label("Password").fill("another horse battery")
    await dialog.get_by_role("button", name="Set the password").click()
    await expect(dialog).to_have_count(0)
    other = await open_page("/jobs", may_fail=True)
    await _log_in(other, "max")
    await expect(other.get_by_role("alert")).to_contain_text("unauthenticated")
    await _log_in(other, "max", "another horse battery")
    await expect(other.get_by_role("heading", name="Jobs", level=1)).to_be_visible()
    await row.get_by_role("button", name="Role").click()
    await dialog.get_by_label("Role").select_option("producer")
    await dialog.get_by_role("button", name="Set the role").click()
    await expect(row).to_contain_text("producer")
    await row.get_by_role("button", name="Disable").click()
    await dialog.get_by_role("button", name="Disable").click()
    await expect(row).to_contain_text("Disabled")
    await other.reload()
    await _log_in(other, "max", "another horse battery")
    await expect(other.get_by_role("alert")).to_contain_text("unauthenticated")
    await row.get_by_role("button", name="Enable").click()
    await expect(row).to_contain_text("Active")
    await _log_in(other, "max", "another horse battery")
    await expect(other.get_by_role("heading", name="Jobs", level=1)).to_be_visible()


async def _log_in_elsewhere(page: Page, name: str) -> None:
    """In another tab of the same browser: the session is another one, and so is what a write has to bear."""
    answer = await page.context.request.post("/v1/login", data={"name": name, "password": PASSWORD})
    assert answer.ok, await answer.text()


async def test_a_login_in_another_tab_leaves_the_first_one_able_to_write(open_page: Opener) -> None:
    page = await open_page("/settings/users", may_fail=True)
    await _log_in(page, "ann")
    await _log_in_elsewhere(page, "ann")
    await _make_user(page, "bob", "reviewer")
    await expect(page.get_by_role("row", name=re.compile("bob"))).to_be_visible()


async def test_what_one_user_asked_for_is_not_done_as_another(open_page: Opener) -> None:
    page = await open_page("/settings/users", may_fail=True)
    await _log_in(page, "ann")
    await _make_user(page, "eve", "reviewer")
    row = page.get_by_role("row", name=re.compile("eve"))
    await row.get_by_role("button", name="Disable").click()
    await _log_in_elsewhere(page, "eve")
    await page.get_by_role("dialog").get_by_role("button", name="Disable").click()
    await expect(page.get_by_text("Somebody else has logged in")).to_be_visible()
    await expect(page.locator(".side-who")).to_contain_text("eve")
    await expect(page.get_by_role("button", name="Users")).to_have_count(0)


async def test_who_logs_in_next_is_not_shown_the_queues_of_the_last_one(open_page: Opener, stage: Stage) -> None:
    await stage.shop.broken.add(why="to be seen by one")
    page = await open_page("/settings/users", may_fail=True)
    await _log_in(page, "ann")
    await _make_user(page, "may", "reviewer")
    await expect(page.get_by_role("row", name=re.compile("may"))).to_be_visible()
    queues = page.get_by_role("navigation", name="Queues")
    await expect(queues).to_be_visible()
    await page.get_by_role("button", name="Log out").click()
    await page.route("**/v1/overview", lambda _: None)  # it never answers
    await _log_in(page, "may")
    await expect(page.locator(".side-who")).to_contain_text("may")
    await expect(queues).to_have_count(0)
