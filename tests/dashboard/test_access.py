"""Tenants, alerts, webhooks and the audit log, on a server that is open."""

import asyncio
import re

import pytest
from playwright.async_api import Route, expect

from tests.dashboard.axe import serious_findings
from tests.dashboard.conftest import Opener
from tests.dashboard.stage import Stage

pytestmark = [pytest.mark.asyncio(loop_scope="session"), pytest.mark.xdist_group("dashboard")]


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
    await expect(dialog.get_by_label("Highest priority")).to_have_attribute("aria-invalid", "true")
    await expect(dialog.get_by_role("alert")).to_contain_text("bad-option")
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
    await page.get_by_role("dialog").get_by_role("button", name="Disable").click()
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
    await expect(dialog.get_by_label("Address")).to_have_attribute("aria-invalid", "true")
    await expect(dialog.get_by_role("alert")).to_contain_text("address-refused")
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
    page = await open_page("/settings/tenants")
    await page.get_by_role("button", name="New tenant").click()
    await page.get_by_role("dialog").get_by_label("Id").fill("noted")
    await page.get_by_role("dialog").get_by_role("button", name="Save").click()
    await expect(page.get_by_role("row", name=re.compile("noted"))).to_be_visible()
    await page.goto("/audit")
    await page.get_by_label("target").fill("noted")
    await page.get_by_label("target").press("Enter")
    rows = page.get_by_role("table").locator("tbody tr")
    await expect(rows).to_have_count(1)
    await expect(rows).to_contain_text("tenant.create")


async def test_what_is_typed_while_a_page_loads_is_kept(open_page: Opener) -> None:
    page = await open_page("/settings")
    typed = asyncio.Event()

    async def late(route: Route) -> None:
        await typed.wait()
        await route.continue_()

    await page.route(re.compile("/v1/audit"), late)
    await page.goto("/audit")
    target = page.get_by_label("target")
    await target.fill("nobody did a thing to this")
    typed.set()
    await expect(
        page.get_by_role("heading", name="Nothing was done yet").or_(page.get_by_role("table"))
    ).to_be_visible()
    await target.press("Enter")
    await expect(page.get_by_role("heading", name="No entry fits")).to_be_visible()
    assert "target=nobody" in page.url


async def test_a_dialog_is_closed_by_a_click_beside_it_alone(open_page: Opener) -> None:
    """Neither by its own padding, nor where somebody lets go who selects what was typed."""
    page = await open_page("/settings/tenants")
    await page.get_by_role("button", name="New tenant").click()
    dialog = page.get_by_role("dialog")
    await dialog.get_by_label("Id").fill("acme")
    box, field = await dialog.bounding_box(), await dialog.get_by_label("Id").bounding_box()
    assert box is not None
    assert field is not None
    await page.mouse.click(box["x"] + 4, box["y"] + 4)
    await page.mouse.move(field["x"] + 60, field["y"] + 8)
    await page.mouse.down()
    await page.mouse.move(box["x"] - 40, field["y"] + 8)
    await page.mouse.up()
    await expect(dialog.get_by_label("Id")).to_have_value("acme")
    await page.mouse.click(box["x"] - 40, field["y"] + 8)
    await expect(dialog).to_have_count(0)


async def test_a_secret_is_copied_where_the_browser_has_no_clipboard_for_pages(open_page: Opener) -> None:
    """As over plain HTTP; and where that is forbidden too, it says so."""
    page = await open_page("/settings")
    await page.add_init_script("Object.defineProperty(navigator, 'clipboard', { value: undefined })")
    await page.goto("/settings/webhooks")
    await page.get_by_role("button", name="New webhook").click()
    dialog = page.get_by_role("dialog")
    await dialog.get_by_label("Name").fill("copied")
    await dialog.get_by_label("Address").fill("https://localhost/")
    await dialog.get_by_role("button", name="Make the webhook").click()
    secret = await dialog.locator(".secret code").inner_text()
    await page.evaluate("addEventListener('copy', () => { window.copied = getSelection().toString(); })")
    await dialog.get_by_role("button", name="Copy the secret").click()
    await expect(dialog.get_by_role("button", name="Copied")).to_be_focused()
    assert await page.evaluate("window.copied") == secret
    await page.evaluate("document.execCommand = () => false")
    await dialog.get_by_role("button", name=re.compile("Cop")).click()
    await expect(page.get_by_text("Copying did not work")).to_be_visible()
