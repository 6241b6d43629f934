"""Keys, users, tenants, alerts, the audit log, and the login that begins with the first user."""

import re
from typing import Literal

import pytest
from playwright.async_api import Page, expect

from tests.dashboard.axe import serious_findings
from tests.dashboard.conftest import Opener
from tests.dashboard.stage import Stage

pytestmark = [pytest.mark.asyncio(loop_scope="session"), pytest.mark.xdist_group("dashboard")]

PASSWORD = "correct horse battery"


async def _log_in(page: Page, name: str, password: str = PASSWORD) -> None:
    await page.get_by_label("Name").fill(name)
    await page.get_by_label("Password").fill(password)
    await page.get_by_role("button", name="Log in").click()


async def test_the_theme_is_kept(open_page: Opener) -> None:
    page = await open_page("/settings", color_scheme="light")
    await page.get_by_label(re.compile("^Dark")).check()
    await expect(page.locator("html")).to_have_attribute("data-theme", "dark")
    await page.reload()
    await expect(page.get_by_label(re.compile("^Dark"))).to_be_checked()
    await expect(page.locator("html")).to_have_attribute("data-theme", "dark")
    await page.keyboard.press("t")
    await expect(page.locator("html")).to_have_attribute("data-theme", "light")


async def test_a_tenant_gets_a_plan(open_page: Opener) -> None:
    page = await open_page("/settings/tenants", may_fail=True)
    await page.get_by_role("button", name="New tenant").click()
    dialog = page.get_by_role("dialog")
    await dialog.get_by_label("Id").fill("acme")
    await dialog.get_by_label("Jobs at once").fill("4")
    await dialog.get_by_role("button", name="Save").click()
    row = page.get_by_role("row", name=re.compile("acme"))
    await expect(row).to_contain_text("4 at once")
    await row.get_by_role("button", name="Plan").click()
    await dialog.get_by_label("Jobs at once").fill("6")
    await dialog.get_by_label("Highest priority").fill("9")
    await dialog.get_by_role("button", name="Save").click()
    await expect(dialog.get_by_role("alert")).to_contain_text("highest_priority")
    await dialog.get_by_label("Highest priority").fill("2")
    await dialog.get_by_role("button", name="Save").click()
    await expect(row).to_contain_text("6 at once")


async def test_the_plan_of_a_tenant_limits_its_uploads(open_page: Opener) -> None:
    """An empty field is the server's own limit, 0 is none at all; the rest of the plan stays."""
    page = await open_page("/settings/tenants")
    await page.get_by_role("button", name="New tenant").click()
    dialog = page.get_by_role("dialog")
    field, row = dialog.get_by_label("Megabytes of uploads"), page.get_by_role("row", name=re.compile("uploader"))
    await dialog.get_by_label("Id").fill("uploader")
    await dialog.get_by_label("Weight").fill("3")
    for megabytes in ("250", "0", ""):
        await field.fill(megabytes)
        await dialog.get_by_role("button", name="Save").click()
        await expect(dialog).to_be_hidden()
        await page.reload()
        await row.get_by_role("button", name="Plan").click()
        await expect(field).to_have_value(megabytes)
        await expect(dialog.get_by_label("Weight")).to_have_value("3")


async def test_a_tenant_is_disabled_enabled_and_removed(open_page: Opener) -> None:
    page = await open_page("/settings/tenants")
    await page.get_by_role("button", name="New tenant").click()
    await page.get_by_role("dialog").get_by_label("Id").fill("leaver")
    await page.get_by_role("dialog").get_by_role("button", name="Save").click()
    row = page.get_by_role("row", name=re.compile("leaver"))
    await row.get_by_role("button", name="Disable").click()
    await expect(row).to_contain_text("Disabled")
    await row.get_by_role("button", name="Enable").click()
    await expect(row).to_contain_text("Active")
    await row.get_by_role("button", name="Remove").click()
    await page.get_by_role("dialog").get_by_role("button", name="Remove").click()
    await expect(row).to_have_count(0)


async def test_an_alert_is_set_turned_off_and_removed(open_page: Opener) -> None:
    page = await open_page("/settings/alerts")
    await page.get_by_role("button", name="New alert").click()
    dialog = page.get_by_role("dialog")
    await dialog.get_by_label("Name").fill("too many failures")
    await dialog.get_by_role("button", name="Save").click()
    row = page.get_by_role("row", name=re.compile("too many failures"))
    await row.get_by_role("button", name="Turn off").click()
    await expect(row).to_contain_text("Off")
    await row.get_by_role("button", name="Remove").click()
    await page.get_by_role("dialog").get_by_role("button", name="Remove").click()
    await expect(page.get_by_role("heading", name="No alerts")).to_be_visible()


async def test_a_webhook_is_made_tried_turned_off_and_removed(open_page: Opener, stage: Stage) -> None:
    page = await open_page("/settings/webhooks", may_fail=True, bypass_csp=True)
    await page.get_by_role("button", name="New webhook").click()
    dialog = page.get_by_role("dialog")
    await dialog.get_by_label("Name").fill("our hook")
    await dialog.get_by_label("Address").fill("http://10.0.0.1/")
    await dialog.get_by_role("button", name="Make the webhook").click()
    await expect(dialog.get_by_role("alert")).to_contain_text("url")
    await dialog.get_by_label("Address").fill("https://localhost/")
    await dialog.get_by_label("Events").fill("failed, stalled")
    await dialog.get_by_role("button", name="Make the webhook").click()
    await expect(dialog.get_by_text("whsec_")).to_be_visible()
    await dialog.get_by_role("button", name="Done").click()
    row = page.get_by_role("row", name=re.compile("our hook"))
    await expect(row).to_contain_text("failed, stalled")
    assert "whsec_" not in await page.content()
    await row.get_by_role("button", name="Send test").click()
    await expect(page.get_by_text("A test is on its way to our hook")).to_be_visible()
    await row.get_by_role("button", name="Turn off").click()
    await expect(row).to_contain_text("Off")
    assert await serious_findings(page) == []
    await row.get_by_role("link", name="Deliveries").click()
    await expect(page.get_by_role("row", name=re.compile("deliver"))).to_be_visible()
    await page.go_back()
    await row.get_by_role("button", name="Remove").click()
    await page.get_by_role("dialog").get_by_role("button", name="Remove").click()
    await expect(page.get_by_role("heading", name="No webhooks")).to_be_visible()


async def test_what_was_done_is_in_the_audit_log(open_page: Opener) -> None:
    page = await open_page("/audit")
    await expect(page.get_by_role("row", name=re.compile("tenant.create")).first).to_be_visible()
    await page.get_by_label("action").fill("alert.remove")
    await page.get_by_label("action").press("Enter")
    await expect(page.get_by_role("table").locator("tbody tr")).to_have_count(1)


async def test_the_first_user_closes_the_door_and_comes_in_again(open_page: Opener) -> None:
    page = await open_page("/settings/users", may_fail=True)
    await page.get_by_role("button", name="New user").click()
    dialog = page.get_by_role("dialog")
    await dialog.get_by_label("Name").fill("ann")
    await dialog.get_by_label("Password").fill(PASSWORD)
    await dialog.get_by_label("Role").select_option("admin")
    await dialog.get_by_role("button", name="Make the user").click()
    await expect(page.get_by_role("button", name="Log in")).to_be_visible()
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
    await page.get_by_role("button", name="New user").click()
    dialog = page.get_by_role("dialog")
    await dialog.get_by_label("Name").fill("rex")
    await dialog.get_by_label("Password").fill(PASSWORD)
    await dialog.get_by_label("Role").select_option("reviewer")
    await dialog.get_by_role("button", name="Make the user").click()
    await expect(page.get_by_role("row", name=re.compile("rex"))).to_be_visible()
    other = await open_page("/dead-letters", may_fail=True)
    await _log_in(other, "rex")
    await expect(other.get_by_role("button", name="Retry all that fit")).to_be_visible()
    await expect(other.get_by_role("button", name="Purge all that fit")).to_have_count(0)
    await other.get_by_role("link", name="Settings").click()
    await expect(other.get_by_role("button", name="Appearance")).to_be_visible()
    await expect(other.get_by_role("button", name="API keys")).to_have_count(0)


async def test_a_user_gets_another_password_and_is_disabled(open_page: Opener) -> None:
    """Either ends all sessions of the user; who is disabled does not come in again."""
    page = await open_page("/settings/users", may_fail=True)
    await _log_in(page, "ann")
    row, dialog = page.get_by_role("row", name=re.compile("rex")), page.get_by_role("dialog")
    await row.get_by_role("button", name="Password").click()
    await dialog.get_by_label("Password").fill("another horse battery")
    await dialog.get_by_role("button", name="Set the password").click()
    await expect(dialog).to_have_count(0)
    other = await open_page("/jobs", may_fail=True)
    await _log_in(other, "rex")
    await expect(other.get_by_role("alert")).to_contain_text("unauthenticated")
    await _log_in(other, "rex", "another horse battery")
    await expect(other.get_by_role("heading", name="Jobs", level=1)).to_be_visible()
    await row.get_by_role("button", name="Disable").click()
    await dialog.get_by_role("button", name="Disable").click()
    await expect(row).to_contain_text("Disabled")
    await other.reload()
    await _log_in(other, "rex", "another horse battery")
    await expect(other.get_by_role("alert")).to_contain_text("unauthenticated")
