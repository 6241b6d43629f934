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
