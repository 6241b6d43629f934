"""Queues with nothing to do stand last and folded; where the store lies is told in one line."""

import re

import pytest
from playwright.async_api import Locator, Page, expect

from tests.dashboard.conftest import Opener
from tests.dashboard.shop import QUEUE
from tests.dashboard.stage import Stage

pytestmark = [pytest.mark.asyncio(loop_scope="session"), pytest.mark.xdist_group("dashboard")]

_IDLE = re.compile(r"^\d+ idle queues$")
_ASLEEP = ("asleep", "at-rest")


async def _make_idle(stage: Stage) -> None:
    """Two that exist and never had a job, beside one that has."""
    for name in _ASLEEP:
        await stage.shop.pen.queue(name).pause()
        await stage.shop.pen.queue(name).resume()
    await (await stage.shop.quick.add(n=1)).result(timeout=60)


def _row(page: Page, queue: str) -> Locator:
    return page.get_by_role("row", name=re.compile(rf"^{queue}\b"))


def _link(page: Page, queue: str) -> Locator:
    return page.get_by_role("navigation", name="Queues").get_by_role("link", name=re.compile(rf"^{queue}\b"))


async def test_idle_queues_are_folded_until_asked_for_and_that_is_remembered(open_page: Opener, stage: Stage) -> None:
    await _make_idle(stage)
    page = await open_page("/")
    fold = page.get_by_role("main").get_by_role("button", name=_IDLE)
    await expect(fold).to_have_attribute("aria-expanded", "false")
    await expect(_row(page, QUEUE)).to_be_visible()
    await expect(_link(page, QUEUE)).to_be_visible()
    await _expect_folded(page)
    await fold.focus()
    await page.keyboard.press("Enter")
    await expect(fold).to_have_attribute("aria-expanded", "true")
    await _expect_unfolded(page)
    await page.reload()
    await _expect_unfolded(page)
    await page.get_by_role("navigation", name="Queues").get_by_role("button", name=_IDLE).click()
    await _expect_folded(page)


async def _expect_folded(page: Page) -> None:
    for name in _ASLEEP:
        await expect(_row(page, name)).to_have_count(0)
        await expect(_link(page, name)).to_have_count(0)


async def _expect_unfolded(page: Page) -> None:
    """After those at work, although their names come first."""
    for name in _ASLEEP:
        await expect(_link(page, name)).to_be_visible()
        await expect(page.locator(f"tr[data-key={QUEUE}] ~ tr[data-key={name}]")).to_be_visible()


async def test_the_queue_that_is_looked_at_stays_in_sight(open_page: Opener, stage: Stage) -> None:
    await _make_idle(stage)
    page = await open_page("/queues/asleep")
    await expect(_link(page, "asleep")).to_have_attribute("aria-current", "page")
    await expect(_link(page, "at-rest")).to_have_count(0)


async def test_a_queue_that_gets_a_job_is_no_longer_idle(open_page: Opener, stage: Stage) -> None:
    await _make_idle(stage)
    woken = stage.shop.pen.queue("woken")
    await woken.pause()
    await woken.resume()
    page = await open_page("/")
    await expect(page.get_by_role("main").get_by_role("button", name=_IDLE)).to_be_visible()
    await expect(_row(page, "woken")).to_have_count(0)
    await woken.add("later", {}, delay=3600)
    await expect(_row(page, "woken")).to_be_visible()
    await expect(_link(page, "woken")).to_be_visible()


async def test_the_way_to_the_store_is_shortened_in_its_middle(open_page: Opener, stage: Stage) -> None:
    page = await open_page("/settings", width=390)
    where = page.locator(".where").first
    await expect(where).to_have_attribute("title", re.compile(re.escape(stage.store)))
    line = await where.evaluate("one => one.getClientRects().length")
    box, head = await where.bounding_box(), await page.locator(".lead").bounding_box()
    assert line == 1
    assert box is not None
    assert head is not None
    assert box["width"] <= head["width"]
    await expect(where.locator("span").last).to_have_text(re.compile("queue.db$"))
