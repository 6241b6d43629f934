"""Each button does what it says, asks first where that is needed, and says how it went."""

import asyncio
import json
import re
from typing import Any

import pytest
from playwright.async_api import Locator, Page, Route, expect

from bullpen.job.record import JobRecord
from bullpen.job.state import State
from tests.dashboard.conftest import Opener
from tests.dashboard.shop import QUEUE
from tests.dashboard.stage import Stage

pytestmark = [pytest.mark.asyncio(loop_scope="session"), pytest.mark.xdist_group("dashboard")]


async def _confirm(page: Page, verb: str) -> None:
    await page.get_by_role("dialog").get_by_role("button", name=verb, exact=True).click()


def _said(page: Page, text: str | re.Pattern[str]) -> Locator:
    return page.locator(".toast", has_text=text)


async def test_pausing_a_queue_can_be_undone(open_page: Opener, stage: Stage) -> None:
    await (await stage.shop.quick.add(n=1)).result(timeout=60)
    page = await open_page("/")
    await page.get_by_role("button", name=f"Pause {QUEUE}").click()
    await expect(_said(page, "is paused")).to_be_visible()
    await expect(page.get_by_role("row", name=re.compile("Paused"))).to_be_visible()
    assert (await stage.shop.pen.queue(QUEUE).counts()).paused
    await _said(page, "is paused").get_by_role("button", name="Undo").click()
    await expect(_said(page, "runs again")).to_be_visible()
    assert not (await stage.shop.pen.queue(QUEUE).counts()).paused


async def test_a_failed_job_is_retried_from_its_page(open_page: Opener, stage: Stage) -> None:
    job = await stage.shop.broken.add(why="once more")
    await stage.until(lambda: _is(stage, job.id, State.FAILED))
    page = await open_page(f"/queues/{QUEUE}/jobs/{job.id}")
    failed = await _look(stage, job.id)
    assert failed is not None
    await page.get_by_role("button", name="Retry").click()
    await expect(_said(page, "1 job will run again")).to_be_visible()
    await stage.until(lambda: _has_run_again(stage, job.id, failed.epoch))


async def test_a_removed_job_comes_back_with_undo_and_goes_without(open_page: Opener, stage: Stage) -> None:
    job = await stage.shop.quick.options(delay=3600, tags=["removable"]).add(n=5)
    page = await open_page("/jobs?tag=removable")
    row = page.get_by_role("row", name=re.compile(job.id))
    await row.get_by_role("checkbox").check()
    await page.get_by_role("button", name="Remove", exact=True).click()
    await expect(row).to_have_count(0)
    await _said(page, "1 job removed").get_by_role("button", name="Undo").click()
    await expect(row).to_have_count(1)
    assert await _is(stage, job.id, State.DELAYED)
    await row.get_by_role("checkbox").check()
    await page.get_by_role("button", name="Remove", exact=True).click()
    await stage.until(lambda: _is_gone(stage, job.id))


async def test_while_a_whole_page_is_removed_the_list_does_not_say_that_it_is_empty(
    open_page: Opener, stage: Stage
) -> None:
    queue = stage.shop.pen.queue("swept")
    await queue.add_bulk([queue.prepare("item", {"n": n}) for n in range(60)])
    page = await open_page("/jobs?queue=swept&state=waiting")
    names, older = page.locator("td .job-name"), page.get_by_role("button", name="Older")
    await expect(names).to_have_count(50)
    await page.get_by_role("checkbox", name="Select all on this page").check()
    await page.get_by_role("button", name="Remove", exact=True).click()
    await expect(page.get_by_role("heading", name="These are being removed")).to_be_visible()
    await older.click()
    await expect(names).to_have_count(10)


async def test_the_list_stands_still_while_jobs_are_selected(open_page: Opener, stage: Stage) -> None:
    """Fifty new ones would push what is selected off the page."""
    queue = stage.shop.pen.queue("held")
    await queue.add("item", {}, id="the-oldest")
    page = await open_page("/jobs?queue=held")
    row, names = page.get_by_role("row", name=re.compile("the-oldest")), page.locator("td .job-name")
    await row.get_by_role("checkbox").check()
    await queue.add_bulk([queue.prepare("item", {}) for _ in range(50)])
    await expect(page.get_by_role("navigation", name="Queues").get_by_role("link", name="held 51")).to_be_visible()
    await expect(row.get_by_role("checkbox")).to_be_checked()
    await page.get_by_role("button", name="Refresh").click()
    await expect(row).to_have_count(0)
    await expect(names).to_have_count(50)


async def test_a_delayed_job_is_edited_then_promoted(open_page: Opener, stage: Stage) -> None:
    job = await stage.shop.quick.options(delay=3600).add(n=5)
    page = await open_page(f"/queues/{QUEUE}/jobs/{job.id}")
    await page.get_by_role("button", name="Edit").click()
    dialog = page.get_by_role("dialog")
    await dialog.get_by_label("Data (JSON)").fill("{not json")
    await dialog.get_by_role("button", name="Save").click()
    await expect(dialog.get_by_role("alert")).to_contain_text("not-json")
    await dialog.get_by_label("Data (JSON)").fill('{"n": 21}')
    await dialog.get_by_role("button", name="Save").click()
    await expect(page.get_by_role("region", name="Data")).to_contain_text("21")
    await page.get_by_role("button", name="Promote").click()
    await expect(page.get_by_role("region", name="Result")).to_contain_text("42")


async def test_data_of_a_hundred_kilobytes_is_edited(open_page: Opener, stage: Stage) -> None:
    """More than a browser sends for a page that it lets go of."""
    queue = stage.shop.pen.queue("large")
    job = await queue.add("import", {"rows": "few"}, delay=3600)
    page = await open_page(f"/queues/large/jobs/{job.id}")
    await page.get_by_role("button", name="Edit").click()
    dialog = page.get_by_role("dialog")
    await dialog.get_by_label("Data (JSON)").fill(json.dumps({"rows": "many " * 20_000}))
    await dialog.get_by_role("button", name="Save").click()
    await expect(_said(page, "The job is changed")).to_be_visible()
    (changed,) = await stage.shop.pen.store.look("large", [job.id])
    assert changed is not None
    assert len(changed.data) > 100_000


async def test_a_removal_is_not_lost_when_the_page_is_left(open_page: Opener, stage: Stage) -> None:
    """It waits for an undo that nobody can ask for any more."""
    job = await stage.shop.quick.options(delay=3600, tags=["left"]).add(n=5)
    page = await open_page("/jobs?tag=left")
    await page.get_by_role("row", name=re.compile(job.id)).get_by_role("checkbox").check()
    await page.get_by_role("button", name="Remove", exact=True).click()
    await expect(_said(page, "1 job removed")).to_be_visible()
    await page.goto("about:blank")
    await stage.until(lambda: _is_gone(stage, job.id))


async def test_a_running_job_is_cancelled_after_a_question(open_page: Opener, stage: Stage) -> None:
    job = await stage.shop.gated.add(gate=str(stage.gate("never")))
    page = await open_page(f"/queues/{QUEUE}/jobs/{job.id}")
    await page.get_by_role("button", name="Cancel").click()
    await _confirm(page, "Stop it")
    await expect(page.get_by_role("heading", level=1)).to_contain_text("Failed")
    await expect(page.get_by_role("region", name="Failure")).to_contain_text("cancelled")


async def test_a_waiting_job_gets_its_signal_and_shows_its_steps(open_page: Opener, stage: Stage) -> None:
    job = await stage.shop.asking.add()
    page = await open_page(f"/queues/{QUEUE}/jobs/{job.id}")
    await expect(page.get_by_role("region", name="Steps")).to_contain_text("prepare")
    await expect(page.get_by_role("region", name="Facts")).to_contain_text("answer")
    await page.get_by_role("button", name="Signal").click()
    dialog = page.get_by_role("dialog")
    await dialog.get_by_label("Value (JSON)").fill('"yes"')
    await dialog.get_by_role("button", name="Send").click()
    await expect(page.get_by_role("region", name="Result")).to_contain_text("answered yes")


async def test_many_jobs_are_retried_at_once(open_page: Opener, stage: Stage) -> None:
    for _ in range(3):
        await stage.shop.broken.options(tags=["many"]).add(why="many")
    page = await open_page("/dead-letters?tag=many")
    await expect(page.locator("td .job-name")).to_have_count(3)
    await page.get_by_role("checkbox", name="Select all on this page").check()
    await page.get_by_role("group", name="Selected jobs").get_by_role("button", name="Retry").click()
    await _confirm(page, "Retry")
    await expect(_said(page, "3 jobs will run again")).to_be_visible()


async def test_dead_letters_that_fit_are_purged(open_page: Opener, stage: Stage) -> None:
    for _ in range(2):
        await stage.shop.broken.options(tags=["purged"]).add(why="purged")
    page = await open_page("/dead-letters?tag=purged")
    await expect(page.locator("td .job-name")).to_have_count(2)
    await page.get_by_role("button", name="Purge all that fit").click()
    await _confirm(page, "Purge")
    await expect(_said(page, "2 jobs purged")).to_be_visible()
    await expect(page.get_by_role("heading", name="No job fits")).to_be_visible()


async def test_dead_letters_are_retried_until_none_is_left(open_page: Opener, stage: Stage) -> None:
    """More than one call takes; how far it is can be seen."""
    page, goes_on = await _retrying_by_twos(open_page, stage, "until-none")
    await expect(_said(page, "2 jobs will run again so far…")).to_be_visible()
    goes_on.set()
    await expect(_said(page, re.compile("5 jobs will run again$"))).to_be_visible()
    await expect(_said(page, "so far")).to_have_count(0)


async def test_a_long_retry_is_stopped(open_page: Opener, stage: Stage) -> None:
    page, goes_on = await _retrying_by_twos(open_page, stage, "stopped")
    await _said(page, "so far…").get_by_role("button", name="Stop").click()
    goes_on.set()
    await expect(_said(page, "4 jobs will run again")).to_contain_text("stopped; the others are as they were")


async def test_what_is_under_way_can_be_stopped_whatever_else_is_said(open_page: Opener, stage: Stage) -> None:
    page, goes_on = await _retrying_by_twos(open_page, stage, "talked-over")
    await page.route("**/v1/jobs/actions", lambda route: route.fulfill(json={"items": []}))
    await page.keyboard.press("j")
    for _ in range(5):
        async with page.expect_response("**/v1/jobs/actions"):
            await page.keyboard.press("r")
    await expect(_said(page, "1 job will run again")).to_have_count(4)
    await _said(page, "so far…").get_by_role("button", name="Stop").click()
    goes_on.set()
    await expect(_said(page, "4 jobs will run again")).to_be_visible()


async def _retrying_by_twos(open_page: Opener, stage: Stage, tag: str) -> tuple[Page, asyncio.Event]:
    """Five dead letters of which two are retried; the rest when the event is set."""
    for _ in range(5):
        await stage.shop.broken.options(tags=[tag]).add(why=tag)
    page = await open_page(f"/dead-letters?tag={tag}")
    await expect(page.locator("td .job-name")).to_have_count(5)
    goes_on = asyncio.Event()

    async def two_at_once(route: Route) -> None:
        body: dict[str, Any] = json.loads(route.request.post_data or "{}")
        if body["cursor"] is not None:
            await goes_on.wait()
        await route.continue_(post_data=json.dumps({**body, "limit": 2}))

    await page.route("**/v1/dead-letters/retry", two_at_once)
    await page.get_by_role("button", name="Retry all that fit").click()
    await _confirm(page, "Retry")
    return page, goes_on


async def test_a_schedule_runs_now_is_paused_resumed_and_removed(open_page: Opener, stage: Stage) -> None:
    await stage.shop.pen.schedule("nightly", stage.shop.quick.prepare(n=1), cron="0 3 * * *")
    page = await open_page("/schedules", timezone_id="Asia/Tokyo")
    row = page.get_by_role("row", name=re.compile("nightly"))
    await expect(row).to_contain_text("0 3 * * * UTC")
    await expect(row).to_contain_text("12:00")
    await expect(page.get_by_role("columnheader", name="Next runs (Asia/Tokyo)")).to_be_visible()
    await row.get_by_role("button", name="Run now").click()
    await expect(_said(page, "runs now")).to_be_visible()
    await row.get_by_role("button", name="Pause nightly").click()
    await expect(row).to_contain_text("Paused")
    await row.get_by_role("button", name="Resume nightly").click()
    await expect(row).to_contain_text("On")
    await row.get_by_role("button", name="Remove nightly").click()
    await _confirm(page, "Remove")
    await expect(page.get_by_role("heading", name="No schedules")).to_be_visible()


async def test_limits_of_a_queue_are_set_and_lifted(open_page: Opener, stage: Stage) -> None:
    page = await open_page(f"/queues/{QUEUE}?part=limits")
    card = page.get_by_role("region", name="What all workers share")
    await card.get_by_label("Jobs at once").fill("7")
    await card.get_by_role("button", name="Save").click()
    await expect(card).to_contain_text("7 at once")
    await card.get_by_role("button", name="Lift all limits").click()
    await _confirm(page, "Lift all limits")
    await expect(card).to_contain_text("Now: none")


async def test_a_group_is_paused(open_page: Opener, stage: Stage) -> None:
    await stage.shop.pen.queue(QUEUE).groups.pause("acme")
    page = await open_page(f"/queues/{QUEUE}?part=groups")
    row = page.get_by_role("row", name=re.compile("acme"))
    await row.get_by_role("button", name="Resume acme").click()
    await expect(_said(page, "acme runs again")).to_be_visible()


async def test_a_group_gets_limits_of_its_own(open_page: Opener, stage: Stage) -> None:
    await stage.shop.pen.queue(QUEUE).groups.pause("globex")
    page = await open_page(f"/queues/{QUEUE}?part=groups")
    row = page.get_by_role("row", name=re.compile("globex"))
    await row.get_by_role("button", name="Limits").click()
    dialog = page.get_by_role("dialog", name="Limits of globex")
    await dialog.get_by_label("Jobs at once").fill("2")
    await dialog.get_by_label("Weight").fill("3")
    await dialog.get_by_role("button", name="Save").click()
    await expect(row).to_contain_text("2 at once, weight 3")


async def test_obliterating_needs_the_name_typed(open_page: Opener, stage: Stage) -> None:
    await stage.shop.pen.queue("doomed").add("x", {})
    page = await open_page("/queues/doomed")
    await page.get_by_role("button", name="More actions").click()
    await page.get_by_role("menuitem", name=re.compile("Obliterate")).click()
    button = page.get_by_role("dialog").get_by_role("button", name="Obliterate")
    await expect(button).to_be_disabled()
    await page.get_by_role("dialog").get_by_role("textbox").fill("doomed")
    await button.click()
    await expect(page.get_by_role("heading", name="Overview")).to_be_visible()


async def _look(stage: Stage, job_id: str) -> JobRecord | None:
    (found,) = await stage.shop.pen.store.look(QUEUE, [job_id])
    return found


async def _is(stage: Stage, job_id: str, state: State) -> bool:
    job = await _look(stage, job_id)
    return job is not None and job.state is state


async def _is_gone(stage: Stage, job_id: str) -> bool:
    return await _look(stage, job_id) is None


async def _has_run_again(stage: Stage, job_id: str, epoch: int) -> bool:
    job = await _look(stage, job_id)
    return job is not None and job.epoch > epoch and job.state is State.FAILED
