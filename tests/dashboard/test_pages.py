"""Every page shows what it is about, under its own address."""

import re
from datetime import timedelta

import pytest
from playwright.async_api import Locator, Page, expect

from bullpen.flows.shapes import with_children
from bullpen.job.state import State
from tests.dashboard.conftest import Opener, set_ahead
from tests.dashboard.shop import FLOWS, QUEUE
from tests.dashboard.stage import Stage

pytestmark = [pytest.mark.asyncio(loop_scope="session"), pytest.mark.xdist_group("dashboard")]


async def test_the_overview_shows_each_queue_and_leads_to_it(open_page: Opener, stage: Stage) -> None:
    for n in range(3):
        await stage.shop.quick.options(tenant="acme").add(n=n)
    await stage.shop.broken.options(tenant="globex", tags=["bad"]).add(why="no such customer")
    page = await open_page("/")
    row = page.get_by_role("row", name=re.compile(rf"^{QUEUE}\b"))
    await expect(row).to_be_visible()
    await expect(row.locator("td").nth(5)).to_have_text("1")
    await row.get_by_role("link", name=QUEUE).click()
    await expect(page).to_have_url(re.compile(rf"/queues/{QUEUE}$"))
    await expect(page.get_by_role("heading", name=QUEUE, level=1)).to_be_visible()


async def test_a_queue_has_tabs_by_state_and_the_browsers_back_goes_through_them(open_page: Opener) -> None:
    page = await open_page(f"/queues/{QUEUE}")
    await page.get_by_role("button", name=re.compile("^Failed")).click()
    await expect(page).to_have_url(re.compile("state=failed"))
    await expect(page.get_by_role("link", name=re.compile("^broken"))).to_be_visible()
    await expect(page.get_by_role("link", name=re.compile("^quick"))).to_have_count(0)
    await page.get_by_role("button", name=re.compile("^Completed")).click()
    await expect(page.get_by_role("link", name=re.compile("^quick"))).to_have_count(3)
    await page.go_back()
    await expect(page.get_by_role("link", name=re.compile("^broken"))).to_be_visible()


async def test_operators_see_a_queue_split_by_tenant(open_page: Opener) -> None:
    page = await open_page(f"/queues/{QUEUE}?part=tenants")
    table = page.get_by_role("table", name="Jobs by tenant")
    await expect(table.get_by_role("row", name=re.compile("acme"))).to_contain_text("3")
    await expect(table.get_by_role("row", name=re.compile("globex"))).to_contain_text("1")


async def test_jobs_are_found_by_words_and_by_filters_that_the_address_keeps(open_page: Opener) -> None:
    page = await open_page("/jobs")
    names = page.locator("td .job-name")
    await expect(names).to_have_count(4)
    await page.get_by_role("searchbox", name="Search jobs").fill("customer")
    await expect(names).to_have_count(1)
    await expect(page).to_have_url(re.compile("q=customer"))
    await page.goto("/jobs?tenant=acme")
    await expect(names).to_have_count(3)
    await page.get_by_label("State", exact=True).select_option("failed")
    await expect(page.get_by_role("heading", name="No job fits")).to_be_visible()


async def test_a_failed_job_shows_its_data_its_error_and_its_stack(open_page: Opener) -> None:
    page = await open_page("/dead-letters")
    await page.get_by_role("link", name=re.compile("^broken")).click()
    await expect(page.get_by_role("heading", name="broken", level=1)).to_be_visible()
    failure = page.get_by_role("region", name="Failure")
    await expect(failure).to_contain_text("no such customer")
    await expect(failure).to_contain_text("raise Unrecoverable(why)")
    await expect(page.get_by_role("region", name="Data")).to_contain_text('"why"')
    await expect(page.get_by_role("region", name="Timeline")).to_contain_text("Failed")


async def test_failures_stand_together_by_type_and_cause(open_page: Opener, stage: Stage) -> None:
    await stage.shop.broken.add(why="no such customer")
    page = await open_page("/failures")
    row = page.get_by_role("row", name=re.compile("no such customer"))
    await expect(row.locator("td").first).to_have_text("2")
    await row.get_by_role("link", name="broken").click()
    await expect(page).to_have_url(re.compile("/dead-letters.*fingerprint="))
    await expect(page.locator("td .job-name")).to_have_count(2)


async def test_failures_are_looked_at_by_queue(open_page: Opener, stage: Stage) -> None:
    """Each tab says how many jobs failed there, and has an address."""
    job = await stage.shop.fallen.add(why="too windy")
    await stage.until(lambda: _has_failed(stage, job.id))
    page = await open_page("/failures")
    rows = page.get_by_role("table").locator("tbody tr")
    tabs = page.get_by_role("group", name="Failed jobs by queue")
    await expect(tabs.get_by_role("button")).to_have_text(["All queues3", f"{QUEUE}2", f"{FLOWS}1"])
    await expect(rows).to_have_count(2)
    await tabs.get_by_role("button", name=FLOWS).click()
    await expect(page).to_have_url(re.compile(rf"/failures\?queue={FLOWS}$"))
    await expect(rows).to_have_count(1)
    await expect(rows).to_contain_text("too windy")
    await page.goto(f"/queues/{QUEUE}")
    await page.locator(".figures").get_by_role("link", name="Failed").click()
    await expect(page).to_have_url(re.compile(rf"/failures\?queue={QUEUE}$"))
    await expect(tabs.get_by_role("button", name=QUEUE)).to_have_attribute("aria-pressed", "true")
    await expect(rows).to_contain_text("no such customer")


async def _has_failed(stage: Stage, job_id: str) -> bool:
    (job,) = await stage.shop.pen.store.look(FLOWS, [job_id])
    return job is not None and job.state is State.FAILED


async def test_a_retried_job_tells_of_its_attempts_and_its_result(open_page: Opener, stage: Stage) -> None:
    job = await stage.shop.shaky.add(n=7)
    assert await job.result(timeout=60) == 7
    page = await open_page(f"/queues/{QUEUE}/jobs/{job.id}")
    await expect(page.get_by_role("region", name="Result")).to_contain_text("7")
    await expect(page.get_by_role("region", name="Facts")).to_contain_text("2 of 2")
    timeline = page.get_by_role("region", name="Timeline")
    first, second = timeline.locator("li").nth(1), timeline.locator("li").nth(2)
    await expect(first).to_contain_text("Failed, to be tried again")
    await expect(first).to_contain_text("away for a moment")
    await expect(first).to_contain_text("next attempt after 100 ms")
    await expect(first.get_by_text("raise ConnectionError")).to_be_hidden()
    await first.get_by_text("Stack", exact=True).click()
    await expect(first.get_by_text("raise ConnectionError")).to_be_visible()
    await expect(second).to_contain_text("Completed")


async def test_a_retry_by_hand_stands_in_the_timeline(open_page: Opener, stage: Stage) -> None:
    job = await stage.shop.quick.add(n=4)
    await job.result(timeout=60)
    page = await open_page(f"/queues/{QUEUE}/jobs/{job.id}")
    timeline = page.get_by_role("region", name="Timeline")
    await expect(timeline.locator("li")).to_have_count(2)
    await page.get_by_role("button", name="Retry").click()
    await expect(timeline.locator("li")).to_have_count(4)
    await expect(timeline.locator("li").nth(2)).to_contain_text("Retried by hand")
    await expect(timeline.locator("li").nth(3)).to_contain_text("start 2")


async def test_what_the_log_has_forgotten_is_said_to_be_forgotten(open_page: Opener, stage: Stage) -> None:
    """As a server tells it whose log was cut: no test waits for ten thousand events."""
    job = await stage.shop.shaky.add(n=8)
    await job.result(timeout=60)
    page = await open_page("/")
    answer = await page.request.get(f"/v1/queues/{QUEUE}/jobs/{job.id}")
    told = await answer.json()
    newest = told["activations"][-1:]
    moments = [one for one in told["timeline"] if one["activation"] in (None, 2)]
    cut = {**told, "forgotten": 1, "activations": newest, "timeline": moments}
    await page.route(f"**/v1/queues/{QUEUE}/jobs/{job.id}", lambda route: route.fulfill(json=cut))
    await page.goto(f"/queues/{QUEUE}/jobs/{job.id}")
    timeline = page.get_by_role("region", name="Timeline")
    await expect(timeline.locator("li").nth(1)).to_contain_text("Start 1 is no longer known")
    await expect(timeline.locator("li").nth(2)).to_contain_text("start 2")


async def test_the_timeline_of_another_day_says_the_day(open_page: Opener, stage: Stage) -> None:
    job = await stage.shop.quick.options(delay=3600).add(n=1)
    page = await open_page("/settings")
    await set_ahead(page, timedelta(days=2))
    await page.goto(f"/queues/{QUEUE}/jobs/{job.id}")
    times = page.get_by_role("region", name="Timeline").locator("li > time")
    await expect(times.first).to_have_text(re.compile(r"^\d{1,2} [A-Z][a-z]{2,3} \d\d:\d\d:\d\d$"))


async def test_a_flow_is_a_graph_of_its_jobs(open_page: Opener, stage: Stage) -> None:
    leaves = [stage.shop.leaf.prepare(n=n) for n in range(3)]
    job = await stage.shop.pen.flow(stage.shop.root.prepare(), leaves)
    assert await job.result(timeout=60) == 3
    page = await open_page(f"/queues/flows/jobs/{job.id}/flow")
    await expect(page.locator(".flow-node")).to_have_count(4)
    await expect(page.locator(".flow-node.state-completed")).to_have_count(4)
    await page.evaluate("window.isSame = true")
    await page.locator(".flow-node", has_text="leaf").first.click()
    await expect(page.get_by_role("heading", name="leaf", level=1)).to_be_visible()
    assert await page.evaluate("window.isSame === true"), "it moves within the page, which is not loaded anew"


async def test_more_children_of_a_flow_are_shown_on_demand(open_page: Opener, stage: Stage) -> None:
    queue = stage.shop.pen.queue("large")  # nobody works on it: all of it stays
    job = await stage.shop.pen.flow(queue.prepare("whole", {}), [queue.prepare("item", {}) for _ in range(25)])
    page = await open_page(f"/queues/large/jobs/{job.id}/flow")
    items = page.locator(".flow-node", has_text="item")
    await expect(items).to_have_count(20)
    await expect(page.get_by_text("there are more")).to_be_visible()
    await page.get_by_role("link", name="Show more below whole").click()
    await expect(items).to_have_count(25)
    await expect(page.locator(".flow-more")).to_have_count(0)
    await expect(page.get_by_text("there are more")).to_have_count(0)


async def test_a_deep_flow_is_gone_down_by_keyboard(open_page: Opener, stage: Stage) -> None:
    queue = stage.shop.pen.queue("large")
    tree = queue.prepare("bottom", {})
    for name in ("low", "middle", "upper"):
        tree = with_children(queue.prepare(name, {}), [tree])
    job = await stage.shop.pen.flow(queue.prepare("top", {}), [tree])
    page = await open_page(f"/queues/large/jobs/{job.id}/flow")
    await expect(page.locator(".flow-node")).to_have_count(3)
    await page.get_by_role("link", name="Show more below middle").press("Enter")
    await page.get_by_role("link", name="Show more below low").press("Enter")
    await expect(page.locator(".flow-node", has_text="bottom")).to_have_count(1)
    await expect(page.locator(".flow-more")).to_have_count(0)


async def test_workers_are_listed_with_their_queues(open_page: Opener) -> None:
    page = await open_page("/workers")
    card = page.get_by_role("main").get_by_role("region").filter(has_text="Heartbeat")
    await expect(card.get_by_role("link", name=re.compile(QUEUE))).to_be_visible()


async def test_an_address_that_leads_nowhere_says_so(open_page: Opener) -> None:
    page = await open_page("/no/such/page")
    await expect(page.get_by_role("heading", name="There is no such page")).to_be_visible()


async def test_a_job_that_is_gone_says_why_with_its_code(open_page: Opener) -> None:
    page = await open_page(f"/queues/{QUEUE}/jobs/nobody", may_fail=True)
    await expect(page.get_by_role("alert")).to_contain_text("job-missing")
    await expect(page.get_by_role("button", name="Try again")).to_be_visible()


async def test_nothing_is_kept_from_the_browser_by_the_policy(open_page: Opener) -> None:
    """The pages run under `default-src 'self'`: a style or a script of another kind would be an error."""
    page = await open_page("/")
    answer = await page.request.get("/")
    assert "default-src 'self'" in answer.headers["content-security-policy"]
    await expect(_overview(page)).to_be_visible()


def _overview(page: Page) -> Locator:
    return page.get_by_role("heading", name="Overview", level=1)
