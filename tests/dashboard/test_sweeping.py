"""What is done to all jobs of a queue, or to all that failed for one reason."""

import re
from datetime import timedelta

import pytest
from playwright.async_api import Page, expect

from bullpen.job.state import State
from tests.dashboard.conftest import Opener, set_ahead
from tests.dashboard.shop import QUEUE
from tests.dashboard.stage import Stage

pytestmark = [pytest.mark.asyncio(loop_scope="session"), pytest.mark.xdist_group("dashboard")]

IDLE = "idle"
"""Nobody works on this queue."""


async def _carry_out(page: Page, entry: str, verb: str, state: str) -> None:
    """To two jobs that are in this state."""
    await expect(page.get_by_role("button", name=re.compile(rf"^{state} ?2$"))).to_be_visible()
    await page.get_by_role("button", name="More actions").click()
    await page.get_by_role("menuitem", name=re.compile(entry)).click()
    await expect(page.get_by_role("dialog")).to_contain_text("At the last count: 2 jobs.")
    await page.get_by_role("dialog").get_by_role("button", name=verb, exact=True).click()


async def test_all_failed_jobs_of_a_queue_are_retried(open_page: Opener, stage: Stage) -> None:
    ids = [(await stage.shop.broken.add(why="all of them")).id for _ in range(2)]
    await stage.until(lambda: _have_failed(stage, ids))
    page = await open_page(f"/queues/{QUEUE}")
    await _carry_out(page, "Retry all failed jobs", "Retry all", "Failed")
    await expect(page.locator(".toast", has_text="Failed jobs wait again")).to_be_visible()
    await stage.until(lambda: _have_failed(stage, ids, starts=2))


async def test_all_of_a_cause_are_retried(open_page: Opener, stage: Stage) -> None:
    """And none of another."""
    ours = [(await stage.shop.broken.add(why="wanted by us")).id for _ in range(2)]
    others = [(await stage.shop.broken.add(why="another reason")).id]
    await stage.until(lambda: _have_failed(stage, [*ours, *others]))
    page = await open_page("/failures")
    row = page.get_by_role("row", name=re.compile("wanted by us"))
    await expect(row.locator("td").first).to_have_text("2")
    await row.get_by_role("button", name="Retry all of broken").click()
    await expect(page.get_by_role("dialog")).to_contain_text("(2 jobs) wait again")
    await page.get_by_role("dialog").get_by_role("button", name="Retry", exact=True).click()
    await expect(page.locator(".toast", has_text="2 jobs will run again")).to_be_visible()
    await stage.until(lambda: _have_failed(stage, ours, starts=2))
    assert not await _have_failed(stage, others, starts=2)


async def test_what_failed_of_late_is_told_apart(open_page: Opener, stage: Stage) -> None:
    ids = [(await stage.shop.broken.add(why="an outage long ago")).id for _ in range(2)]
    await stage.until(lambda: _have_failed(stage, ids))
    last = (await stage.shop.broken.add(why="tonight")).id
    await stage.until(lambda: _have_failed(stage, [last]))
    page = await open_page("/failures")
    rows = page.get_by_role("table").get_by_role("row")
    then, now = (rows.filter(has_text=why) for why in ("an outage long ago", "tonight"))
    await expect(then).to_be_visible()
    await page.get_by_label("Order").select_option("newest")
    await expect(rows.nth(1)).to_contain_text("tonight")
    await page.get_by_label("Failed", exact=True).select_option("3600000")
    await expect(page).to_have_url(re.compile("within=3600000"))
    await expect(now).to_be_visible()
    await set_ahead(page, timedelta(days=2))
    await page.reload()
    await expect(page.get_by_role("heading", name="Nothing has failed in the last hour")).to_be_visible()


async def test_of_very_many_reasons_it_is_said_that_there_are_more(open_page: Opener, stage: Stage) -> None:
    page = await open_page("/settings")
    group = {"queue": QUEUE, "name": "n", "count": 1, "newest_ms": 1, "oldest_ms": 1, "error": "e"}
    items = [{**group, "fingerprint": f"{n:012}"} for n in range(100)]
    told = {"items": items, "next_cursor": None, "has_more": True, "behind_ms": 0}
    await page.route("**/v1/failures*", lambda route: route.fulfill(json=told))
    await page.goto("/failures")
    await expect(page.get_by_text("The first 100 reasons; choose a queue or a time")).to_be_visible()


async def test_all_delayed_jobs_are_promoted_and_all_that_wait_are_drained(open_page: Opener, stage: Stage) -> None:
    queue = stage.shop.pen.queue(IDLE)
    await queue.add_bulk([queue.prepare("item", {}, delay=3600) for _ in range(2)])
    page = await open_page(f"/queues/{IDLE}")
    await _carry_out(page, "Promote all delayed jobs", "Promote all", "Delayed")
    await expect(page.locator(".toast", has_text="Delayed jobs may run now")).to_be_visible()
    counts = await queue.counts()
    assert (counts.waiting, counts.delayed) == (2, 0)
    await _carry_out(page, "Drain", "Drain", "Waiting")
    await expect(page.locator(".toast", has_text="Waiting jobs are removed")).to_be_visible()
    assert (await queue.counts()).waiting == 0


async def test_completed_jobs_are_cleaned(open_page: Opener, stage: Stage) -> None:
    for n in range(2):
        await (await stage.shop.quick.add(n=n)).result(timeout=60)
    page = await open_page(f"/queues/{QUEUE}?state=completed")
    await expect(page.locator("td .job-name")).to_have_count(2)
    await _carry_out(page, "Clean completed jobs", "Remove completed", "Completed")
    await expect(page.locator(".toast", has_text="Completed jobs are removed")).to_be_visible()
    await expect(page.get_by_role("heading", name="No job is in this state")).to_be_visible()
    assert (await stage.shop.pen.queue(QUEUE).counts()).completed == 0


async def _have_failed(stage: Stage, ids: list[str], *, starts: int = 1) -> bool:
    jobs = await stage.shop.pen.store.look(QUEUE, ids)
    return all(job is not None and job.state is State.FAILED and job.epoch >= starts for job in jobs)
