"""Webhooks over the API: made, tried, delivered; each caller sees its own, and nobody sees a secret."""

import time
from collections.abc import AsyncIterator
from typing import Any

import pytest

from bullpen import Failure
from bullpen.builtin import signing
from bullpen.builtin.messages import QUEUE
from bullpen.job.verdicts import Failed, Settlement
from bullpen.records.records import Records
from bullpen.server.settings import ServerSettings
from bullpen.server.site import Site, opened_site
from tests.builtin.receiver import Receiver, receiving
from tests.server.calling import Client, client_of, key_for, only_on_files
from tests.server.conftest import Eventually
from tests.support.places import Place

_BODY = {"name": "ops", "url": "https://hooks.example/in"}


@pytest.fixture(autouse=True)
def _may_call_this_machine(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("BULLPEN_OUTGOING_ALLOW", "127.0.0.1")


@pytest.fixture
async def receiver() -> AsyncIterator[Receiver]:
    async with receiving() as receiver:
        yield receiver


async def _fail_one(site: Site, **options: Any) -> str:
    job = await site.queue("mail").add("work", {"card": "4711"}, **options)
    site.feeder.nudge()
    claimed = await site.store.claim({"mail": 1}, worker="w", lease_ms=60_000, request=f"claim {job.id}")
    verdict = Failed(Failure("no luck"))
    await site.store.settle([Settlement(one.lease, verdict) for one in claimed.jobs], request=f"settle {job.id}")
    return job.id


async def test_from_a_failed_job_to_its_receiver(
    client: Client, site: Site, receiver: Receiver, eventually: Eventually
) -> None:
    """All in one server, with nothing else set up."""
    made = await client.post("/v1/webhooks", _BODY | {"url": receiver.url, "kinds": ["failed"]}, status=201)
    job_id = await _fail_one(site)
    (got,) = await receiver.until(1)
    assert signing.verify(made["secret"], got.headers["x-bullpen-signature"], got.body, now_s=time.time())
    assert (got.json["kind"], got.json["job_id"], got.json["webhook"]) == ("failed", job_id, made["id"])
    assert b"4711" not in got.body

    async def is_listed() -> bool:
        items = (await client.get(f"/v1/webhooks/{made['id']}/deliveries"))["items"]
        return [item["state"] for item in items] == ["completed"]

    await eventually(is_listed)
    (row,) = (await client.get(f"/v1/webhooks/{made['id']}/deliveries"))["items"]
    assert row["id"] == got.headers["x-bullpen-delivery"]
    shown = await client.get(f"/v1/queues/{QUEUE}/jobs/{row['id']}")
    assert shown["result"]["status"] == 200
    assert made["secret"] not in str(shown)
    assert (await client.get("/v1/jobs", queue="mail", state="failed"))["items"][0]["id"] == job_id


async def test_a_trial_is_delivered_also_if_it_is_off(client: Client, receiver: Receiver) -> None:
    made = await client.post("/v1/webhooks", _BODY | {"url": receiver.url, "is_enabled": False}, status=201)
    trial = await client.post(f"/v1/webhooks/{made['id']}/test", status=202)
    (got,) = await receiver.until(1)
    assert got.headers["x-bullpen-event"] == got.json["kind"] == "test"
    assert got.headers["x-bullpen-delivery"] == trial["id"]


async def test_an_alert_is_told_in_a_text_for_slack(client: Client, site: Site, receiver: Receiver) -> None:
    alert = {
        "name": "Mail fails",
        "condition": {"failed": 1, "minutes": 60, "severity": "high"},
        "channel": {"slack": receiver.url},
    }
    await client.put("/v1/alerts", alert)
    job_id = await _fail_one(site)
    (got,) = await receiver.until(1)
    assert got.json == {"text": f"[high] Mail fails: 1 job has failed. The last: work {job_id} of mail: no luck"}


async def test_a_server_that_does_not_deliver_leaves_it_to_others(
    place: Place, address: str, receiver: Receiver, eventually: Eventually
) -> None:
    settings = ServerSettings(port=0, delivers=False)
    async with opened_site(place.store(), await Records.open(address), settings) as site, client_of(site) as client:
        made = await client.post("/v1/webhooks", _BODY | {"url": receiver.url}, status=201)
        await _fail_one(site)

        async def is_there() -> bool:
            site.feeder.nudge()
            return bool((await client.get(f"/v1/webhooks/{made['id']}/deliveries"))["items"])

        await eventually(is_there)
        (row,) = (await client.get(f"/v1/webhooks/{made['id']}/deliveries"))["items"]
        assert row["state"] == "prioritized"
        assert await site.store.workers() == []
    assert receiver.received == []


async def test_it_is_made_changed_and_removed(client: Client, site: Site) -> None:
    made = await client.post("/v1/webhooks", _BODY | {"queues": ["mail", "films"]}, status=201)
    secret = made.pop("secret")
    assert (made["kinds"], made["queues"]) == (["completed", "failed"], ["films", "mail"])
    assert (await client.get("/v1/webhooks"))["items"] == [made]
    path = f"/v1/webhooks/{made['id']}"
    assert await client.get(path) == made
    changed = await client.call("PATCH", path, json={"name": "all", "queues": None, "kinds": ["stalled"]})
    assert (changed["name"], changed["queues"], changed["kinds"]) == ("all", None, ["stalled"])
    assert (await client.call("PATCH", path, json={"is_enabled": False}))["is_enabled"] is False
    assert (await client.call("PATCH", path, json={}))["name"] == "all"
    renewed = await client.post(f"{path}/secret")
    assert await site.records.webhooks.secret(made["id"]) == renewed["secret"] != secret
    await client.delete(path, status=204)
    for method, end in (("GET", ""), ("PATCH", ""), ("DELETE", ""), ("POST", "/test"), ("POST", "/secret")):
        problem = await client.call(method, path + end, status=404, **({"json": {}} if method != "GET" else {}))
        assert problem["code"] == "record-missing"
    entries = (await client.get("/v1/audit"))["items"]
    acts = [entry["action"] for entry in entries if entry["outcome"] == "ok"]
    assert acts[::-1] == ["webhook.create", *["webhook.change"] * 3, "webhook.secret", "webhook.remove"]
    assert {entry["target"] for entry in entries} == {made["id"]}
    assert secret not in str(entries)
    assert renewed["secret"] not in str(entries)


@only_on_files
@pytest.mark.parametrize(
    "wrong, field",
    [
        ({"url": "http://10.0.0.1/"}, "url"),
        ({"url": "http://2130706434/"}, "url"),
        ({"url": "http://[::ffff:10.0.0.1]/"}, "url"),
        ({"url": "ftp://hooks.example/"}, "url"),
        ({"url": "https://ann:s3cret@hooks.example/"}, "url"),
        ({"url": "x" * 2_001}, "url"),
        ({"name": ""}, "name"),
        ({"kinds": ["finished"]}, "kinds.0"),
        ({"kinds": []}, "kinds"),
        ({"queues": []}, "queues"),
        ({"secret": "mine"}, "secret"),
    ],
)
async def test_what_is_wrong_is_refused_by_name(client: Client, wrong: dict[str, Any], field: str) -> None:
    made = await client.post("/v1/webhooks", _BODY, status=201)
    for method, path, body in (
        ("POST", "/v1/webhooks", _BODY | wrong),
        ("PATCH", f"/v1/webhooks/{made['id']}", wrong),
    ):
        problem = await client.call(method, path, status=422, json=body)
        assert problem["field"] == field
        assert "s3cret" not in str(problem)
    assert len((await client.get("/v1/webhooks"))["items"]) == 1


@only_on_files
async def test_the_same_key_makes_one_and_shows_its_secret_once(client: Client) -> None:
    once, twice = {"Idempotency-Key": "k1"}, {"Idempotency-Key": "k2"}
    first = await client.call("POST", "/v1/webhooks", status=201, json=_BODY, headers=once)
    again = await client.call("POST", "/v1/webhooks", status=201, json=_BODY, headers=once)
    assert again == first | {"secret": None}
    path = f"/v1/webhooks/{first['id']}/secret"
    assert (await client.call("POST", path, json={}, headers=twice))["secret"]
    assert await client.call("POST", path, json={}, headers=twice) == {"secret": None}


@only_on_files
async def test_who_sees_some_queues_hears_of_these_only(site: Site) -> None:
    async with client_of(site, await key_for(site, "operator", queues=["mail"])) as client:
        made = await client.post("/v1/webhooks", _BODY, status=201)
        assert made["queues"] == ["mail"]
        refused = await client.post("/v1/webhooks", _BODY | {"queues": ["mail", "films"]}, status=403)
        assert refused["code"] == "forbidden"
        path = f"/v1/webhooks/{made['id']}"
        await client.call("PATCH", path, json={"queues": ["films"]}, status=403)
        assert (await client.call("PATCH", path, json={"queues": None}))["queues"] == ["mail"]
    async with client_of(site, await key_for(site, "operator", queues=["films"])) as other:
        assert (await other.get("/v1/webhooks"))["items"] == []
        await other.get(path, status=404)
        await other.get(f"{path}/deliveries", status=404)


@only_on_files
async def test_a_tenants_webhook_is_its_own(site: Site) -> None:
    async with client_of(site, await key_for(site, "operator", tenant="acme")) as client:
        made = await client.post("/v1/webhooks", _BODY, status=201)
        assert made["tenant"] == "acme"
    async with client_of(site, await key_for(site, "operator")) as client:
        assert (await client.get("/v1/webhooks"))["items"][0]["id"] == made["id"]


@only_on_files
async def test_nobody_writes_deliveries_by_hand(client: Client) -> None:
    """They are signed as ours: whoever adds jobs could say in our name what never happened."""
    body = {"name": "deliver", "data": {"subscription": "x", "event": {"kind": "failed"}}}
    for path, sent in (
        (f"/v1/queues/{QUEUE}/jobs", body),
        (f"/v1/queues/{QUEUE}/jobs/bulk", {"jobs": [body]}),
        ("/v1/flows", body | {"queue": "mail", "children": [body | {"queue": QUEUE}]}),
    ):
        assert (await client.post(path, sent, status=403))["code"] == "forbidden"
    await client.call("PUT", f"/v1/queues/{QUEUE}/schedules/s", json=body | {"every": 60}, status=403)


def test_a_switch_that_is_neither_on_nor_off_is_refused(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("BULLPEN_SERVER_DELIVERS", "0")
    assert ServerSettings.from_environment().delivers is False
    monkeypatch.setenv("BULLPEN_SERVER_DELIVERS", "maybe")
    with pytest.raises(ValueError, match="BULLPEN_SERVER_DELIVERS: 1 or 0"):
        ServerSettings.from_environment()
