"""What happens while one looks is shown without a reload, and a lost connection comes back."""

import asyncio
import re
from datetime import UTC, datetime, timedelta
from typing import Any

import pytest
from playwright.async_api import Route, expect

from tests.dashboard.conftest import Opener, set_hidden
from tests.dashboard.shop import QUEUE
from tests.dashboard.stage import Stage

pytestmark = [pytest.mark.asyncio(loop_scope="session"), pytest.mark.xdist_group("dashboard")]


async def test_a_running_job_is_followed_to_its_end(open_page: Opener, stage: Stage) -> None:
    gate = stage.gate("followed")
    job = await stage.shop.gated.add(gate=str(gate))
    page = await open_page(f"/queues/{QUEUE}/jobs/{job.id}")
    await expect(page.get_by_role("heading", level=1)).to_contain_text("Active")
    await expect(page.get_by_role("progressbar")).to_have_attribute("value", "40")
    await expect(page.get_by_role("log")).to_contain_text("waiting at the gate")
    gate.touch()
    await expect(page.get_by_role("heading", level=1)).to_contain_text("Completed")
    await expect(page.get_by_role("log")).to_contain_text("through the gate")
    await expect(page.get_by_role("region", name="Result")).to_contain_text("through")


async def test_steps_of_a_running_job_are_shown_as_it_takes_them_and_to_the_last(
    open_page: Opener, stage: Stage
) -> None:
    """Also where they come in pages, and those that are done are asked for once."""
    gate = stage.gate("harvest")
    job = await stage.shop.stepping.add(gate=str(gate))
    page = await open_page("/jobs")
    starts: list[str] = []

    async def one_by_one(route: Route) -> None:
        starts.append(route.request.url.rpartition("=")[2])
        answer = await route.fetch()
        items: list[dict[str, Any]] = (await answer.json())["items"]
        following = items[1]["place"] if items[1:] else None
        await route.fulfill(response=answer, json={"items": items[:1], "next_place": following})

    await page.route(re.compile(r"/steps\?"), one_by_one)
    await page.goto(f"/queues/{QUEUE}/jobs/{job.id}")
    steps = page.get_by_role("region", name="Steps").get_by_role("listitem")
    await expect(steps).to_have_text([re.compile("sow")])
    gate.with_name("harvest-1").touch()
    await expect(steps).to_have_text([re.compile("sow"), re.compile("reap")])
    await expect(page.get_by_role("heading", level=1)).to_contain_text("Active")
    assert int(starts[-1]) > 0
    await page.reload()
    await expect(steps).to_have_count(2)
    gate.with_name("harvest-2").touch()
    await expect(page.get_by_role("heading", level=1)).to_contain_text("Completed")
    await page.unroute_all(behavior="wait")


async def test_the_flow_beside_a_job_moves_while_the_job_itself_does_not(open_page: Opener, stage: Stage) -> None:
    gate = stage.gate("sibling")
    children = [stage.shop.gated.prepare(gate=str(gate)), stage.shop.gated.prepare(gate=str(stage.gate("sibling-2")))]
    job = await stage.shop.pen.flow(stage.shop.root.prepare(), children)
    page = await open_page(f"/queues/flows/jobs/{job.id}")
    flow = page.get_by_role("region", name="Flow")
    await expect(flow.locator(".state-active")).to_have_count(2)
    gate.touch()
    await expect(flow.locator(".state-completed")).to_have_count(1)
    await expect(page.get_by_role("heading", level=1)).to_contain_text("Waiting for children")
    stage.gate("sibling-2").touch()


async def test_what_happened_before_its_stream_began_is_shown(open_page: Opener, stage: Stage) -> None:
    job = await stage.shop.quick.options(delay=3600).add(n=1)
    gate = stage.gate("told")
    later = await stage.shop.gated.add(gate=str(gate))
    other = await open_page(f"/queues/{QUEUE}/jobs/{later.id}")
    await expect(other.get_by_role("heading", level=1)).to_contain_text("Active")
    page = await open_page("/jobs")
    is_over = asyncio.Event()

    async def held(route: Route) -> None:
        await is_over.wait()
        await route.continue_()

    await page.route(re.compile(r"/v1/events"), held)
    await page.goto(f"/queues/{QUEUE}/jobs/{job.id}")
    await expect(page.get_by_role("heading", level=1)).to_contain_text("Delayed")
    await job.promote()
    await job.result(timeout=60)
    gate.touch()  # once this is told, so is all that was before it
    await expect(other.get_by_role("heading", level=1)).to_contain_text("Completed")
    is_over.set()
    await expect(page.get_by_role("heading", level=1)).to_contain_text("Completed")


async def test_counts_move_while_jobs_come_and_go(open_page: Opener, stage: Stage) -> None:
    page = await open_page("/")
    row = page.get_by_role("row", name=re.compile(rf"^{QUEUE}\b"))
    active = row.locator("td").nth(3)
    await expect(active).to_have_text("0")
    gate = stage.gate("counted")
    await stage.shop.gated.add(gate=str(gate))
    await expect(active).to_have_text("1")
    gate.touch()
    await expect(active).to_have_text("0")


async def test_a_list_takes_in_new_jobs(open_page: Opener, stage: Stage) -> None:
    page = await open_page("/jobs?tag=taken-in")
    await expect(page.get_by_role("heading", name="No job fits")).to_be_visible()
    await stage.shop.quick.options(tags=["taken-in"]).add(n=1)
    await expect(page.locator("td .job-name")).to_have_count(1)


async def test_a_hidden_page_holds_no_connection_and_catches_up_when_shown(open_page: Opener, stage: Stage) -> None:
    """A browser has six connections to a server: tabs that nobody sees must leave them to the others."""
    first = await open_page("/jobs?name=shaky")
    pages = [first]
    for _ in range(6):
        await expect(pages[-1].locator(".side .live")).to_have_text("Live")
        await set_hidden(pages[-1], True)
        pages.append(await first.context.new_page())
        await pages[-1].goto("/")
    await expect(pages[-1].locator(".side .live")).to_have_text("Live")
    await (await stage.shop.shaky.add(n=3)).result(timeout=60)
    await set_hidden(first, False)
    await expect(first.locator("td .job-name")).to_have_count(1)
    await expect(first.get_by_role("row", name=re.compile("shaky"))).to_contain_text("Completed")


async def test_lists_that_were_never_complete_are_said_to_be_made(open_page: Opener) -> None:
    """As a server tells it that has just begun to read a large store."""
    page = await open_page("/")
    sign = page.locator(".side .live")
    await expect(sign).to_have_text("Live")

    async def unfinished(route: Route) -> None:
        answer = await route.fetch()
        await route.fulfill(response=answer, json={**await answer.json(), "behind_ms": None})

    await page.route(re.compile(r"/v1/(overview|jobs\?)"), unfinished)
    await page.goto("/jobs?name=none-of-these")
    await expect(sign).to_have_text("Filling…")
    await expect(page.get_by_role("heading", name="The list is being made")).to_be_visible()
    await page.unroute_all(behavior="wait")
    await expect(sign).to_have_text("Live")
    await expect(page.get_by_role("heading", name="No job fits")).to_be_visible()


async def test_a_lost_server_is_told_and_found_again(open_page: Opener, stage: Stage) -> None:
    page = await open_page("/", may_fail=True)
    sign = page.locator(".side .live")
    await expect(sign).to_have_text("Live")
    navigation = page.get_by_role("navigation", name="Pages")
    before = await navigation.bounding_box()
    port = await stage.stop_server()
    await expect(sign).to_have_text("Reconnecting…")
    assert await navigation.bounding_box() == before, "the sign moves nothing"
    await stage.start_server(port)
    await expect(sign).to_have_text("Live")
    job = await stage.shop.quick.add(n=2)
    await page.get_by_role("link", name="Jobs", exact=True).click()
    await expect(page.locator(f'a.job-name[href="/queues/{QUEUE}/jobs/{job.id}"]')).to_be_visible()


async def test_a_connection_that_fell_silent_is_opened_anew(open_page: Opener) -> None:
    """As one that died on the way: nobody tells of its end."""
    page = await open_page("/settings", may_fail=True)
    await page.clock.install()
    await page.goto("/settings")
    await expect(page.locator(".side .live")).to_have_text("Live")
    async with page.expect_request("**/v1/live"):
        await page.clock.fast_forward(41_000)
    await expect(page.locator(".side .live")).to_have_text("Live")


async def test_a_browser_whose_clock_is_wrong_shows_what_the_server_says(open_page: Opener) -> None:
    page = await open_page("/settings", may_fail=True)
    await page.clock.install(time=datetime.now(tz=UTC) + timedelta(hours=1))
    await page.goto("/workers")
    worker = page.locator(".worker-grid")
    await expect(worker).to_contain_text(re.compile(r"Heartbeat(now|\d+ s ago)"))
    await expect(worker.get_by_text("silent")).to_have_count(0)


async def test_how_far_lists_are_behind_is_shown_but_not_read_aloud_each_time(open_page: Opener) -> None:
    page = await open_page("/")
    said = page.locator(".shell > [role=status]")
    await expect(said).to_have_text("Live")

    async def behind(route: Route) -> None:
        answer = await route.fetch()
        await route.fulfill(response=answer, json={**await answer.json(), "behind_ms": 12_000})

    await page.route("**/v1/overview", behind)
    await page.reload()
    await expect(page.locator(".side .live")).to_have_text("Behind by 12 s")
    await expect(said).to_have_text("Behind")
    await expect(page.locator(".live[role=status]")).to_have_count(0)
