"""Runs of agents in the browser: asked for, watched to their end, answered, cancelled."""

import asyncio
import json
import re
from collections.abc import AsyncIterator

import pytest
import pytest_asyncio
from playwright.async_api import FilePayload, Locator, Page, Route, expect

from bullpen.agents.llm.health import HealthRules
from bullpen.agents.llm.shared_health import HealthInRecords
from bullpen.agents.words import Submitted, TaskRequest
from bullpen.errors import ModelTimeout
from bullpen.records.runs.words import ProgressKind
from tests.dashboard.agentstage import TENANT, AgentStage, agent_stage
from tests.dashboard.conftest import Opener, set_hidden

pytestmark = [pytest.mark.asyncio(loop_scope="session"), pytest.mark.xdist_group("dashboard")]


@pytest_asyncio.fixture(scope="module", loop_scope="session")
async def stage(tmp_path_factory: pytest.TempPathFactory) -> AsyncIterator[AgentStage]:
    async with agent_stage(tmp_path_factory.mktemp("stage")) as stage:
        yield stage


def _heading(page: Page) -> Locator:
    return page.get_by_role("heading", level=1)


def _steps(page: Page) -> Locator:
    return page.get_by_role("region", name="Steps")


async def test_a_run_is_asked_for_and_watched_to_its_end(open_page: Opener, stage: AgentStage) -> None:
    """Its words appear as the model says them, and all of it is there at the end, without a reload."""
    page = await open_page("/runs")
    await page.get_by_role("button", name="New run").click()
    dialog = page.get_by_role("dialog", name="New run")
    await dialog.get_by_label("Prompt").fill("Talk to me")
    await dialog.get_by_text("Limits").click()
    await dialog.get_by_label("Most credits").fill("50")
    await dialog.get_by_role("button", name="Start").click()
    await expect(_heading(page)).to_contain_text("Running")
    await expect(_steps(page)).to_contain_text("I begin")
    await expect(_steps(page)).to_contain_text("the model answers")
    await expect(_steps(page)).not_to_contain_text("come to an end")
    stage.gate("words").touch()
    await expect(page.get_by_role("region", name="Answer")).to_contain_text("I begin … and I come to an end.")
    await expect(_heading(page)).to_contain_text("Completed")
    await expect(_steps(page)).not_to_contain_text("the model answers")
    await expect(page.locator(".figures")).to_contain_text("0.2 of 50")
    await expect(page.locator(".figures")).to_contain_text("1,200")


async def test_a_run_is_given_files(open_page: Opener, stage: AgentStage) -> None:
    page = await open_page("/runs")
    await page.get_by_role("button", name="New run").click()
    dialog = page.get_by_role("dialog", name="New run")
    await dialog.get_by_label("Prompt").fill("Say what is in them")
    chosen: list[FilePayload] = [
        {"name": "sales ü.csv", "mimeType": "text/csv", "buffer": b"may,7\n"},
        {"name": "notes", "mimeType": "", "buffer": b"hello"},
    ]
    await dialog.get_by_label("Files").set_input_files(chosen)
    await dialog.get_by_role("button", name="Start").click()
    inputs = page.get_by_role("region", name="Inputs")
    await expect(inputs.get_by_role("link")).to_have_count(2)
    await expect(inputs).to_contain_text("text/csv")
    for name, held in (("sales ü.csv", "may,7\n"), ("notes", "hello")):
        address = await inputs.get_by_role("link", name=name).get_attribute("href")
        assert await (await page.request.get(f"{stage.url}{address}")).text() == held


async def test_a_prompt_is_needed_and_the_refusal_names_it(open_page: Opener) -> None:
    page = await open_page("/runs", may_fail=True)
    await expect(page.get_by_role("button", name="New run")).to_be_visible()
    await page.keyboard.press("n")
    dialog = page.get_by_role("dialog", name="New run")
    await dialog.get_by_role("button", name="Start").click()
    await expect(dialog.get_by_label("Prompt")).to_have_attribute("aria-invalid", "true")
    await expect(dialog.get_by_role("alert")).to_contain_text("bad-option")


async def test_limits_of_a_run_are_refused_at_their_field_and_then_kept(open_page: Opener) -> None:
    page = await open_page("/runs", may_fail=True)
    await page.get_by_role("button", name="New run").click()
    dialog = page.get_by_role("dialog", name="New run")
    await dialog.get_by_label("Prompt").fill("Weather in two cities")
    fold, steps = dialog.get_by_text("Limits"), dialog.get_by_label("Most steps")
    await fold.click()
    limits = {"Most credits": "60", "Most steps": "10001", "Most tool calls": "7", "Most seconds of work": "90"}
    limits |= {"Most tokens in all": "5000", "Most tokens of one answer": "300"}
    for label, value in limits.items():
        await dialog.get_by_label(label).fill(value)
    await fold.click()
    await dialog.get_by_role("button", name="Start").click()
    await expect(steps).to_be_focused()
    await expect(steps).to_have_attribute("aria-invalid", "true")
    await expect(dialog.locator(".field", has=page.get_by_label("Most steps")).get_by_role("alert")).to_contain_text(
        "from 1 to 10000"
    )
    await steps.fill("1")
    async with page.expect_request(re.compile("/v1/tasks$")) as sending:
        await dialog.get_by_role("button", name="Start").click()
    sent = (await sending.value).post_data_json
    assert sent == {
        "prompt": "Weather in two cities", "files": [], "max_credits": 60, "max_steps": 1, "max_tool_calls": 7,
        "max_total_tokens": 5_000, "max_tokens": 300, "timeout": 90,
    }  # fmt: skip
    await expect(page.get_by_role("region", name="Answer")).to_contain_text("Submit it again with a higher max_steps")


async def test_calls_of_tools_show_what_they_were_given_and_what_came_of_them(
    open_page: Opener, stage: AgentStage
) -> None:
    run = await stage.done("Weather in two cities")
    page = await open_page(f"/runs/{run.run_id}")
    good, bad = (page.locator(".tool").nth(at) for at in (0, 1))
    await expect(good).to_contain_text("Bern")
    await expect(good.get_by_text("12 degrees and rain in Bern")).not_to_be_visible()
    await good.locator("summary").click()
    await expect(good.get_by_text("12 degrees and rain in Bern")).to_be_visible()
    # What went wrong is open at once.
    await expect(bad).to_contain_text("failed")
    await expect(bad.get_by_text("there is no such city")).to_be_visible()


async def test_a_failed_call_of_a_model_says_what_it_failed_by(open_page: Opener, stage: AgentStage) -> None:
    """Its worker was there all the time: that it tries again, or ends, says nothing else."""
    refused = await stage.done("Moon and tides")
    page = await open_page(f"/runs/{refused.run_id}")
    step = _steps(page).get_by_role("listitem").filter(has_text="Step 1")
    await expect(step).to_contain_text("failed")
    await expect(step).to_contain_text("scripted: as the script says E007")
    stumbled = await stage.done("Stumble and go on")
    await page.goto(f"/runs/{stumbled.run_id}")
    await expect(_steps(page)).to_contain_text("the whole log")
    await expect(step.first).to_contain_text("scripted: as the script says E007")
    await expect(_steps(page)).to_contain_text("Failed, to be tried again")
    await expect(_steps(page)).not_to_contain_text("lost with its worker")
    await expect(step).to_have_count(2)


async def test_a_page_whose_server_was_away_goes_on_without_gap(open_page: Opener, stage: AgentStage) -> None:
    """The run ends meanwhile; nothing of it is missing then, and nothing is there twice."""
    run = await stage.submit("Wait reconnect for it")
    page = await open_page(f"/runs/{run.run_id}", may_fail=True)
    await expect(_steps(page).locator(".tool")).to_contain_text("running")
    port = await stage.stop_server()
    await expect(_steps(page)).to_contain_text("Reconnecting")
    stage.gate("reconnect").touch()
    await stage.agents.result(run.run_id, timeout=60)
    await stage.start_server(port)
    await expect(_heading(page)).to_contain_text("Completed")
    await expect(_steps(page).locator(".story-head b")).to_have_text(
        ["Asked", "A worker began", "Step 1", "Step 2", "Completed"]
    )
    await expect(_steps(page).locator(".tool")).to_have_count(1)


async def test_a_page_that_was_hidden_goes_on_without_gap(open_page: Opener, stage: AgentStage) -> None:
    run = await stage.submit("Wait hidden for it")
    page = await open_page(f"/runs/{run.run_id}")
    await expect(_steps(page).locator(".tool")).to_contain_text("running")
    await set_hidden(page, True)
    stage.gate("hidden").touch()
    await stage.agents.result(run.run_id, timeout=60)
    await expect(_steps(page).locator(".tool")).to_contain_text("running")
    await set_hidden(page, False)
    await expect(_heading(page)).to_contain_text("Completed")
    await expect(_steps(page).locator(".story-head b")).to_have_text(
        ["Asked", "A worker began", "Step 1", "Step 2", "Completed"]
    )


async def test_what_a_run_made_is_opened_and_saved(open_page: Opener, stage: AgentStage) -> None:
    """A picture opens beside the page; anything else is saved under its own name."""
    run = await stage.done("Draw the sales")
    page = await open_page(f"/runs/{run.run_id}")
    made = page.get_by_role("region", name="Artifacts")
    await expect(made.get_by_role("link")).to_have_count(2)
    async with page.expect_download() as saving:
        await made.get_by_role("link", name="sales ü.csv").click()
    saved = await saving.value
    assert saved.suggested_filename == "sales ü.csv"
    assert (await saved.path()).read_bytes() == b"may,7\n"


async def test_a_log_that_is_not_yet_here_is_said_to_be_read(open_page: Opener, stage: AgentStage) -> None:
    """Neither that nothing happened, nor how many calls there were: the rest of the page knows that the run is over."""
    run = await stage.done("Draw what is read late")
    page = await open_page("/runs")
    held = asyncio.Event()

    async def late(route: Route) -> None:
        await held.wait()
        await route.continue_()

    await page.route(re.compile("/stream"), late)
    await page.goto(f"/runs/{run.run_id}")
    calls = page.locator(".figure", has_text="Tool calls")
    await expect(_steps(page)).to_contain_text("Its log is being read")
    await expect(_steps(page)).not_to_contain_text("the whole log")
    await expect(calls).to_contain_text("–")
    held.set()
    await expect(_steps(page)).to_contain_text("the whole log")
    await expect(_steps(page)).not_to_contain_text("Its log is being read")
    await expect(calls).to_contain_text("1")
    await expect(page.get_by_role("region", name="Artifacts").get_by_role("link")).to_have_count(2)


async def test_of_a_long_log_the_end_is_shown_and_what_was_before_on_demand(
    open_page: Opener, stage: AgentStage
) -> None:
    run = await stage.done("Say that it was long")
    lines = [_line("step_started", n, {"step": n}) for n in range(1, 301)]
    page = await open_page("/runs")

    async def long(route: Route) -> None:
        heads = {"Content-Type": "text/event-stream"}
        body = "".join(lines).replace("TASK", run.task_id)
        await route.fulfill(headers=heads, body=f"{body}event: end\ndata: {{}}\n\n")

    await page.route(re.compile("/stream"), long)
    await page.goto(f"/runs/{run.run_id}")
    calls = _steps(page).locator(".story-head", has_text="Step ")
    await expect(calls).to_have_count(200)
    await expect(calls.last).to_contain_text("Step 300")
    await page.get_by_role("button", name="Show 100 of 100 earlier").click()
    await expect(calls).to_have_count(300)
    await expect(calls.first).to_contain_text("Step 1")


def _line(kind: str, number: int, data: dict[str, object]) -> str:
    line = {"number": number, "task_id": "TASK", "at_ms": 1, "data": data}
    return f"event: {kind}\ndata: {json.dumps(line)}\n\n"


async def test_the_journal_is_asked_for_from_where_it_goes_on(open_page: Opener, stage: AgentStage) -> None:
    run = await stage.submit("Wait journal-gate")
    page = await open_page("/runs")
    starts: list[str] = []
    page.on("request", lambda request: starts.extend(re.findall(r"/steps\?start=(\d+)", request.url)))
    await page.goto(f"/runs/{run.run_id}")
    await expect(_steps(page).locator(".tool")).to_contain_text("running")
    stage.gate("journal-gate").touch()
    await expect(_heading(page)).to_contain_text("Completed")
    await page.locator(".tool summary").click()
    await expect(page.locator(".tool")).to_contain_text("the gate journal-gate is open")
    assert int(starts[-1]) > 0


async def test_a_run_at_its_limit_is_to_be_submitted_with_a_higher_one(open_page: Opener, stage: AgentStage) -> None:
    """A fork has the same limits, and would stop there too."""
    asked = TaskRequest(prompt="Weather in two cities", max_steps=1)
    run = await stage.agents.submit(asked, tenant=TENANT, created_by="ann")
    await stage.agents.result(run.run_id, timeout=60)
    page = await open_page(f"/runs/{run.run_id}")
    await expect(page.get_by_role("region", name="Answer")).to_contain_text("Submit it again with a higher max_steps")


async def test_research_shows_its_agents_and_leads_to_each(open_page: Opener, stage: AgentStage) -> None:
    asked = TaskRequest(prompt="Study the sky", task_type="wide_research")
    run = await stage.agents.submit(asked, tenant=TENANT, created_by="ann")
    page = await open_page(f"/runs/{run.run_id}")
    agents = page.get_by_role("region", name="Agents")
    for question, state in (("sun", "Completed"), ("moon", "Failed"), ("stars", "Running")):
        await expect(agents.get_by_role("listitem").filter(has_text=question)).to_contain_text(state)
    await expect(_steps(page)).to_contain_text("waits for 3 agents")
    listed = await open_page("/runs")
    await expect(listed.get_by_role("row").filter(has_text="Study the sky")).to_contain_text("Waits for agents")
    await listed.get_by_role("button", name="Needs an answer").click()
    await expect(listed.get_by_role("heading", name="No run is in this state")).to_be_visible()
    stage.gate("sky").touch()
    await expect(agents).to_contain_text("3 of 3 are done")
    await agents.get_by_role("link", name="moon").click()
    await expect(page).to_have_url(re.compile("task="))
    await expect(page.get_by_role("region", name="Why it has no answer")).to_be_visible()
    await expect(agents.get_by_role("link", name="moon")).to_have_attribute("aria-current", "true")
    await agents.get_by_role("link", name="sun").click()
    await expect(page.get_by_role("region", name="Answer")).to_contain_text("Done: sun")
    await page.get_by_role("region", name="Facts").get_by_role("link", name="Study the sky").click()
    await expect(page.get_by_role("region", name="Answer")).to_contain_text("Joined: the sky is large.")
    await agents.get_by_role("link", name="stars").click()
    await expect(page.get_by_role("region", name="Answer")).to_contain_text("Done: stars")
    await page.get_by_role("button", name="Replay").click()
    await page.set_viewport_size({"width": 390, "height": 900})
    tasks = page.get_by_role("group", name="Tasks")
    await expect(tasks.get_by_role("button")).to_have_count(4)
    await expect(page.get_by_label("The conversation up to this step")).to_contain_text("Done: stars")
    assert await tasks.evaluate("row => row.scrollWidth <= row.clientWidth"), "all of them are in sight"


async def test_a_run_is_cancelled_after_a_question(open_page: Opener, stage: AgentStage) -> None:
    run = await stage.submit("Wait for-ever and a day")
    page = await open_page(f"/runs/{run.run_id}")
    await expect(_steps(page).locator(".tool")).to_contain_text("running")
    await page.get_by_role("button", name="Cancel run").click()
    await page.get_by_role("dialog").get_by_role("button", name="Cancel").click()
    await expect(_heading(page)).to_contain_text("Running")
    await page.get_by_role("button", name="Cancel run").click()
    await page.get_by_role("dialog").get_by_role("button", name="Stop it").click()
    await expect(_heading(page)).to_contain_text("Cancelled")
    await expect(page.get_by_role("region", name="Why it has no answer")).to_contain_text("E012")
    await expect(page.get_by_role("button", name="Cancel run")).to_have_count(0)
    await expect(_steps(page).locator(".tool")).to_contain_text("stopped before its end")


async def _asking(stage: AgentStage) -> Submitted:
    """A run whose worker went away in the midst of a call that must not be made twice."""
    run = await stage.submit("Charge the card")

    async def is_under_way() -> bool:
        told = await (await stage.agents.records()).runs.events(run.run_id)
        return any(event.kind is ProgressKind.TOOL_STARTED for event in told)

    await stage.until(is_under_way)
    await stage.hurry_worker()
    return run


async def test_a_question_is_answered_with_what_happened(open_page: Opener, stage: AgentStage) -> None:
    run = await _asking(stage)
    page = await open_page(f"/runs/{run.run_id}")
    await stage.start_worker()
    await expect(_steps(page)).to_contain_text("Resumed")
    await expect(_steps(page)).to_contain_text("lost with its worker")
    question = page.get_by_role("region", name="Did the call of charge take place?")
    await expect(question).to_contain_text("1250")
    listed = await open_page("/runs?state=suspended")
    await expect(listed.get_by_role("row").filter(has_text="Charge the card")).to_contain_text("Needs an answer")
    await question.get_by_role("textbox", name="Result").fill("the bank has it already")
    await question.get_by_role("button", name="Answer").click()
    await expect(page.get_by_role("region", name="Answer")).to_contain_text("Done: the bank has it already")
    await expect(question).to_have_count(0)


async def test_a_question_is_answered_by_making_the_call_again(open_page: Opener, stage: AgentStage) -> None:
    run = await _asking(stage)
    stage.gate("bank").touch()
    await stage.start_worker()
    page = await open_page(f"/runs/{run.run_id}")
    question = page.get_by_role("region", name="Did the call of charge take place?")
    await question.get_by_label("make it again").check()
    await expect(question.get_by_role("textbox", name="Result")).to_have_count(0)
    await question.get_by_role("button", name="Answer").click()
    await expect(page.get_by_role("region", name="Answer")).to_contain_text("Done: charged 1250 cents")
    await expect(_steps(page).locator(".tool")).to_contain_text("2 tries")


async def test_a_run_whose_tool_no_worker_has_says_what_it_waits_for(open_page: Opener, stage: AgentStage) -> None:
    page = await open_page("/runs")
    sent = await (await page.request.post("/v1/tasks", data={"prompt": "Say it", "tools": ["fly"]})).json()
    await page.goto(f"/runs/{sent['run_id']}")
    await expect(_steps(page)).to_contain_text("waits for a worker that has the tool 'fly'")
    await expect(_heading(page)).to_contain_text("Queued")
    await stage.agents.cancel(sent["run_id"])
    await expect(_heading(page)).to_contain_text("Cancelled")


async def test_the_list_shows_what_was_asked_and_its_cost_and_filters_by_state(
    open_page: Opener, stage: AgentStage
) -> None:
    await stage.done("Say that it is listed")
    page = await open_page("/runs")
    row = page.get_by_role("row").filter(has_text="Say that it is listed")
    await expect(row).to_contain_text("Completed")
    await expect(row).to_contain_text("ann")
    await expect(row).to_contain_text("0.2")
    later = await stage.submit("Say that it came later")
    await stage.agents.result(later.run_id, timeout=60)
    await expect(page.get_by_role("row").filter(has_text="Say that it came later")).to_contain_text("Completed")
    await page.get_by_role("button", name="Out of time").click()
    await expect(page).to_have_url(re.compile("state=timeout"))
    await expect(page.get_by_role("heading", name="No run is in this state")).to_be_visible()
    await page.get_by_role("button", name="All").click()
    await row.get_by_role("link").click()
    await expect(page.get_by_role("region", name="Answer")).to_contain_text("Done: Say that it is listed")


async def test_runs_of_a_workspace_are_told_apart(open_page: Opener, stage: AgentStage) -> None:
    for name in ("north", "south"):
        asked = TaskRequest(prompt=f"Say who works in the {name}", workspace=name)
        await stage.agents.submit(asked, tenant=TENANT, created_by="ann")
    page = await open_page("/runs")
    row = page.get_by_role("row").filter(has_text="works in the north")
    await expect(row.get_by_role("cell", name="north", exact=True)).to_be_visible()
    await row.get_by_role("link").click()
    await page.get_by_role("region", name="Facts").get_by_role("link", name="north").click()
    await expect(page.get_by_role("textbox", name="Workspace")).to_have_value("north")
    await expect(row).to_be_visible()
    await expect(page.get_by_role("row").filter(has_text="works in the south")).to_have_count(0)
    await page.get_by_role("textbox", name="Workspace").fill("west")
    await page.keyboard.press("Enter")
    await expect(page.get_by_role("heading", name="No run fits")).to_be_visible()


async def test_runs_are_found_by_words_that_the_address_keeps(open_page: Opener, stage: AgentStage) -> None:
    """By its prompt, also among runs in a state, and by the reason for which it has no answer."""
    for animal in ("walruses", "puffins"):
        await stage.done(f"Say where {animal} live")
    refused = await stage.done("Moon over the harbour")
    page = await open_page("/runs")
    walruses = page.get_by_role("row").filter(has_text="walruses")
    await expect(walruses).to_be_visible()
    await page.keyboard.press("/")
    search = page.get_by_role("searchbox", name="Search runs")
    await expect(search).to_be_focused()
    await page.keyboard.type("puff")
    await expect(page).to_have_url(re.compile("q=puff"))
    await expect(walruses).to_have_count(0)
    await expect(page.get_by_role("row").filter(has_text="puffins")).to_be_visible()
    await page.get_by_role("button", name="Failed").click()
    await expect(page.get_by_role("heading", name="No run fits")).to_be_visible()
    await expect(page.get_by_text("search for the beginning of a word")).to_be_visible()
    await page.goto("/runs?q=e007%20harbour")
    await expect(search).to_have_value("e007 harbour")
    found = page.get_by_role("row").filter(has_text="Moon over the harbour")
    await found.get_by_role("link").click()
    await expect(page).to_have_url(re.compile(refused.run_id))


async def test_workers_show_what_runs_lean_on(open_page: Opener, stage: AgentStage) -> None:
    page = await open_page("/workers")
    providers = page.get_by_role("region", name="Providers of models")
    await expect(providers).to_contain_text("nothing bad is known of any")
    records, rules = await stage.agents.records(), HealthRules()
    now_ms = records.database.clock.now_ms()
    health = HealthInRecords(records.providers)
    for _ in range(rules.down_after):
        await health.change("faraway", lambda now: now.after_error(ModelTimeout("silence"), now_ms, rules))
    members = [
        {"id": "b1", "state": "in-use", "since_ms": now_ms, "tenant": "acme"},
        {"id": "b2", "state": "warm", "since_ms": now_ms},
    ]
    told = {"driver": "bubblewrap", "isolation": "namespace", "sandboxes": members}
    await records.sandboxes.tell("a pool", "one", json.dumps(told).encode())
    await page.reload()
    await expect(providers.get_by_role("row", name=re.compile("faraway"))).to_contain_text(
        re.compile("Down.*model-timeout")
    )
    sandboxes = page.get_by_role("region", name="Sandboxes")
    # The worker of these tests may have some of its own.
    await expect(sandboxes).to_contain_text(re.compile(r"1 of \d+ sandboxes in use"))
    await expect(sandboxes.get_by_role("row", name=re.compile("b1"))).to_contain_text("acme")


async def test_a_run_that_is_not_there_says_so(open_page: Opener) -> None:
    page = await open_page("/runs/run_none", may_fail=True)
    await expect(page.get_by_role("alert")).to_contain_text("It may have been removed")


async def test_a_run_that_ended_is_looked_at_though_the_first_look_failed(open_page: Opener, stage: AgentStage) -> None:
    """After its last line a stream tells of the end alone, whoever comes again."""
    run = await stage.done("Say that it is over")
    page = await open_page("/runs", may_fail=True)
    looks, has_failed = 0, asyncio.Event()
    line = {"number": 1, "task_id": run.task_id, "at_ms": 1, "data": {}}
    streams = [f"retry: 50\nid: 1\nevent: job_completed\ndata: {json.dumps(line)}\n\n", "event: end\ndata: {}\n\n"]

    async def told(route: Route) -> None:
        if len(streams) == 1:
            await has_failed.wait()
        await route.fulfill(content_type="text/event-stream", body=streams.pop(0))

    async def looked_at(route: Route) -> None:
        nonlocal looks
        looks += 1
        answer = await route.fetch()
        if looks == 1:
            await route.fulfill(response=answer, json={**await answer.json(), "state": "running"})
        elif looks == 2:
            await route.fulfill(status=500, json={"code": "internal", "title": "A fault"})
            has_failed.set()
        else:
            await route.fulfill(response=answer)

    await page.route(re.compile(rf"/v1/runs/{run.run_id}/stream"), told)
    await page.route(re.compile(rf"/v1/runs/{run.run_id}$"), looked_at)
    await page.goto(f"/runs/{run.run_id}")
    await expect(_heading(page)).to_contain_text("Running")
    await expect(_heading(page)).to_contain_text("Completed")
