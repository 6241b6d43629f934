"""What a server shows that no queue, no worker and no user has come to yet, up to its first key."""

import re
from collections.abc import AsyncIterator

import pytest
import pytest_asyncio
from playwright.async_api import expect

import hatch_build
from tests.dashboard.conftest import Opener
from tests.dashboard.stage import ROOT, Stage

pytestmark = [pytest.mark.asyncio(loop_scope="session"), pytest.mark.xdist_group("dashboard")]


@pytest_asyncio.fixture(scope="module", loop_scope="session")
async def stage(tmp_path_factory: pytest.TempPathFactory) -> AsyncIterator[Stage]:
    """Without a worker: its queues are there as soon as it listens to them."""
    hatch_build.build(ROOT)
    async with Stage(tmp_path_factory.mktemp("stage")) as stage:
        yield stage


async def test_an_empty_overview_says_how_the_first_queue_is_made(open_page: Opener) -> None:
    page = await open_page("/")
    await expect(page.get_by_role("heading", name="No queues yet")).to_be_visible()
    await expect(page.get_by_text("bullpen enqueue")).to_be_visible()


async def test_it_fits_a_phone(open_page: Opener) -> None:
    page = await open_page("/", width=390)
    await expect(page.get_by_text("bullpen enqueue")).to_be_in_viewport(ratio=1)


async def test_the_first_user_is_to_be_an_admin(open_page: Opener) -> None:
    page = await open_page("/settings/users")
    await page.get_by_role("button", name="New user").click()
    await expect(page.get_by_role("dialog").get_by_label("Role")).to_have_value("admin")


async def test_the_first_key_is_shown_though_it_closes_the_door(open_page: Opener) -> None:
    """The last test here: from then on nobody comes in without a key."""
    page = await open_page("/settings/keys", may_fail=True)
    await page.get_by_role("button", name="New key").click()
    dialog = page.get_by_role("dialog")
    await expect(dialog.get_by_role("link", name="Make an admin first")).to_be_visible()
    await dialog.get_by_label("Name").fill("first")
    await dialog.get_by_role("button", name="Make the key").click()
    await expect(page.locator(".login")).to_be_attached()
    text = dialog.get_by_text(re.compile(r"^bp_\w+"))
    await expect(text).to_be_visible()
    for _ in range(2):
        await page.keyboard.press("Escape")
    await page.mouse.click(5, 5)
    await expect(text).to_be_visible()
    await dialog.get_by_role("button", name="Done").click()
    await expect(dialog).to_have_count(0)
