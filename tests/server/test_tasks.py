"""Tasks and runs over HTTP: asked for, done by a worker elsewhere, looked at, cancelled, answered."""

import asyncio
from typing import Any

import pytest
from sqlalchemy import delete, event, update

from bullpen.agents.llm.scripted import CallTurn, Turn
from bullpen.agents.llm.words import Request, Usage
from bullpen.agents.tools.policy import Policy
from bullpen.agents.tools.tool import tool
from bullpen.agents.words import TaskRequest
from bullpen.errors import RecordsUnavailable
from bullpen.records.idempotency import Idempotency
from bullpen.records.runs.moving import RunsOn
from bullpen.records.runs.words import NewProgress, ProgressKind
from bullpen.records.tables.access import idempotency as idempotency_table
from bullpen.server.models.tasks import TaskBody
from bullpen.server.site import Site
from tests.server.agents import MODELS, models_known, over, paid, working_on
from tests.server.calling import Client, client_of, key_for, only_on_files
from tests.support.places import Place

__all__ = ["models_known"]
pytestmark = pytest.mark.usefixtures("models_known")

_CREDIT = 1_000_000


def test_all_that_may_be_asked_in_python_may_be_asked_over_http() -> None:
    assert set(TaskBody.model_fields) - {"tenant"} == set(TaskRequest.__struct_fields__)


async def test_a_task_is_asked_for_done_and_looked_at(site: Site, client: Client, place: Place) -> None:
    await paid(client)
    sent = await client.post("/v1/tasks", {"prompt": "What is it?", "metadata": {"from": "test"}}, status=202)
    assert sent.keys() == {"task_id", "run_id", "status", "estimated_wait_seconds"}
    assert (sent["status"], sent["estimated_wait_seconds"]) == ("queued", 0.0)
    async with working_on(site, place):
        run = await over(client, sent["run_id"])
    assert (run["state"], run["tenant"], run["created_by"]) == ("completed", "default", "local")
    [task] = run["tasks"]
    assert task == await client.get(f"/v1/tasks/{sent['task_id']}")
    assert (task["prompt"], task["model"], task["task_type"]) == ("What is it?", "parrot", "agent_run")
    assert (task["metadata"], task["question"]) == ({"from": "test"}, None)
    assert task["budget"] == {
        "estimate": 11 * _CREDIT, "most": 22 * _CREDIT, "available": 0, "held": 0, "spent": 6_000,
    }  # fmt: skip
    result = await client.get(f"/v1/tasks/{sent['task_id']}/result")
    assert result == task["result"]
    assert (result["output"], result["credits_charged"]) == ("it said: seen 7", 6_000)
    assert result["tokens_used"]["by_model"]["parrot"]["input_tokens"] == 20
    booked = (await client.get("/v1/credits/statement", task=sent["task_id"]))["items"]
    charges = [one["memo"] for one in booked if one["kind"] == "charge"]
    assert charges == [f"llm:parrot at prices {MODELS.version}"] * 2
    assert (result["job_id"], result["artifacts"]) == (sent["task_id"], [])
    listed = await client.get("/v1/runs", state="completed")
    assert [(one["run_id"], one["prompt"]) for one in listed["items"]] == [(sent["run_id"], "What is it?")]
    assert (await client.get("/v1/runs", state="running"))["items"] == []


async def test_its_steps_are_its_journal(site: Site, client: Client, place: Place) -> None:
    await paid(client)
    sent = await client.post("/v1/tasks", {"prompt": "What is it?"}, status=202)
    assert await client.get(f"/v1/tasks/{sent['task_id']}/steps") == {"items": [], "next_place": None}
    async with working_on(site, place):
        await over(client, sent["run_id"])
    page = await client.get(f"/v1/tasks/{sent['task_id']}/steps")
    assert [(one["what"], one["name"], one["state"]) for one in page["items"]] == [
        ("llm", "llm:parrot", "done"),
        ("tool", "look", "done"),
        ("llm", "llm:parrot", "done"),
        ("end", "run:end", "done"),
    ]
    asked, used, answered, ended = page["items"]
    assert asked["calls"] == [{"id": "c1", "name": "look", "arguments": '{"n":7}'}]
    assert (asked["model"], asked["usage"]["output_tokens"], asked["attempts"]) == ("parrot", 20, 1)
    assert (used["call_id"], used["text"], used["is_error"]) == ("c1", "seen 7", False)
    assert answered["text"] == ended["text"] == "it said: seen 7"
    first = await client.get(f"/v1/tasks/{sent['task_id']}/steps", limit=1)
    assert (first["items"], first["next_place"]) == ([asked], 1)


async def test_all_that_was_said_is_told_and_can_be_said_again(site: Site, client: Client, place: Place) -> None:
    await paid(client)
    before = [{"role": "user", "text": "Hello."}, {"role": "assistant", "text": "Hello?"}]
    body = {"prompt": "What is it?", "system": "Be brief.", "history": before}
    sent = await client.post("/v1/tasks", body, status=202)
    path = f"/v1/tasks/{sent['task_id']}/messages"
    assert [one["role"] for one in (await client.get(path))["items"]] == ["system", "user", "assistant", "user"]
    async with working_on(site, place):
        await over(client, sent["run_id"])
    page = await client.get(path)
    assert page["next_start"] is None
    assert [(one["role"], one["text"]) for one in page["items"]] == [
        ("system", "Be brief."),
        ("user", "Hello."),
        ("assistant", "Hello?"),
        ("user", "What is it?"),
        ("assistant", "let me look"),
        ("tool", ""),
        ("assistant", "it said: seen 7"),
    ]
    assert page["items"][4]["calls"] == [{"id": "c1", "name": "look", "arguments": '{"n":7}'}]
    assert page["items"][5]["results"] == [{"call_id": "c1", "text": "seen 7", "is_error": False}]
    part = await client.get(path, start=2, limit=2)
    assert (part["items"], part["next_start"]) == (page["items"][2:4], 4)
    await client.post("/v1/tasks", {"prompt": "And now?", "history": page["items"][1:]}, status=202)


@pytest.mark.parametrize(
    "body, field",
    [
        ({}, "prompt"),
        ({"prompt": " "}, "prompt"),
        ({"prompt": "a\0b"}, "prompt"),
        ({"prompt": 7}, "prompt"),
        ({"prompt": "go", "colour": "red"}, "colour"),
        ({"prompt": "go", "task_type": "nonsense"}, "task_type"),
        ({"prompt": "go", "workspace": ""}, "workspace"),
        ({"prompt": "go", "workspace": "w" * 201}, "workspace"),
        ({"prompt": "go", "priority": "soon"}, "priority"),
        ({"prompt": "go", "max_steps": 0}, "max_steps"),
        ({"prompt": "go", "temperature": 9.0}, "temperature"),
        ({"prompt": "go", "tools": ["not a name"]}, "tools"),
        ({"prompt": "go", "model": "parott"}, "model"),
        ({"prompt": "go", "sandbox": {"type": "chroot"}}, "sandbox.type"),
        ({"prompt": "go", "sandbox": {"type": "firecracker"}}, "sandbox.type"),
        ({"prompt": "go", "sandbox": {"memory_mb": 1_000_000}}, "sandbox.memory_mb"),
        ({"prompt": "go", "sandbox": {"colour": "red"}}, "sandbox.colour"),
        ({"prompt": "go", "history": [{"role": "tool", "results": [{"call_id": "x", "text": ""}]}]}, "messages[0]"),
    ],
)
@only_on_files
async def test_what_is_wrong_is_told_by_its_field(client: Client, body: dict[str, Any], field: str) -> None:
    await paid(client)
    problem = await client.post("/v1/tasks", body, status=400)
    assert (problem["field"], problem["agent_code"], problem["retryable"]) == (field, "E001", False)
    assert problem["user_facing_message"] == ("There is no such model." if field == "model" else problem["detail"])
    assert (await client.get("/v1/runs"))["items"] == []


async def test_who_has_too_few_credits_is_told_how_many(client: Client) -> None:
    missing = await client.post("/v1/tasks", {"prompt": "go"}, status=404)
    assert "no credits" in missing["detail"]
    assert (missing["agent_code"], missing["retryable"]) == ("E001", False)
    assert missing["user_facing_message"].endswith(".")
    await paid(client, credits_=9)
    problem = await client.post("/v1/tasks", {"prompt": "go"}, status=402)
    assert (problem["code"], problem["agent_code"], problem["retryable"]) == ("credits-short", "E003", False)
    assert (problem["required"], problem["available"]) == (11 * _CREDIT, 9 * _CREDIT)
    assert problem["user_facing_message"]
    assert (await client.get("/v1/runs"))["items"] == []


async def test_the_metrics_tell_of_runs_that_are_not_over(site: Site, client: Client, place: Place) -> None:
    await paid(client)

    async def metrics() -> str:
        return (await client.http.get("/metrics")).text

    first = await client.post("/v1/tasks", {"prompt": "go"}, status=202)
    await client.post("/v1/tasks", {"prompt": "go"}, status=202)
    told = await metrics()
    assert 'bullpen_runs_under_way{state="queued"} 2' in told
    assert 'bullpen_tasks_under_way{state="queued"} 2' in told
    assert 'bullpen_runs_under_way{state="running"} 0' in told
    await client.post(f"/v1/runs/{first['run_id']}/cancel", {})
    told = await metrics()
    assert 'bullpen_runs_under_way{state="queued"} 1' in told
    assert 'under_way{state="cancelled"}' not in told
    assert 'bullpen_runs_total{state="cancelled"} 1' in told, "what is over is counted where it ends, which is here"


@only_on_files
async def test_those_who_are_over_are_not_looked_at_to_count_the_others(site: Site) -> None:
    """Only there: PostgreSQL plans by how much there is, and here there is nothing."""
    database = site.records.database
    seen: list[str] = []
    event.listen(database.engine.sync_engine, "before_cursor_execute", lambda *call: seen.append(call[2]))
    await site.records.runs.under_way()
    [query] = [one for one in seen if "bullpen_task" in one]
    async with database.reading() as connection:
        plan = await connection.exec_driver_sql(f"EXPLAIN QUERY PLAN {query}", ("x",) * query.count("?"))
        assert "ix_bullpen_task_state_changed (state=?)" in str(plan.all())


async def test_the_same_key_is_one_task(client: Client) -> None:
    await paid(client)
    first = await client.post("/v1/tasks", {"prompt": "go"}, status=202, **{"Idempotency-Key": "one"})
    again = await client.post("/v1/tasks", {"prompt": "go"}, status=202, **{"Idempotency-Key": "one"})
    assert again == first
    assert len((await client.get("/v1/runs"))["items"]) == 1


async def test_a_run_belongs_to_a_workspace_of_its_tenant(site: Site, client: Client, place: Place) -> None:
    """Its job does too, and so does a fork of it."""
    for tenant in ("acme", "other"):
        await paid(client, tenant)
    asked = {"prompt": "What is it?", "tenant": "acme", "workspace": "sales"}
    sent = await client.post("/v1/tasks", asked, status=202)
    await client.post("/v1/tasks", {"prompt": "go", "tenant": "acme"}, status=202)
    await client.post("/v1/tasks", {**asked, "tenant": "other"}, status=202)
    async with working_on(site, place):
        run = await over(client, sent["run_id"])
    assert run["workspace"] == "sales"
    forked = await client.post(f"/v1/tasks/{sent['task_id']}/fork", {"at": 0}, status=202)
    job = await site.queue(run["tasks"][0]["queue"]).job(sent["task_id"]).record()
    assert job.spec.workspace == "sales"
    listed = (await client.get("/v1/runs", tenant="acme", workspace="sales"))["items"]
    assert [(one["run_id"], one["workspace"]) for one in listed] == [
        (forked["run_id"], "sales"),
        (sent["run_id"], "sales"),
    ]
    assert (await client.get("/v1/runs", tenant="acme", workspace="else"))["items"] == []
    everywhere = (await client.get("/v1/runs", workspace="sales"))["items"]
    assert [one["tenant"] for one in everywhere] == ["acme", "other", "acme"]


async def test_runs_are_found_by_words(site: Site, client: Client) -> None:
    """Page by page; whoever has a tenant finds only its runs, whatever it asks for."""
    for tenant in ("acme", "other"):
        await paid(client, tenant)
    asked = [("Count the walruses", "acme"), ("Count the walruses", "other"), ("Feed the walrus", "acme")]
    sent = [
        (await client.post("/v1/tasks", {"prompt": prompt, "tenant": tenant}, status=202))["run_id"]
        for prompt, tenant in asked
    ]

    async def found(caller: Client, **query: Any) -> list[str]:
        return [one["run_id"] for one in (await caller.get("/v1/runs", **query))["items"]]

    assert await found(client, q="Walrus") == sent[::-1]
    assert await found(client, q="count walruses", tenant="acme") == await found(client, q=sent[0]) == [sent[0]]
    assert await found(client, q="walrus", state="completed") == await found(client, q="penguin") == []
    assert await found(client, q="") == []
    first = await client.get("/v1/runs", q="walrus", limit=2)
    last = await client.get("/v1/runs", q="walrus", limit=2, cursor=first["next_cursor"])
    assert [one["run_id"] for page in (first, last) for one in page["items"]] == sent[::-1]
    assert last["next_cursor"] is None
    async with client_of(site, await key_for(site, "producer", tenant="other")) as caller:
        assert await found(caller, q="walrus") == await found(caller, q=sent[1]) == [sent[1]]
        assert await found(caller, q=sent[0]) == await found(caller, q="acme") == []
        await caller.get("/v1/runs", q="walrus", tenant="acme", status=403)


@only_on_files
@pytest.mark.parametrize(
    "query, code",
    [({"q": "x" * 301}, "bad-request"), ({"q": "a\0b"}, "bad-request"), ({"q": "a", "cursor": "x"}, "bad-option")],
    ids=["long", "nul", "cursor"],
)
async def test_words_of_runs_are_refused_as_those_of_jobs_are(client: Client, query: dict[str, str], code: str) -> None:
    for path, status in (("/v1/jobs", 422), ("/v1/runs", 400)):
        assert (await client.get(path, status=status, **query))["code"] == code


async def test_a_tenant_asks_for_itself_and_others_for_whom_they_name(site: Site, client: Client) -> None:
    await paid(client, "acme")
    admin = await key_for(site, "admin")
    producer = await key_for(site, "producer", tenant="acme")
    async with client_of(site, producer) as caller:
        sent = await caller.post("/v1/tasks", {"prompt": "go"}, status=202)
        await caller.post("/v1/tasks", {"prompt": "go", "tenant": "other"}, status=403)
        assert (await caller.get(f"/v1/runs/{sent['run_id']}"))["tenant"] == "acme"
        await caller.post(f"/v1/tasks/{sent['task_id']}/answer", {"again": True}, status=403)
    async with client_of(site, admin) as caller:
        sent = await caller.post("/v1/tasks", {"prompt": "go", "tenant": "acme"}, status=202)
        rows = (await caller.get("/v1/runs", tenant="acme"))["items"]
        assert {one["tenant"] for one in rows} == {"acme"}
        audit = await caller.get("/v1/audit", action="task.submit", tenant="acme")
        assert {entry["target"] for entry in audit["items"]} >= {one["run_id"] for one in rows}
        await caller.put("/v1/tenants/acme", {"is_disabled": True}, status=404)
        await caller.post("/v1/tenants", {"id": "acme"}, status=201)
        await caller.put("/v1/tenants/acme", {"is_disabled": True})
        refused = await caller.post("/v1/tasks", {"prompt": "go", "tenant": "acme"}, status=403)
        assert refused["code"] == "tenant-refused"
    async with client_of(site, await key_for(site, "producer", queues=frozenset({"mail"}))) as caller:
        await caller.post("/v1/tasks", {"prompt": "go"}, status=403)
        await caller.get("/v1/runs", status=403)


@only_on_files
async def test_a_plan_bounds_how_urgent_a_tenants_tasks_are(site: Site, client: Client) -> None:
    await paid(client, "acme")
    await client.post("/v1/tenants", {"id": "acme", "plan": {"highest_priority": 4}}, status=201)
    async with client_of(site, await key_for(site, "producer", tenant="acme")) as caller:
        sent = await caller.post("/v1/tasks", {"prompt": "go", "priority": "critical"}, status=202)
        task = await caller.get(f"/v1/tasks/{sent['task_id']}")
        assert (task["priority"], task["queue"]) == (5, "agent-standard")
    async with client_of(site, await key_for(site, "operator")) as caller:
        body = {"prompt": "go", "priority": "critical", "tenant": "acme"}
        sent = await caller.post("/v1/tasks", body, status=202)
        assert (await caller.get(f"/v1/tasks/{sent['task_id']}"))["queue"] == "agent-critical"


@only_on_files
async def test_a_fork_is_no_more_urgent_than_its_caller_may_be(site: Site, client: Client) -> None:
    """Whoever asked for the first run: a producer of a tenant gets no place in the system's line by forking."""
    await client.post("/v1/tenants", {"id": "acme", "plan": {"highest_priority": 4}}, status=201)
    await paid(client, "acme")
    async with client_of(site, await key_for(site, "operator")) as caller:
        body = {"prompt": "go", "priority": "critical", "tenant": "acme"}
        sent = await caller.post("/v1/tasks", body, status=202)
        path = f"/v1/tasks/{sent['task_id']}/fork"
        fork = await caller.post(path, {"at": 0}, status=202)
        shown = await caller.get(f"/v1/tasks/{fork['task_id']}")
        assert (shown["queue"], shown["priority"], shown["max_retries"]) == ("agent-critical", 1, 5)
    async with client_of(site, await key_for(site, "producer", tenant="acme")) as caller:
        fork = await caller.post(path, {"at": 0}, status=202)
        shown = await caller.get(f"/v1/tasks/{fork['task_id']}")
        assert (shown["queue"], shown["priority"], shown["max_retries"]) == ("agent-standard", 5, 3)


async def test_critical_is_the_systems_also_where_a_tenant_has_no_plan(site: Site, client: Client) -> None:
    await paid(client, "acme")
    async with client_of(site, await key_for(site, "producer", tenant="acme")) as caller:
        sent = await caller.post("/v1/tasks", {"prompt": "go", "priority": "critical"}, status=202)
        task = await caller.get(f"/v1/tasks/{sent['task_id']}")
        assert (task["priority"], task["queue"]) == (3, "agent-standard")


@only_on_files
async def test_a_plan_bounds_what_a_kind_of_task_would_be_given(site: Site, client: Client) -> None:
    await paid(client, "acme")
    await client.post("/v1/tenants", {"id": "acme", "plan": {"highest_priority": 5}}, status=201)
    async with client_of(site, await key_for(site, "producer", tenant="acme")) as caller:
        sent = await caller.post("/v1/tasks", {"prompt": "go", "task_type": "tool_execution"}, status=202)
        task = await caller.get(f"/v1/tasks/{sent['task_id']}")
        assert (task["priority"], task["queue"]) == (5, "tools-fast")


async def test_a_run_is_cancelled_and_its_credits_come_back(client: Client) -> None:
    await paid(client, credits_=20)
    sent = await client.post("/v1/tasks", {"prompt": "go"}, status=202)
    early = await client.get(f"/v1/tasks/{sent['task_id']}/result", status=409)
    assert (early["agent_code"], early["retryable"]) == ("E001", False)
    assert early["code"] == "wrong-state"
    cancelled = await client.post(f"/v1/runs/{sent['run_id']}/cancel", {"reason": "no need"})
    assert cancelled["state"] == "cancelled"
    assert cancelled["results"][0]["error"]["code"] == "E012"
    assert (await client.get("/v1/credits"))["available"] == 20 * _CREDIT
    await client.post(f"/v1/runs/{sent['run_id']}/cancel", status=409)
    events = await client.get(f"/v1/runs/{sent['run_id']}/events")
    assert events["items"][-1]["kind"] == "job_cancelled"


async def test_a_tool_that_no_worker_has_is_told(site: Site, client: Client, place: Place) -> None:
    """The server does not know what workers have: it takes any name, and the task says what is missing."""
    await paid(client)
    sent = await client.post("/v1/tasks", {"prompt": "go", "tools": ["fly"], "timeout": 1.5}, status=202)
    async with working_on(site, place):
        run = await over(client, sent["run_id"])
    events = await client.get(f"/v1/runs/{sent['run_id']}/events")
    [waits, failed] = events["items"]
    assert (waits["kind"], waits["data"]["lack"], failed["kind"]) == ("job_suspended", {"tools": ["fly"]}, "job_failed")
    error = run["tasks"][0]["result"]["error"]
    assert (run["state"], error["code"]) == ("failed", "E001")
    assert "fly" in error["message"]


def _asks_once(request: Request) -> Turn:
    if len(request.messages) > 1:
        return Turn(text=f"so: {request.messages[-1].results[0].text}", usage=Usage(1, 1))
    return Turn(calls=(CallTurn("send", {}, id="c1"),), usage=Usage(1, 1))


@pytest.mark.parametrize("answer, output", [({"result": "it went out"}, "it went out"), ({"again": True}, "sent")])
async def test_a_person_answers_what_became_of_a_call(
    site: Site, client: Client, place: Place, answer: dict[str, Any], output: str
) -> None:
    """A worker dies in a call that must not be made twice; the next one asks."""
    began = asyncio.Event()

    @tool(policy=Policy.ONCE)
    async def send() -> str:
        """Send it."""
        if began.is_set():
            return "sent"
        began.set()
        await asyncio.Event().wait()
        return "never"

    await paid(client)
    sent = await client.post("/v1/tasks", {"prompt": "go"}, status=202)
    path = f"/v1/tasks/{sent['task_id']}"
    assert (await client.post(f"{path}/answer", {"again": True}, status=409))["code"] == "wrong-state"
    async with asyncio.timeout(60):
        async with working_on(site, place, _asks_once, [send], grace=0.1):
            await began.wait()
        async with working_on(site, place, _asks_once, [send]):
            while (task := await client.get(path))["state"] != "suspended":
                await asyncio.sleep(0.05)
            assert task["question"]["tool"] == "send"
            assert [one["is_asking"] for one in (await client.get("/v1/runs", is_asking="true"))["items"]] == [True]
            assert (await client.post(f"{path}/answer", {}, status=400))["field"] == "result"
            await client.post(f"{path}/answer", answer)
            run = await over(client, sent["run_id"])
    assert (await client.get("/v1/runs", is_asking="true"))["items"] == []
    assert run["tasks"][0]["result"]["output"] == f"so: {output}"
    whats = [one["what"] for one in (await client.get(f"{path}/steps"))["items"]]
    # One that let the call be made once more has served with that: it says nothing about the next time.
    answered = [] if "again" in answer else ["answer"]
    assert whats == ["llm", "tool", *answered, "llm", "end"]


async def test_a_task_shows_on_what_terms_it_is_done(site: Site, client: Client) -> None:
    await paid(client)
    asked = {
        "prompt": "What is it?", "task_type": "wide_research", "temperature": 0.5, "max_tokens": 99, "stream": False,
        "max_total_tokens": 5_000, "questions": ["One?", "Two?"], "width": 2, "needs_answers": 1,
        "history": [{"role": "user", "text": "Hello"}, {"role": "assistant", "text": "Hi"}],
    }  # fmt: skip
    sent = await client.post("/v1/tasks", asked, status=202)
    retrying = NewProgress(ProgressKind.JOB_RETRYING, {})
    async with site.records.database.writing() as connection:
        on = RunsOn(connection, site.records.database)
        await on.tell(sent["run_id"], sent["task_id"], [retrying, retrying])
    task = await client.get(f"/v1/tasks/{sent['task_id']}")
    same = ("temperature", "max_tokens", "stream", "max_total_tokens", "questions", "width", "needs_answers")
    assert {name: task[name] for name in same} == {name: asked[name] for name in same}
    assert (task["history_messages"], task["files"]) == (2, [])
    assert (task["max_retries"], task["retries"]) == (2, 2)
    plain = await client.post("/v1/tasks", {"prompt": "What is it?"}, status=202)
    task = await client.get(f"/v1/tasks/{plain['task_id']}")
    assert (task["temperature"], task["max_total_tokens"], task["retries"]) == (None, None, 0)


async def test_a_task_is_forked_with_another_past(site: Site, client: Client, place: Place) -> None:
    await paid(client)
    sent = await client.post("/v1/tasks", {"prompt": "What is it?"}, status=202)
    path = f"/v1/tasks/{sent['task_id']}/fork"
    async with working_on(site, place):
        await over(client, sent["run_id"])
        edits = [{"place": 1, "text": "seen 8"}]
        forked = await client.post(path, {"at": 3, "edits": edits, "dry": True}, status=202)
        run = await over(client, forked["run_id"])
    assert run["tasks"][0]["result"]["output"] == "it said: seen 8"
    assert run["tasks"][0]["forked_from"] == sent["task_id"]
    assert forked["note"] is None
    assert (await client.post(path, {"at": 99}, status=400))["field"] == "at"
    assert (await client.post(path, {"at": 2, "prompt": "Else?"}, status=400))["field"] == "at"


async def test_who_forks_is_told_that_files_are_gone(site: Site, client: Client, place: Place) -> None:
    await paid(client)
    sent = await client.post("/v1/tasks", {"prompt": "What is it?"}, status=202)
    async with working_on(site, place):
        await over(client, sent["run_id"])
    saved = NewProgress(ProgressKind.CHECKPOINT_SAVED, {"id": "checkpoint_1", "place": 1, "size": 3})
    async with site.records.database.writing() as connection:
        await RunsOn(connection, site.records.database).tell(sent["run_id"], sent["task_id"], [saved])
    path = f"/v1/tasks/{sent['task_id']}/fork"
    forked = await client.post(path, {"at": 3}, status=202)
    assert "empty workspace" in forked["note"]
    events = await client.get(f"/v1/runs/{forked['run_id']}/events")
    assert [one["data"] for one in events["items"]] == [{"message": forked["note"]}]
    assert (await client.post(path, {"at": 1}, status=202))["note"] is None


async def test_a_run_is_shown_beside_its_fork(site: Site, client: Client, place: Place) -> None:
    await paid(client)
    sent = await client.post("/v1/tasks", {"prompt": "What is it?"}, status=202)
    async with working_on(site, place):
        await over(client, sent["run_id"])
        body = {"at": 3, "edits": [{"place": 1, "text": "seen 8"}]}
        fork = await client.post(f"/v1/tasks/{sent['task_id']}/fork", body, status=202)
        await over(client, fork["run_id"])
    path, beside = f"/v1/runs/{sent['run_id']}/compare", {"with": fork["run_id"]}
    found = await client.get(path, **beside)
    assert (found["parts_at"], found["differing"], found["next_place"]) == (1, 3, None)
    assert [one["differs"] for one in found["items"]] == [[], ["text"], ["text"], ["text"]]
    assert (found["items"][1]["one"]["text"], found["items"][1]["other"]["text"]) == ("seen 7", "seen 8")
    assert found["other"]["result"]["output"] == "it said: seen 8"
    assert (found["one"]["spent"], found["other"]["spent"]) == (6_000, 3_000)
    page = await client.get(path, **beside, limit=1)
    rest = await client.get(path, **beside, start=page["next_place"])
    assert page["items"] + rest["items"] == found["items"]
    assert (await client.get(path, status=400))["field"] == "with"
    await client.get(path, status=404, **{"with": "run_0"})


async def test_nobody_compares_with_what_is_another_tenants(site: Site, client: Client) -> None:
    for tenant in ("acme", "other"):
        await paid(client, tenant)
    mine, theirs = [
        (await client.post("/v1/tasks", {"prompt": "go", "tenant": tenant}, status=202))["run_id"]
        for tenant in ("acme", "other")
    ]
    refused = await client.get(f"/v1/runs/{mine}/compare", status=400, **{"with": theirs})
    assert refused["field"] == "with"
    async with client_of(site, await key_for(site, "admin", tenant="acme")) as caller:
        said = await caller.get(f"/v1/runs/{mine}/compare", status=404, **{"with": theirs})
        never = await caller.get(f"/v1/runs/{mine}/compare", status=404, **{"with": "run_0"})
        assert said["detail"].replace(theirs, "") == never["detail"].replace("run_0", "")


async def test_a_key_finds_its_run_though_its_answer_was_never_written(
    site: Site, client: Client, monkeypatch: pytest.MonkeyPatch
) -> None:
    """As after the death of the server between the run and the answer, once the key is free again."""
    await paid(client)
    body, headers = {"prompt": "What is it?"}, {"Idempotency-Key": "k1"}
    with monkeypatch.context() as patched:
        patched.setattr(Idempotency, "finish", _died)
        await client.post("/v1/tasks", body, status=202, **headers)
    await client.post("/v1/tasks", body, status=409, **headers)
    async with site.records.database.writing() as connection:
        await connection.execute(update(idempotency_table).values(expires_ms=0))
    [run] = (await client.get("/v1/runs"))["items"]
    sent = await client.post("/v1/tasks", body, status=202, **headers)
    assert (sent["run_id"], sent["status"]) == (run["run_id"], "queued")
    assert len((await client.get("/v1/runs"))["items"]) == 1
    async with site.records.database.writing() as connection:
        await connection.execute(delete(idempotency_table))
    problem = await client.post("/v1/tasks", {"prompt": "Another?"}, status=409, **headers)
    assert problem["code"] == "idempotency-conflict"
    assert (await client.get("/v1/credits"))["held"] == 11 * _CREDIT


async def _died(*_: object, **__: object) -> None:
    raise RecordsUnavailable("gone")
