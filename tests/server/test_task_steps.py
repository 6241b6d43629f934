"""Steps over HTTP, whatever the model made up or a research sent out: shown, compared, forked."""

from typing import Any

import pytest

from bullpen.agents.llm.scripted import CallTurn, Turn
from bullpen.agents.llm.words import Request, Role, Usage
from bullpen.agents.tools.policy import Policy
from bullpen.agents.tools.tool import tool
from bullpen.server.site import Site
from tests.agents.runs.conftest import Answers
from tests.agents.runs.test_research import researches
from tests.server.agents import look, models_known, over, paid, working_on
from tests.server.calling import Client
from tests.support.places import Place

__all__ = ["models_known"]
pytestmark = pytest.mark.usefixtures("models_known")


def _makes_up(name: str) -> Answers:
    """Calls a tool that is not there, and then has an answer."""

    def answer(request: Request) -> Turn:
        if request.messages[-1].role is Role.TOOL:
            return Turn(text="then not", usage=Usage(10, 20))
        return Turn(calls=(CallTurn(name, {"n": 7}, id="c1"),), usage=Usage(10, 20))

    return answer


async def _steps(client: Client, sent: dict[str, Any]) -> list[dict[str, Any]]:
    page = await client.get(f"/v1/tasks/{sent['task_id']}/steps")
    items: list[dict[str, Any]] = page["items"]
    return items


@pytest.mark.parametrize("name", ["llm:look", "default_api:look", "run:end", "research:fan-out"])
async def test_a_name_that_the_model_made_up_is_refused_and_shown(
    site: Site, client: Client, place: Place, name: str
) -> None:
    await paid(client)
    sent = await client.post("/v1/tasks", {"prompt": "go"}, status=202)
    async with working_on(site, place, _makes_up(name)):
        run = await over(client, sent["run_id"])
        fork = await client.post(f"/v1/tasks/{sent['task_id']}/fork", {"at": 3}, status=202)
        await over(client, fork["run_id"])
    assert (run["state"], run["tasks"][0]["result"]["output"]) == ("completed", "then not")
    assert run["tasks"][0]["result"]["tool_calls_made"] == 1
    steps = await _steps(client, sent)
    assert [one["what"] for one in steps] == ["llm", "tool", "llm", "end"]
    assert (steps[1]["name"], steps[1]["is_error"]) == ("tool:refused", True)
    assert repr(name) in steps[1]["text"]
    compared = await client.get(f"/v1/runs/{sent['run_id']}/compare", **{"with": fork["run_id"]})
    assert (compared["parts_at"], compared["one"]["steps"]) == (None, 3)


@tool(policy=Policy.READ_ONLY)
async def web_search(query: str) -> str:
    """Search."""
    return query


async def test_agents_of_a_research_have_its_tools_and_its_urgency(site: Site, client: Client, place: Place) -> None:
    """The server knows no tools: its workers have those of the research, and one that is none of its."""
    await paid(client)
    asked = {"prompt": "the sky", "task_type": "wide_research", "priority": "critical"}
    sent = await client.post("/v1/tasks", asked, status=202)
    async with working_on(site, place, researches, (look, web_search)):
        run = await over(client, sent["run_id"])
    assert run["state"] == "completed"
    children = [task for task in run["tasks"] if task["parent"] is not None]
    assert [(one["tools"], one["queue"], one["priority"]) for one in children] == [
        (["web_search"], "agent-critical", 1)
    ] * 3


async def test_a_wide_research_is_shown_compared_and_forked(site: Site, client: Client, place: Place) -> None:
    await paid(client)
    sent = await client.post("/v1/tasks", {"prompt": "the sky", "task_type": "wide_research"}, status=202)
    async with working_on(site, place, researches):
        run = await over(client, sent["run_id"])
        fork = await client.post(f"/v1/tasks/{sent['task_id']}/fork", {"at": 1}, status=202)
        forked = await over(client, fork["run_id"])
        refused = await client.post(
            f"/v1/tasks/{sent['task_id']}/fork", {"at": 2, "edits": [{"place": 1, "text": "none"}]}, status=400
        )
    assert (run["state"], forked["state"]) == ("completed", "completed")
    assert refused["detail"].startswith("edits[0].place: a step of a model or a tool")
    steps = await _steps(client, sent)
    assert [one["what"] for one in steps] == ["llm", "fan_out", "llm", "end"]
    children = [task["task_id"] for task in run["tasks"] if task["parent"] is not None]
    assert set(steps[1]["text"].split("\n")) == set(children)
    compared = await client.get(f"/v1/runs/{sent['run_id']}/compare", **{"with": fork["run_id"]})
    assert (compared["parts_at"], len(compared["items"])) == (None, 4)
