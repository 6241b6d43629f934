"""A run step by step, credits, and that all of these pages can be used by everybody."""

import re
from collections.abc import AsyncIterator
from typing import Literal

import pytest
import pytest_asyncio
from playwright.async_api import Locator, Page, Route, expect

from bullpen.agents.forking import Edit
from bullpen.errors import BudgetSpent
from bullpen.records.credits.words import Period
from bullpen.records.runs.moving import RunsOn
from bullpen.records.runs.words import NewProgress, ProgressKind
from tests.dashboard.agentstage import TENANT, AgentStage, agent_stage
from tests.dashboard.axe import serious_findings
from tests.dashboard.conftest import Opener

pytestmark = [pytest.mark.asyncio(loop_scope="session"), pytest.mark.xdist_group("dashboard")]


@pytest_asyncio.fixture(scope="module", loop_scope="session")
async def stage(tmp_path_factory: pytest.TempPathFactory) -> AsyncIterator[AgentStage]:
    async with agent_stage(tmp_path_factory.mktemp("stage")) as stage:
        yield stage


@pytest_asyncio.fixture(scope="module", loop_scope="session")
async def run_id(stage: AgentStage) -> str:
    """Of one that asked a model, called two tools, and asked it again."""
    return (await stage.done("Weather in two cities")).run_id


def _turns(page: Page) -> Locator:
    return page.get_by_role("list", name="The conversation up to this step").locator(".turn")


async def test_a_run_is_stepped_through_by_keys_buttons_and_address(open_page: Opener, run_id: str) -> None:
    page = await open_page(f"/runs/{run_id}")
    await page.get_by_role("button", name="Replay").click()
    place = page.locator(".scrubber-place")
    await expect(place).to_contain_text("4 of 4")
    await expect(_turns(page)).to_have_count(5)
    await page.keyboard.press("ArrowLeft")
    await expect(place).to_contain_text("3 of 4 look_up failed")
    await expect(page).to_have_url(re.compile(r"at=3$"))
    await expect(_turns(page).last).to_contain_text("there is no such city")
    await page.get_by_role("button", name="Step back").click()
    await expect(_turns(page).last).to_contain_text("12 degrees")
    await page.reload()
    await expect(place).to_contain_text("2 of 4 look_up answered")
    await expect(_turns(page)).to_have_count(3)
    await page.keyboard.press("Home")
    await expect(_turns(page)).to_have_text([re.compile("Weather in two cities")])
    await page.get_by_role("slider", name="Step").focus()
    await page.keyboard.press("ArrowRight")
    await expect(_turns(page).last).to_contain_text("I look it up for both.")
    await page.keyboard.press("End")
    await expect(_turns(page).last).to_contain_text("Done: 12 degrees")
    await page.get_by_role("button", name="Back to the run").click()
    await expect(page.get_by_role("region", name="Answer")).to_be_visible()


async def _answer(page: Page, text: str) -> None:
    await expect(page.get_by_role("region", name="Answer")).to_contain_text(text)


async def test_a_fork_goes_on_from_a_tool_result_that_was_changed(open_page: Opener, run_id: str) -> None:
    page = await open_page(f"/runs/{run_id}/replay?at=2")
    await expect(page.locator(".scrubber-place")).to_contain_text("2 of 4 look_up answered")
    await page.keyboard.press("f")
    dialog = page.get_by_role("dialog", name="Fork after look_up answered")
    await dialog.get_by_label("What look_up answered").fill("40 degrees and sun in Bern")
    await dialog.get_by_role("button", name="Fork").click()
    await expect(page).not_to_have_url(re.compile(run_id))
    await _answer(page, "Done: 40 degrees and sun in Bern; look_up: ValueError: there is no such city")
    await expect(page.get_by_role("region", name="Steps")).to_contain_text("It has 2 steps of that one")
    await page.get_by_role("region", name="Facts").get_by_role("link", name="Weather in two cities").click()
    await expect(page).to_have_url(re.compile(f"{run_id}$"))
    await _answer(page, "Done: 12 degrees")


async def test_a_fork_whose_files_are_gone_says_so(open_page: Opener, stage: AgentStage) -> None:
    run = await stage.done("Weather in two more cities")
    database = (await stage.agents.records()).database
    saved = NewProgress(ProgressKind.CHECKPOINT_SAVED, {"id": "checkpoint_1", "place": 1, "size": 3})
    async with database.writing() as connection:
        await RunsOn(connection, database).tell(run.run_id, run.task_id, [saved])
    page = await open_page(f"/runs/{run.run_id}/replay?at=2")
    await expect(page.locator(".scrubber-place")).to_contain_text("2 of 4 look_up answered")
    await page.keyboard.press("f")
    await page.get_by_role("dialog").get_by_role("button", name="Fork").click()
    await expect(page.get_by_text("The fork begins with an empty workspace")).to_be_visible()
    await _answer(page, "Done: 12 degrees")
    await expect(page.get_by_role("region", name="Steps")).to_contain_text("begins with an empty workspace")


async def test_a_fork_is_shown_beside_its_run(open_page: Opener, stage: AgentStage, run_id: str) -> None:
    [task] = await stage.agents.tasks(run_id)
    fork = await stage.agents.fork(task.id, at=2, edits=[Edit(1, "40 degrees and sun")])
    await stage.agents.result(fork.run_id, timeout=60)
    page = await open_page(f"/runs/{fork.run_id}")
    await page.get_by_role("region", name="Facts").get_by_role("link", name="Compare").click()
    await expect(page).to_have_url(re.compile(f"{run_id}/compare\\?with={fork.run_id}$"))
    await expect(page.get_by_role("status").filter(has_text="The first step is the same")).to_be_visible()
    pairs = page.get_by_role("list", name="Steps side by side").locator(".pair")
    await expect(pairs.first).to_contain_text("12 degrees and rain in Bern")
    await expect(pairs.first).to_contain_text("40 degrees and sun")
    await expect(page.get_by_role("region", name="Other")).to_contain_text("fork of the one")
    await expect(page.get_by_text("I look it up for both.")).not_to_be_visible()
    await page.get_by_label("Show what is the same").check()
    await expect(pairs.first).to_contain_text("I look it up for both.")
    await page.get_by_role("button", name="Swap sides").click()
    await expect(page.get_by_role("region", name="One", exact=True)).to_contain_text("fork of the other")
    page = await open_page(f"/runs/{fork.run_id}/replay")
    await page.get_by_role("button", name="Compare").click()
    await expect(page.get_by_role("list", name="Steps side by side")).to_be_visible()


async def test_a_fork_from_the_beginning_has_another_prompt(open_page: Opener, run_id: str) -> None:
    page = await open_page(f"/runs/{run_id}/replay?at=0")
    await page.get_by_role("button", name="Fork from here").click()
    dialog = page.get_by_role("dialog", name="Fork after the prompt")
    await dialog.get_by_label("Prompt").fill("Say it otherwise")
    await dialog.get_by_role("button", name="Fork").click()
    await _answer(page, "Done: Say it otherwise")


async def test_a_dry_fork_calls_no_tool(open_page: Opener, stage: AgentStage) -> None:
    """The card was charged once, and the gate of the bank is shut again: only the record can answer."""
    stage.gate("bank").touch()
    run = await stage.done("Charge the card")
    stage.gate("bank").unlink()
    page = await open_page(f"/runs/{run.run_id}/replay?at=0")
    await page.get_by_role("button", name="Fork from here").click()
    dialog = page.get_by_role("dialog", name="Fork after the prompt")
    await dialog.get_by_label("Dry").check()
    await dialog.get_by_role("button", name="Fork").click()
    await expect(page).not_to_have_url(re.compile(run.run_id))
    await _answer(page, "Done: charged 1250 cents")
    await expect(page.get_by_role("region", name="Facts")).to_contain_text("its tools are not called")


async def test_a_run_that_goes_on_can_be_stepped_through_as_well(open_page: Opener, stage: AgentStage) -> None:
    run = await stage.submit("Wait replayed for it")
    page = await open_page(f"/runs/{run.run_id}/replay")
    await expect(_turns(page).last).to_contain_text("I wait at the gate.")
    stage.gate("replayed").touch()
    await expect(_turns(page).last).to_contain_text("Done: the gate replayed is open")
    await expect(page.locator(".scrubber-place")).to_contain_text("3 of 3")


async def test_credits_are_deposited_and_the_statement_tells_of_it(open_page: Opener, stage: AgentStage) -> None:
    page = await open_page("/credits?tenant=acme")
    await expect(page.get_by_role("heading", name="acme has no credits")).to_be_visible()
    await page.get_by_role("button", name="Deposit").click()
    dialog = page.get_by_role("dialog", name="Deposit credits")
    await expect(dialog.get_by_label("Tenant")).to_have_value("acme")
    await dialog.get_by_label("Credits").fill("250")
    await dialog.get_by_label("Memo").fill("for the first month")
    await dialog.get_by_role("button", name="Deposit").click()
    await expect(page.locator(".figure").filter(has_text="Available")).to_contain_text("250")
    await expect(page.get_by_role("row").filter(has_text="for the first month")).to_contain_text("Deposit")
    await stage.agents.deposit("acme", 50)
    await expect(page.locator(".figure").filter(has_text="Available")).to_contain_text("300")


async def test_what_was_done_is_not_done_again_because_its_answer_was_lost(
    open_page: Opener, stage: AgentStage
) -> None:
    page = await open_page("/credits?tenant=unlucky", may_fail=True)
    await page.get_by_role("button", name="Deposit").first.click()
    dialog = page.get_by_role("dialog", name="Deposit credits")
    await dialog.get_by_label("Credits").fill("40")

    async def lost(route: Route) -> None:
        await route.fetch()
        await route.abort()

    deposits = re.compile(r"/v1/credits/deposits")
    await page.route(deposits, lost)
    await dialog.get_by_role("button", name="Deposit").click()
    await expect(dialog.get_by_role("alert")).to_contain_text("unreachable")
    await page.unroute(deposits)
    await dialog.get_by_role("button", name="Deposit").click()
    await expect(dialog).to_have_count(0)
    await expect(page.get_by_role("region", name="Statement").locator("tbody tr")).to_have_count(1)


async def test_a_budget_is_set_shown_with_what_is_used_and_removed(open_page: Opener, stage: AgentStage) -> None:
    await stage.agents.deposit("thrifty", 100)
    page = await open_page("/credits?tenant=thrifty")
    card = page.get_by_role("region", name="Budgets")
    await expect(card).to_contain_text("No budgets")
    await card.get_by_role("button", name="Set budget").click()
    dialog = page.get_by_role("dialog", name="Budget of thrifty")
    await dialog.get_by_label("Period").select_option("total")
    await dialog.get_by_label("Credits").fill("20")
    await dialog.get_by_role("button", name="Set").click()
    row = card.get_by_role("row").filter(has_text="In all")

    await expect(row).to_contain_text("0 of 20")
    await expect(row).to_contain_text("never")
    # A run sets its estimate aside, and there is no room for another.
    sent = await stage.agents.submit("Wait never for it", tenant="thrifty")
    await expect(row).to_contain_text("11 of 20")
    with pytest.raises(BudgetSpent):
        await stage.agents.submit("Wait never for it", tenant="thrifty")
    await stage.agents.cancel(sent.run_id)
    await row.get_by_role("button", name="Remove").click()
    await page.get_by_role("dialog").get_by_role("button", name="Remove").click()
    await expect(card).to_contain_text("No budgets")


async def test_a_run_that_nobody_can_pay_for_is_refused_with_what_to_do(open_page: Opener, stage: AgentStage) -> None:
    await stage.agents.deposit("poor", 1)
    page = await open_page("/runs", may_fail=True)
    await page.get_by_role("button", name="New run").click()
    dialog = page.get_by_role("dialog", name="New run")
    await dialog.get_by_label("Prompt").fill("Say something")
    await dialog.get_by_label("Tenant").fill("poor")
    await dialog.get_by_role("button", name="Start").click()
    await expect(dialog.get_by_role("alert")).to_contain_text("Deposit some on the page Credits")


async def test_a_long_statement_is_paged(open_page: Opener, stage: AgentStage) -> None:
    for n in range(60):
        await stage.agents.deposit("busy", 1, key=f"deposit {n}")
    page = await open_page("/credits?tenant=busy")
    rows = page.get_by_role("table", name="Statement").locator("tbody tr")
    await expect(rows).to_have_count(50)
    await page.get_by_role("button", name="Older").click()
    await expect(rows).to_have_count(10)
    await page.get_by_role("button", name="Newest").click()
    await expect(rows).to_have_count(50)


_PATHS = (
    "/runs",
    "/runs/{run}",
    "/runs/{run}/replay?at=3",
    "/runs/{run}/compare?with={waiting}&all=1",
    "/runs/{waiting}",
    f"/credits?tenant={TENANT}",
    "/credits?tenant=none",
)


@pytest_asyncio.fixture(scope="module", loop_scope="session")
async def paths(stage: AgentStage, run_id: str) -> list[str]:
    waiting = (await stage.submit("Wait never for it")).run_id
    await (await stage.agents.records()).credits.set_budget(TENANT, Period.MONTH, 10_000_000_000)
    return [path.format(run=run_id, waiting=waiting) for path in _PATHS]


@pytest.mark.parametrize("theme", ["light", "dark"])
async def test_no_page_has_a_serious_finding(
    open_page: Opener, paths: list[str], theme: Literal["light", "dark"]
) -> None:
    page = await open_page("/", color_scheme=theme, reduced_motion="reduce", bypass_csp=True)
    findings: dict[str, list[str]] = {}
    for path in paths:
        await page.goto(path)
        await expect(page.get_by_role("heading", level=1)).to_be_visible()
        await expect(page.locator(".skeleton")).to_have_count(0)
        if found := await serious_findings(page):
            findings[path] = found
    assert findings == {}


async def test_dialogs_have_no_serious_finding(open_page: Opener, run_id: str) -> None:
    page = await open_page(f"/runs/{run_id}/replay", reduced_motion="reduce", bypass_csp=True)
    await page.get_by_role("button", name="Fork from here").click()
    await expect(page.get_by_role("dialog")).to_be_visible()
    assert await serious_findings(page) == []


async def test_on_a_phone_no_page_is_wider_than_the_screen(open_page: Opener, paths: list[str]) -> None:
    page = await open_page("/", width=390)
    too_wide = {}
    for path in paths:
        await page.goto(path)
        await expect(page.get_by_role("heading", level=1)).to_be_visible()
        await expect(page.locator(".skeleton")).to_have_count(0)
        if (width := await page.evaluate("document.documentElement.scrollWidth")) > 390:
            too_wide[path] = width
    assert too_wide == {}
