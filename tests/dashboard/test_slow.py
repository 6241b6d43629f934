"""A server that answers slowly, or not at all: what is shown stays true, and what is not up to date says so."""

import asyncio
import re

import pytest
from playwright.async_api import Page, Route, expect

from tests.dashboard.conftest import Opener
from tests.dashboard.shop import QUEUE
from tests.dashboard.stage import Stage

pytestmark = [pytest.mark.asyncio(loop_scope="session"), pytest.mark.xdist_group("dashboard")]

LISTS = re.compile(r"/v1/jobs\?")


async def _with_clock(open_page: Opener, path: str) -> Page:
    """A page whose time can be moved on."""
    page = await open_page("/settings", may_fail=True)
    await page.clock.install()
    await page.goto(path)
    return page


async def test_a_slow_answer_is_awaited_though_changes_come_quicker(open_page: Opener, stage: Stage) -> None:
    await stage.shop.quick.options(tags=["slow"], delay=3600).add(n=1)
    page = await open_page("/settings", may_fail=True)
    await page.clock.install()
    asked: asyncio.Queue[Route] = asyncio.Queue()
    await page.route(LISTS, asked.put)
    await page.goto("/jobs?tag=slow")
    first = await asked.get()
    await page.clock.fast_forward(8_000)  # the page looks anew meanwhile
    await first.continue_()
    await expect(page.locator("td .job-name")).to_have_count(1)
    await (await asyncio.wait_for(asked.get(), 10)).abort()  # it asked again, after that


async def test_a_server_that_does_not_answer_is_said_to(open_page: Opener, stage: Stage) -> None:
    await stage.shop.quick.options(tags=["stale"], delay=3600).add(n=1)
    page = await _with_clock(open_page, "/jobs?tag=stale")
    await expect(page.locator("td .job-name")).to_have_count(1)
    asked: asyncio.Queue[Route] = asyncio.Queue()
    await page.route(LISTS, asked.put)
    await page.clock.fast_forward(8_000)
    await asked.get()  # and is never told anything
    await page.clock.fast_forward(16_000)
    await expect(page.get_by_text("Not up to date")).to_be_visible()
    await expect(page.locator("td .job-name")).to_have_count(1)


async def test_another_list_stays_when_what_was_done_in_the_last_one_ends(open_page: Opener, stage: Stage) -> None:
    await stage.shop.quick.options(tags=["leaving"], delay=3600).add(n=1)
    job = await stage.shop.quick.options(tags=["staying"], delay=3600).add(n=1)
    page = await _with_clock(open_page, "/jobs?tag=leaving")
    await page.get_by_role("checkbox").last.check()
    await page.get_by_role("button", name="Remove").click()
    await expect(page.get_by_text("1 job removed")).to_be_visible()
    await page.evaluate("history.pushState(null, '', '/jobs?tag=staying'); dispatchEvent(new Event('popstate'))")
    shown = page.locator(f'a.job-name[href$="/{job.id}"]')
    await expect(shown).to_be_visible()
    asked: asyncio.Queue[Route] = asyncio.Queue()

    async def done(route: Route) -> None:
        await page.route(LISTS, asked.put)
        await route.fulfill(json={"items": [{"queue": QUEUE, "id": "1", "outcome": "done"}]})

    await page.route("**/v1/jobs/actions", done)
    await page.clock.fast_forward(7_000)  # it cannot be undone any more
    await (await asked.get()).continue_()
    await expect(page.locator(".skeleton")).to_have_count(0)
    await expect(shown).to_be_visible()


async def test_a_job_that_is_gone_is_shown_no_more(open_page: Opener, stage: Stage) -> None:
    gate = stage.gate("vanishing")
    job = await stage.shop.gated.add(gate=str(gate))
    page = await open_page(f"/queues/{QUEUE}/jobs/{job.id}", may_fail=True)
    await expect(page.get_by_role("log")).to_contain_text("waiting at the gate")
    missing = {"code": "job-missing", "title": "No such job", "detail": "it is gone"}
    await page.route(re.compile(rf"/jobs/{job.id}$"), lambda route: route.fulfill(status=404, json=missing))
    gate.touch()
    await expect(page.get_by_role("heading", name="No such job")).to_be_visible()
    await expect(page.get_by_role("log")).to_have_count(0)


@pytest.mark.parametrize("asked", ["/v1/tenants", "/v1/me"])
async def test_what_could_not_be_loaded_is_asked_for_again(open_page: Opener, asked: str) -> None:
    page = await open_page("/settings", may_fail=True)
    await page.clock.install()
    at_first = re.compile(asked)
    await page.route(at_first, lambda route: route.abort())
    await page.goto("/settings/tenants")
    await expect(page.get_by_role("heading", name="The server does not answer")).to_be_visible()
    await page.unroute(at_first)
    await page.clock.fast_forward(6_000)
    await expect(page.get_by_role("heading", name="No tenants")).to_be_visible()
