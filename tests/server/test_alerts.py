"""Alerts over HTTP: whose they are, and what is shown of their channel."""

from typing import Any

import pytest

from bullpen.server.site import Site
from tests.server.calling import Client, client_of, key_for, only_on_files

pytestmark = only_on_files

_SLACK = "https://hooks.slack.com/services/T000/B000/secret"
_SHOWN = "https://hooks.slack.com/…"
_ALERT = {"name": "a", "condition": {"failed": 1}, "channel": {"slack": _SLACK}}


async def test_the_address_of_slack_is_shown_in_part(site: Site, client: Client) -> None:
    made = await client.put("/v1/alerts", _ALERT)
    assert (made["channel"], made["tells"]) == ({"slack": _SHOWN}, True)
    assert (await client.get("/v1/alerts"))["items"] == [made]
    assert (await site.records.alerts.get(made["id"])).channel == {"slack": _SLACK}
    again = _ALERT | {"id": made["id"], "name": "b", "channel": {"slack": _SHOWN}}
    assert (await client.put("/v1/alerts", again))["name"] == "b"
    assert (await site.records.alerts.get(made["id"])).channel == {"slack": _SLACK}


@pytest.mark.parametrize("url", [_SHOWN, "fernet:abc"])
async def test_what_is_no_address_of_slack_is_refused(client: Client, url: str) -> None:
    problem = await client.put("/v1/alerts", _ALERT | {"channel": {"slack": url}}, status=422)
    assert problem["field"] == "channel"


async def test_they_are_of_the_callers_queues(site: Site) -> None:
    async with client_of(site, await key_for(site, "admin")) as client:
        whole = await client.put("/v1/alerts", _ALERT)
    async with client_of(site, await key_for(site, "operator", queues=["mail"])) as client:
        assert (await client.get("/v1/alerts"))["items"] == []
        await client.put("/v1/alerts", _ALERT, status=403)
        await client.put("/v1/alerts", _ALERT | {"condition": {"failed": 1, "queue": "secret"}}, status=403)
        own = await client.put("/v1/alerts", _ALERT | {"condition": {"failed": 1, "queue": "mail"}})
        assert [one["id"] for one in (await client.get("/v1/alerts"))["items"]] == [own["id"]]
        await client.delete(f"/v1/alerts/{whole['id']}", status=404)
        await client.delete(f"/v1/alerts/{own['id']}", status=204)


async def test_an_operator_changes_those_of_tenants(site: Site) -> None:
    made = await site.records.alerts.save("a", condition={"failed": 1}, channel={}, tenant="acme")
    async with client_of(site, await key_for(site, "operator")) as client:
        changed = await client.put(
            "/v1/alerts", {"id": made.id, "name": "b", "condition": {"failed": 2}, "channel": {}}
        )
        assert (changed["name"], changed["tenant"]) == ("b", "acme")
        await client.delete(f"/v1/alerts/{made.id}", status=204)


@pytest.mark.parametrize(
    "condition, said",
    [
        ({}, "failed"),
        ({"failed": 0}, "failed"),
        ({"failed": 1, "minutes": "5"}, "minutes"),
        ({"failed": 1, "queue": 7}, "queue"),
        ({"failed": 1, "name": ""}, "name"),
        ({"failed": 1, "severity": "loud"}, "severity"),
        ({"failed": 1, "job_type": "welcome"}, "job_type"),
    ],
    ids=str,
)
async def test_a_condition_that_would_tell_nobody_is_refused(
    client: Client, condition: dict[str, Any], said: str
) -> None:
    """Nobody finds out otherwise, until the alert is missed."""
    problem = await client.put("/v1/alerts", _ALERT | {"condition": condition}, status=422)
    assert (problem["code"], problem["field"], said in problem["detail"]) == ("bad-option", "condition", True)
    assert (await client.get("/v1/alerts"))["items"] == []


async def test_one_that_tells_nobody_may_be_turned_off(site: Site, client: Client) -> None:
    """It was kept before conditions were looked at."""
    old = await site.records.alerts.save("old", condition={"on": "it"}, channel={})
    body = {"id": old.id, "name": "old", "condition": {"on": "it"}, "channel": {}}
    await client.put("/v1/alerts", body, status=422)
    assert (await client.put("/v1/alerts", body | {"is_enabled": False}))["is_enabled"] is False
