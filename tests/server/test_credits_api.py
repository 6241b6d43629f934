"""Credits over HTTP: put in once, seen by whom they belong to."""

import pytest

from bullpen.server.site import Site
from tests.server.agents import models_known
from tests.server.calling import Client, client_of, key_for

__all__ = ["models_known"]
pytestmark = pytest.mark.usefixtures("models_known")

_CREDIT = 1_000_000


async def test_a_deposit_is_made_once_for_its_key(client: Client) -> None:
    body = {"tenant": "acme", "credits": 5, "key": "invoice-1", "memo": "thanks"}
    first = await client.post("/v1/credits/deposits", body, status=201)
    assert first["credits"] == {"available": 5.0, "held": 0.0, "spent": 0.0}
    assert await client.post("/v1/credits/deposits", body, status=201) == first
    other = await client.post("/v1/credits/deposits", {**body, "credits": 6}, status=409)
    assert other["code"] == "idempotency-conflict"
    plain = {"tenant": "acme", "credits": 5}
    for _ in range(2):
        await client.post("/v1/credits/deposits", plain, status=201, **{"Idempotency-Key": "two"})
    assert (await client.get("/v1/credits", tenant="acme"))["available"] == 10 * _CREDIT
    assert (await client.post("/v1/credits/deposits", {**body, "credits": 0}, status=400))["field"] == "credits"


async def test_a_statement_has_all_that_moved_in_pages(client: Client) -> None:
    assert (await client.get("/v1/credits/statement"))["items"] == []
    assert (await client.get("/v1/credits"))["available"] == 0
    await client.post("/v1/credits/deposits", {"tenant": "default", "credits": 50, "memo": "start"}, status=201)
    sent = await client.post("/v1/tasks", {"prompt": "go"}, status=202)
    held = await client.get("/v1/credits")
    assert (held["available"], held["held"]) == (39 * _CREDIT, 11 * _CREDIT)
    assert held["credits"]["held"] == 11.0
    await client.post(f"/v1/runs/{sent['run_id']}/cancel")
    newest = await client.get("/v1/credits/statement", limit=2)
    rest = await client.get("/v1/credits/statement", limit=2, cursor=newest["next_cursor"])
    assert [one["kind"] for one in newest["items"] + rest["items"]] == ["refund", "hold", "deposit"]
    assert rest["items"][-1]["memo"] == "start"
    assert newest["items"][0]["available"] == 50 * _CREDIT
    assert (await client.get("/v1/credits/statement", status=400, cursor="x"))["agent_code"] == "E001"


async def test_a_tenant_sees_its_own_and_puts_nothing_in(site: Site, client: Client) -> None:
    for tenant, amount in (("acme", 3), ("other", 7)):
        await client.post("/v1/credits/deposits", {"tenant": tenant, "credits": amount}, status=201)
    async with client_of(site, await key_for(site, "admin", tenant="acme")) as caller:
        assert (await caller.get("/v1/credits"))["available"] == 3 * _CREDIT
        await caller.get("/v1/credits", status=403, tenant="other")
        await caller.get("/v1/credits/statement", status=403, tenant="other")
        await caller.post("/v1/credits/deposits", {"tenant": "acme", "credits": 9}, status=403)
    async with client_of(site, await key_for(site, "operator")) as caller:
        assert (await caller.get("/v1/credits", tenant="other"))["available"] == 7 * _CREDIT
        await caller.post("/v1/credits/deposits", {"tenant": "acme", "credits": 9}, status=403)


async def test_a_budget_is_set_shown_changed_and_taken_away(client: Client) -> None:
    assert await client.get("/v1/credits/budgets") == {"items": [], "next_cursor": None}
    await client.post("/v1/credits/deposits", {"tenant": "default", "credits": 50}, status=201)
    await client.post("/v1/tasks", {"prompt": "go"}, status=202)
    body = {"tenant": "default", "credits": 40}
    whole = await client.put("/v1/credits/budgets/total", body)
    # What was held before it was set counts.
    assert whole == {
        "tenant": "default", "period": "total", "most": 40 * _CREDIT, "held": 11 * _CREDIT, "spent": 0,
        "left": 29 * _CREDIT, "renews_ms": None,
    }  # fmt: skip
    day = await client.put("/v1/credits/budgets/day", {**body, "credits": 0})
    assert day["left"] == 0
    assert day["renews_ms"] % 86_400_000 == 0
    day = await client.put("/v1/credits/budgets/day", {**body, "credits": 30})
    assert (await client.get("/v1/credits/budgets"))["items"] == [day, whole]
    await client.delete("/v1/credits/budgets/day", status=204)
    assert (await client.get("/v1/credits/budgets"))["items"] == [whole]
    assert (await client.delete("/v1/credits/budgets/day", status=404))["code"] == "record-missing"
    assert (await client.put("/v1/credits/budgets/week", body, status=400))["field"] == "period"
    assert (await client.put("/v1/credits/budgets/day", {**body, "credits": -1}, status=400))["field"] == "credits"


async def test_a_task_that_a_budget_has_no_room_for_is_refused(client: Client) -> None:
    await client.post("/v1/credits/deposits", {"tenant": "default", "credits": 50}, status=201)
    await client.put("/v1/credits/budgets/total", {"tenant": "default", "credits": 20})
    first = await client.post("/v1/tasks", {"prompt": "go"}, status=202)
    refused = await client.post("/v1/tasks", {"prompt": "go"}, status=402)
    assert (refused["code"], refused["agent_code"], refused["retryable"]) == ("budget-spent", "E003", False)
    assert (refused["required"], refused["available"]) == (11 * _CREDIT, 9 * _CREDIT)
    assert refused["user_facing_message"] == "The whole budget has too little left for this; it does not renew."
    assert (await client.get("/v1/credits"))["held"] == 11 * _CREDIT
    await client.post(f"/v1/runs/{first['run_id']}/cancel")
    await client.post("/v1/tasks", {"prompt": "go"}, status=202)


async def test_a_tenant_sees_its_own_budgets_and_sets_none(site: Site, client: Client) -> None:
    for tenant, amount in (("acme", 3), ("other", 7)):
        await client.put("/v1/credits/budgets/month", {"tenant": tenant, "credits": amount})
    async with client_of(site, await key_for(site, "admin", tenant="acme")) as caller:
        [own] = (await caller.get("/v1/credits/budgets"))["items"]
        assert (own["tenant"], own["most"]) == ("acme", 3 * _CREDIT)
        await caller.get("/v1/credits/budgets", status=403, tenant="other")
        await caller.put("/v1/credits/budgets/month", {"tenant": "acme", "credits": 9}, status=403)
        await caller.delete("/v1/credits/budgets/month", status=403)
    async with client_of(site, await key_for(site, "operator")) as caller:
        assert [one["most"] for one in (await caller.get("/v1/credits/budgets", tenant="other"))["items"]] == [
            7 * _CREDIT
        ]
        await caller.put("/v1/credits/budgets/month", {"tenant": "acme", "credits": 9}, status=403)
