"""What a server shows that no queue and no worker has come to yet."""

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
