"""A caller with a tenant gets nothing of another: not by list, id, event or error, and changes nothing of it."""

import asyncio
import base64
import contextlib
import json
import re
import uuid
import zlib
from typing import Any

import httpx
import msgspec
import pytest

from bullpen.errors import BadOption
from bullpen.job.record import Failure, JobRef
from bullpen.job.verdicts import Completed, Failed, Settlement
from bullpen.records.model.reading import Lag
from bullpen.server.site import Site
from bullpen.server.streams.cursors import Cursors
from bullpen.stores.base import EventPage, Store
from tests.server.asgi import stream
from tests.server.calling import BASE, Client, client_of, key_for
from tests.server.calls import CALLS, PUBLIC, Call, all_routes
from tests.server.conftest import Eventually
from tests.server.world import MARK, World, make_world


@pytest.fixture
async def world(site: Site, eventually: Eventually) -> World:
    world = await make_world(site)

    async def is_known() -> bool:
        counts = await site.records.jobs.counts()
        site.feeder.nudge()
        is_filled = await site.records.jobs.behind_ms() is not None
        return is_filled and sum(counts.get("mail", {}).values()) >= 4 and bool(counts.get("beta-only"))

    await eventually(is_known)
    return world


async def _call(http: httpx.AsyncClient, method: str, path: str, call: Call, ids: dict[str, str]) -> httpx.Response:
    known = {"ID": json.dumps(ids.get(_id_in(path), ids["job_id"])), "LEASE": ids["lease"], "QUEUE": '"remote"'}
    text = json.dumps(call.body)
    for word, value in known.items():
        text = text.replace(f'"{word}"', value)
    body = json.loads(text)
    sent: dict[str, Any] = {} if body is None else {"json": body}
    return await http.request(method, path.format(**ids), params=call.query, **sent)


_IDS = ("job_id", "schedule", "key_id", "user_id", "alert_id", "webhook_id", "run_id", "task_id", "file_id")
_DIFFERS = re.compile(r'\b\d{13}\b|(?<="id":")\d+(?=")|(?<="behind_ms":)\d+')
"""Times, the numbers of new jobs, and by how much the read model is behind; never complete is told apart."""


_LEASE_OF = re.compile(r"remote[/:](their-held|no-such-job)")
"""The job whose lease the caller has named."""


def _id_in(path: str) -> str:
    return "alert_id" if "alerts" in path else "job_id"


def _without(answer: httpx.Response, ids: dict[str, str]) -> str:
    """What was said, without what the caller has said itself and what differs each time."""
    text = answer.text.replace(answer.headers["x-request-id"], "")
    for name, value in sorted(ids.items(), key=lambda one: -len(one[1])):
        text = text.replace(value, f"<{name}>")
    return _DIFFERS.sub("<differs>", text)


async def test_every_route_is_known(world: World) -> None:
    """Whoever adds a route says here how it is called, or this fails."""
    assert all_routes(world.app) == CALLS.keys() | PUBLIC


async def test_nothing_is_seen_and_nothing_is_changed_by_any_route(world: World) -> None:
    """As the mightiest caller that has a tenant, asking for the other's things by their very ids."""
    headers = await key_for(world.site, "admin", tenant="alpha")
    before = await world.fingerprint()
    transport = httpx.ASGITransport(app=world.app, raise_app_exceptions=False)
    async with httpx.AsyncClient(transport=transport, base_url=BASE, headers=headers, timeout=30) as http:
        # The audit log first: later it tells what the caller itself has tried.
        for (method, path), call in sorted(CALLS.items(), key=lambda one: "audit" not in one[0][1]):
            if call.streams:
                continue
            answer = await _call(http, method, path, call, world.theirs)
            assert answer.status_code < 500, (method, path, answer.text)
            if call.whole:
                assert (answer.status_code, answer.json()["code"]) == (403, "forbidden"), (method, path)
            if MARK in str(call.body):
                assert answer.status_code == 403, (method, path)
            said = _without(answer, {name: value for name, value in world.theirs.items() if f"{{{name}}}" in path})
            assert MARK not in said, f"{method} {path}: {said}"
            if "LEASE" in str(call.body) or any(f"{{{name}}}" in path for name in _IDS):
                never = await _call(http, method, path, call, world.nobodys)
                assert answer.status_code == never.status_code, (method, path)
                named = {name: value for name, value in world.nobodys.items() if f"{{{name}}}" in path}
                said = _LEASE_OF.sub("", said)
                assert said == _LEASE_OF.sub("", _without(never, named)), (method, path)
            assert await world.fingerprint() == before, f"{method} {path} has changed something"


async def test_the_others_queue_is_as_one_that_never_was(world: World) -> None:
    """By each route that names a queue, and by events of one."""
    headers = await key_for(world.site, "admin", tenant="alpha")
    paths = [path for (method, path), call in CALLS.items() if method == "GET" and "{queue}" in path and not call.whole]
    paths += [f"/v1/{of}?queue={{queue}}" for of in ("events/poll", "jobs", "failures", "dead-letters", "schedules")]
    paths += ["/v1/events/poll?queue={queue}&after=", "/v1/queues/{queue}/groups/alpha"]
    transport = httpx.ASGITransport(app=world.app, raise_app_exceptions=False)
    async with httpx.AsyncClient(transport=transport, base_url=BASE, headers=headers, timeout=30) as http:
        for path in paths:
            said = []
            for queue in ("beta-only", "no-such-queue"):
                answer = await http.get(path.format(**world.nobodys | {"queue": queue}))
                said.append((answer.status_code, _without(answer, {"queue": queue})))
            assert said[0] == said[1], path


@pytest.mark.parametrize("scope", [{"tenant": "alpha"}, {"queues": ["mail"]}])
async def test_how_far_behind_a_queue_is_does_not_tell_that_it_exists(
    world: World, monkeypatch: pytest.MonkeyPatch, scope: dict[str, Any]
) -> None:
    """Null, 0 or a number: as for all queues."""
    lags = {"mail": Lag(7, False), "beta-only": Lag(None, True)}

    async def lag() -> dict[str, Lag]:
        return lags

    monkeypatch.setattr(world.site.records.jobs, "lag", lag)
    async with client_of(world.site, await key_for(world.site, "operator", **scope)) as client:
        for path in ("jobs", "failures", "dead-letters"):
            for known, of_all in ((None, None), (9, 9)):
                lags["beta-only"] = Lag(known, known is None)
                told = [(await client.get(f"/v1/{path}", queue=queue))["behind_ms"] for queue in ("beta-only", "none")]
                assert told == [of_all, of_all], path
            assert (await client.get("/v1/failures", queue="mail"))["behind_ms"] == 7


async def test_a_tenant_sees_no_limits_of_all_tenants(world: World) -> None:
    async with client_of(world.site, await key_for(world.site, "admin", tenant="alpha")) as client:
        assert (await client.get("/v1/queues/mail"))["limits"] is None


async def test_a_tenant_makes_a_user_whose_name_another_has(world: World) -> None:
    async with client_of(world.site, await key_for(world.site, "admin", tenant="alpha")) as client:
        user = {"name": "beta-bob", "password": "another password", "role": "operator"}
        made = await client.post("/v1/users", user, status=201)
        assert (made["name"], made["tenant"]) == ("alpha/beta-bob", "alpha")
        assert (await client.post("/v1/users", user, status=409))["code"] == "record-taken"
        login = {"name": "alpha/beta-bob", "password": "another password"}
        assert (await client.post("/v1/login", login))["tenant"] == "alpha"
    async with client_of(world.site, await key_for(world.site, "admin")) as client:
        user = {"name": "alpha/eve", "password": "another password", "role": "operator"}
        for tenant in (None, "beta"):
            problem = await client.post("/v1/users", user | {"tenant": tenant}, status=422)
            assert problem["field"] == "name", "it would be in the way of alpha's own"


async def test_the_first_job_of_a_tenant_is_heard_by_who_waited_for_it(world: World) -> None:
    """Though its cursor told nothing of the queue before."""
    async with client_of(world.site, await key_for(world.site, "operator", tenant="alpha")) as client:
        before = await client.get("/v1/events/poll", queue="beta-only")
        assert (before["items"], before["cursor"], before["gap"]) == ([], "", False)
        await client.post("/v1/queues/beta-only/jobs", {"name": "work"}, status=201)
        heard = await client.get("/v1/events/poll", queue="beta-only", after=before["cursor"], wait_s=30)
        assert {item["tenant"] for item in heard["items"]} == {"alpha"}
        assert heard["cursor"]
        again = await client.get("/v1/events/poll", queue="beta-only", after=heard["cursor"])
        assert again["items"] == []


async def test_a_cursor_of_all_queues_tells_nothing_of_others(world: World) -> None:
    """Neither how many queues there are nor how busy: what can be read of it is noise, as long as before."""
    async with client_of(world.site, await key_for(world.site, "operator", tenant="alpha")) as client:
        before = (await client.get("/v1/events/poll"))["cursor"]
        for n in range(20):
            await world.site.queue(f"beta-{n}").add("work", tenant="beta")
        while "beta-19" not in await world.site.standing.names():
            world.site.feeder.nudge()
            await asyncio.sleep(0.02)
        after = (await client.get("/v1/events/poll", after=before))["cursor"]
        assert len(after) == len(before)
        plain = base64.urlsafe_b64decode(before)
        assert b"mail" not in plain
        assert len(zlib.compress(plain)) > len(plain), "nothing repeats in it"
        await client.post("/v1/queues/mail/jobs", {"name": "work"}, status=201)
        heard = await client.get("/v1/events/poll", after=after, wait_s=30)
        assert {(item["queue"], item["tenant"]) for item in heard["items"]} == {("mail", "alpha")}
        for wrong in (before[:-8], "nonsense", ".", "ä"):
            assert (await client.get("/v1/events/poll", after=wrong, status=422))["field"] == "after"


async def test_one_installation_reads_no_cursor_of_another() -> None:
    mine, theirs = Cursors(b"mine"), Cursors(b"theirs")
    cursor = mine.write({"mail": "7"})
    assert mine.read(cursor, ["mail", "reports"]) == {"mail": "7"}
    with pytest.raises(BadOption):
        theirs.read(cursor, ["mail"])


async def test_no_filter_leads_elsewhere(world: World) -> None:
    headers = await key_for(world.site, "admin", tenant="alpha")
    transport = httpx.ASGITransport(app=world.app)
    async with httpx.AsyncClient(transport=transport, base_url=BASE, headers=headers) as http:
        for path in ("/v1/jobs", "/v1/dead-letters", "/v1/failures", "/v1/audit", "/v1/runs", "/v1/credits"):
            for query in ("tenant=beta", "q=beta", "workspace=beta-team", "tag=beta-tag", "name=beta-work"):
                answer = await http.get(f"{path}?{query}")
                assert MARK not in answer.text
                assert answer.status_code == (403 if query.startswith("tenant") else 200)


@pytest.mark.parametrize("scope", [{"tenant": "alpha"}, {"queues": ["mail"]}])
async def test_what_stands_below_is_reached_by_those_who_see_it(world: World, scope: dict[str, Any]) -> None:
    """Cancelling or removing a job does not reach children in other queues, or of other tenants."""
    queue, store = world.site.queue("mail"), world.site.store
    below = world.site.queue("beta-only").prepare("work", id="below", tenant="beta", delay=60)
    between = world.site.queue("mail").prepare("work", id="between", tenant="alpha")
    top = queue.prepare("work", id="top", tenant="alpha")
    between = msgspec.structs.replace(between, children=(below,))
    await queue.add_prepared(msgspec.structs.replace(top, children=(between,)))
    before = [await store.job(JobRef(*ref)) for ref in (("mail", "top"), ("mail", "between"), ("beta-only", "below"))]
    acts = {"action": "remove", "jobs": [{"queue": "mail", "id": "top"}]}
    async with client_of(world.site, await key_for(world.site, "admin", **scope)) as client:
        refused = await client.post("/v1/queues/mail/jobs/top/cancel", {"children": True}, status=403)
        assert refused["code"] == "forbidden"
        assert (await client.delete("/v1/queues/mail/jobs/top", status=403))["code"] == "forbidden"
        assert (await client.post("/v1/jobs/actions", acts))["items"][0]["outcome"] == "forbidden"
        assert [await store.job(job.ref) for job in before] == before
        await client.post("/v1/queues/mail/jobs/top/cancel", {})
        purged = await client.post("/v1/dead-letters/purge", {"jobs": acts["jobs"]})
        assert (purged["done"], purged["passed_over"]) == (0, 1)
        assert await store.job(JobRef("beta-only", "below")) == before[2]
        await store.remove(JobRef("beta-only", "below"))
        await client.delete("/v1/queues/mail/jobs/top", status=204)


async def test_a_name_that_another_tenant_has_is_as_good_as_any(world: World) -> None:
    """Two tenants have a schedule of the same name, and neither can tell."""
    alpha = await key_for(world.site, "operator", tenant="alpha")
    path = "/v1/queues/mail/schedules/their-schedule"
    async with client_of(world.site, alpha) as client:
        made = await client.put(path, {"name": "tick", "every": 60})
        assert (made["id"], made["tenant"], made["every_ms"]) == ("their-schedule", "alpha", 60_000)
        assert await client.put(path, {"name": "tick", "every": 60}) == made
        assert (await client.get(path))["id"] == "their-schedule"
        assert [one["id"] for one in (await client.get("/v1/schedules"))["items"]] == ["their-schedule"]
        ran = await client.post(f"{path}/run", status=201)
        assert (await client.get(f"/v1/queues/mail/jobs/{ran['id']}"))["schedule"] == "their-schedule"
        assert (await client.post(f"{path}/pause"))["paused"]
    assert not (await world.site.store.schedule("mail", "their-schedule")).paused
    async with client_of(world.site, await key_for(world.site, "operator")) as client:
        found = [(one["id"], one["tenant"]) for one in (await client.get("/v1/schedules", queue="mail"))["items"]]
    assert len({name for name, _ in found}) == 2
    assert {tenant for _, tenant in found} == {"alpha", "beta"}
    async with client_of(world.site, alpha) as client:
        await client.delete(path, status=204)
        assert (await client.get(path, status=404))["code"] == "schedule-missing"
    assert await world.site.store.schedule("mail", "their-schedule")


async def test_a_schedule_that_was_made_for_a_tenant_is_the_tenants(world: World) -> None:
    queue = world.site.queue("mail")
    await queue.schedules.upsert("made-for-it", queue.prepare("tick", tenant="alpha"), every=3600)
    async with client_of(world.site, await key_for(world.site, "operator", tenant="alpha")) as client:
        changed = await client.put("/v1/queues/mail/schedules/made-for-it", {"name": "tick", "every": 60})
        assert changed["every_ms"] == 60_000
    assert (await world.site.store.schedule("mail", "made-for-it")).schedule.timing.every_ms == 60_000


async def test_a_subject_is_a_tenants_own(world: World) -> None:
    """Whoever names another tenant's subject neither meets its job nor replaces it."""
    added = {}
    for tenant in ("alpha", "beta"):
        async with client_of(world.site, await key_for(world.site, "producer", tenant=tenant)) as client:
            options = {"dedup": {"id": "order-1", "ttl": 60, "replace": True}, "delay": 60}
            first = await client.post("/v1/queues/mail/jobs", {"name": "work", "options": options}, status=201)
            again = await client.post("/v1/queues/mail/jobs", {"name": "work", "options": options}, status=201)
            assert (first["outcome"], again["outcome"]) == ("added", "replaced")
            added[tenant] = again["id"]
    async with client_of(world.site, await key_for(world.site, "producer", tenant="alpha")) as client:
        assert (await client.get(f"/v1/queues/mail/jobs/{added['alpha']}"))["state"] == "delayed"


async def test_an_id_is_a_tenants_own(world: World) -> None:
    """Two tenants choose one id: both jobs are there, and neither can tell of the other, not even once it is gone."""
    added, options = {}, {"id": "order:7:paid", "delay": 60}
    body = {"name": "work", "options": options}
    for tenant in ("alpha", "beta"):
        async with client_of(world.site, await key_for(world.site, "operator", tenant=tenant)) as client:
            first = await client.post("/v1/queues/mail/jobs", body, status=201)
            again = await client.post("/v1/queues/mail/jobs", body, status=201)
            assert (first["outcome"], again["outcome"], again["id"]) == ("added", "duplicate", first["id"])
            added[tenant] = first["id"]
            many = await client.post("/v1/queues/mail/jobs/bulk", {"jobs": [body, body]}, status=201)
            assert [one["id"] for one in many["items"]] == [first["id"]] * 2
            flow = {"queue": "mail", **body, "options": {"id": "top"}, "children": [{"queue": "mail", **body}]}
            assert (await client.post("/v1/flows", flow, status=201))["outcome"] == "added"
    assert len(set(added.values())) == 2
    async with client_of(world.site, await key_for(world.site, "operator", tenant="alpha")) as client:
        assert (await client.get("/v1/queues/mail/jobs/order:7:paid"))["id"] == added["alpha"]
        assert await client.get(f"/v1/queues/mail/jobs/{added['beta']}", status=404)
        await client.post("/v1/queues/mail/jobs/order:7:paid/signal", {"name": "go"})
        acts = {"action": "promote", "jobs": [{"queue": "mail", "id": one} for one in ("order:7:paid", added["beta"])]}
        outcomes = (await client.post("/v1/jobs/actions", acts))["items"]
        assert [one["outcome"] for one in outcomes] == ["done", "job-missing"]
        await client.post("/v1/queues/mail/jobs/order:7:paid/cancel", {})
        too_long = {"name": "work", "options": {"id": "x" * 288}}
        refused = await client.post("/v1/queues/mail/jobs", too_long, status=422)
        assert (refused["code"], "287" in refused["detail"]) == ("bad-id", True)
    beta = await world.site.store.job(JobRef("mail", added["beta"]))
    assert (beta.state, beta.tenant) == ("delayed", "beta")


@pytest.mark.parametrize("tenant", ["alpha", "beta"])
async def test_events_of_a_job_are_heard_by_the_id_that_its_tenant_chose(world: World, tenant: str) -> None:
    """Or by the one with the mark, which the add answered; never those of another tenant's job of that id."""
    body = {"name": "work", "options": {"id": "order:8:paid"}}
    added = {}
    async with (
        client_of(world.site, await key_for(world.site, "operator", tenant="alpha")) as alpha,
        client_of(world.site, await key_for(world.site, "operator", tenant="beta")) as beta,
    ):
        clients = {"alpha": alpha, "beta": beta}
        start = (await clients[tenant].get("/v1/events/poll", queue="mail"))["cursor"]
        for name, client in clients.items():
            added[name] = (await client.post("/v1/queues/mail/jobs", body, status=201))["id"]
        for said in ("order:8:paid", added[tenant]):
            heard = await clients[tenant].get("/v1/events/poll", queue="mail", job=said, after=start, wait_s="10")
            assert {one["job_id"] for one in heard["items"]} == {added[tenant]}


async def test_a_job_that_was_added_for_a_tenant_is_found_by_its_plain_id(world: World) -> None:
    await world.site.queue("mail").add("work", id="plain", tenant="alpha")
    await world.site.queue("mail").add("work", id="theirs", tenant="beta")
    async with client_of(world.site, await key_for(world.site, "operator", tenant="alpha")) as client:
        assert (await client.get("/v1/queues/mail/jobs/plain"))["id"] == "plain"
        added = await client.post("/v1/queues/mail/jobs", {"name": "work", "options": {"id": "theirs"}}, status=201)
        assert added["outcome"] == "added"


_STREAMS: list[tuple[str, dict[str, str], bool]] = [
    ("/v1/events", {"queue": "mail"}, False),
    ("/v1/events", {}, False),
    ("/v1/events", {"queue": "mail", "after": ""}, False),
    ("/v1/events/ws", {}, True),
    ("/v1/events/ws", {"queue": "mail"}, True),
    ("/v1/live", {}, False),
]


async def test_no_stream_tells_of_another(world: World) -> None:
    assert {path for path, _, _ in _STREAMS} == {
        path for (_, path), call in CALLS.items() if call.streams and "{" not in path
    }
    headers = await key_for(world.site, "admin", tenant="alpha")
    queue, store = world.site.queue("mail"), world.site.store
    async with contextlib.AsyncExitStack() as open_streams:
        heard = [
            await open_streams.enter_async_context(stream(world.app, path, headers, query, socket=socket))
            for path, query, socket in _STREAMS
        ]
        assert {await one.begun() for one in heard} == {101, 200}
        for one, (_, _, is_socket) in zip(heard, _STREAMS, strict=True):
            if not is_socket:
                await one.until("event: beat\n")
        await queue.add("beta-more", {"n": "beta"}, id="their-other", tenant="beta")
        await store.pause("mail")
        await store.resume("mail")
        claimed = await store.claim({"mail": 9}, worker="w", lease_ms=60_000, request="claim")
        done = [Settlement(job.lease, Completed(b'"beta"')) for job in claimed.jobs if job.job.tenant == "beta"]
        await store.settle(done, request="settle")
        await queue.add("alpha-more", id="own-other", tenant="alpha")
        for one in heard:
            said = await one.until("own-other")
            assert MARK not in said
            assert "their-other" not in said


async def test_a_gap_is_told_in_queues_of_ones_own_only(world: World) -> None:
    """Nobody learns of a queue because its log ran over."""
    headers = await key_for(world.site, "admin", tenant="alpha")
    streams = [*_STREAMS, ("/v1/events", {"queue": "beta-only", "after": ""}, False)]
    async with contextlib.AsyncExitStack() as opened:
        heard = [
            await opened.enter_async_context(stream(world.app, path, headers, query, socket=socket))
            for path, query, socket in streams
        ]
        assert {await one.begun() for one in heard} == {101, 200}
        for one, (_, _, is_socket) in zip(heard, streams, strict=True):
            if not is_socket:
                await one.until("event: beat\n")
        for queue in ("beta-only", "mail"):
            end = (await world.site.store.events(queue, after=None, limit=1, timeout_ms=0)).cursor
            world.site.hub._channels[queue]._take(EventPage((), end, gap=True))
        for one, (path, query, _) in zip(heard, streams, strict=True):
            if "beta-only" not in query.values():
                assert MARK not in await one.until('"mail"' if path == "/v1/live" else '"gap"')
        await world.site.queue("beta-only").add("alpha-work", id="own-first", tenant="alpha")
        for one, (_, query, _) in zip(heard, streams, strict=True):
            if query.get("queue") == "beta-only":
                assert "gap" not in await one.until("own-first")


async def test_a_cursor_leads_to_no_gap_of_anothers_queue(world: World) -> None:
    """Queues that were begun anew since: of those where the tenant has something, the gap is told."""
    store = world.site.store
    async with client_of(world.site, await key_for(world.site, "operator", tenant="alpha")) as client:
        for queue, tenant in (("beta-only", "beta"), ("mail", "alpha")):
            before = await client.get("/v1/events/poll")
            await world.site.queue(queue).add("work", tenant=tenant)
            await store.obliterate(queue, force=True)
            await world.site.queue(queue).add("work", tenant=tenant)
            heard = await client.get("/v1/events/poll", after=before["cursor"])
            assert bool(heard["items"]) == heard["gap"] == (queue == "mail"), queue


async def test_a_stream_of_the_others_job_says_nothing(world: World) -> None:
    headers = await key_for(world.site, "admin", tenant="alpha")
    async with stream(world.app, "/v1/events", headers, {"queue": "mail", "job": "their-job", "after": ""}) as heard:
        assert await heard.begun() == 200
        await world.site.store.cancel(JobRef("mail", "their-job"), reason="beta")
        await asyncio.sleep(0.3)  # time in which something wrong could be said
        assert "event:" not in heard.text.replace("event: beat\n", "")


@pytest.mark.parametrize("path, socket", [("/v1/runs/{run_id}/stream", False), ("/v1/runs/{run_id}/ws", True)])
async def test_a_stream_of_the_others_run_is_as_one_that_never_was(world: World, path: str, socket: bool) -> None:
    assert (("WS" if socket else "GET"), path) in CALLS
    headers = await key_for(world.site, "admin", tenant="alpha")
    said = []
    for ids in (world.theirs, world.nobodys):
        async with stream(world.app, path.format(**ids), headers, socket=socket) as heard:
            assert await heard.begun() == 404
            problem = json.loads(await heard.until("}"))
        said.append({**problem, "request_id": "", "detail": problem["detail"].replace(ids["run_id"], "")})
    assert said[0] == said[1]
    assert world.site.lookout.watched == 0


async def test_a_relative_of_another_tenant_is_not_told(world: World) -> None:
    """Neither a parent, nor a child with which the job failed: not by the job, a list, a reason or an event."""
    queue, store = world.site.queue("mail"), world.site.store
    for parent, child in (("alpha", "beta"), ("beta", "alpha")):
        below = queue.prepare("work", id=f"{child}-below-{parent}", tenant=child, on_failure="fail-parent")
        top = queue.prepare("work", id=f"{parent}-over-{child}", tenant=parent)
        await queue.add_prepared(msgspec.structs.replace(top, children=(below,)))
    await _fail_all(store, "mail")
    for tenant, other in (("alpha", "beta"), ("beta", "alpha")):
        async with client_of(world.site, await key_for(world.site, "operator", tenant=tenant)) as client:
            below = await client.get(f"/v1/queues/mail/jobs/{tenant}-below-{other}")
            assert below["parent"] is None
            over = await client.get(f"/v1/queues/mail/jobs/{tenant}-over-{other}")
            assert (over["failure"]["message"], over["failure"]["kind"]) == ("child failed", "child-failed")
            assert f"{other}-below" not in json.dumps(over)
    async with client_of(world.site, await key_for(world.site, "operator")) as client:
        assert (await client.get("/v1/queues/mail/jobs/alpha-below-beta"))["parent"]["id"] == "beta-over-alpha"


async def test_a_relative_in_a_queue_of_others_is_not_told(world: World, eventually: Eventually) -> None:
    """To a key for some queues; one without knows them all."""
    queue, store = world.site.queue("mail"), world.site.store
    below = world.site.queue("parts").prepare("work", id="part", on_failure="fail-parent")
    await queue.add_prepared(msgspec.structs.replace(queue.prepare("work", id="top"), children=(below,)))
    start = (await store.events("mail", after=None, limit=1, timeout_ms=0)).cursor
    for name in ("parts", "mail"):
        await _fail_all(store, name)
    for queues in ({"queues": ["mail"]}, {"queues": ["parts"]}, {}):
        async with client_of(world.site, await key_for(world.site, "operator", **queues)) as client:

            async def is_listed(client: Client = client) -> bool:
                return any("child" in (job["error"] or "") for job in (await client.get("/v1/jobs"))["items"])

            if queues == {"queues": ["parts"]}:
                assert (await client.get("/v1/queues/parts/jobs/part"))["parent"] is None
                continue
            await eventually(is_listed)
            polled = await client.get("/v1/events/poll", queue="mail", after=start)
            listed = [await client.get(f"/v1/{path}") for path in ("jobs", "dead-letters", "failures")]
            for answer in (polled, *listed, await client.get("/v1/queues/mail/jobs/top")):
                said = json.dumps(answer)
                assert "child" in said
                assert ("part" in said) == (not queues), said


async def test_a_remote_worker_is_told_no_parent_of_another_tenant(world: World) -> None:
    queue = world.site.queue("built")
    for parent in ("alpha", "beta"):
        below = queue.prepare("work", id=f"below-{parent}", tenant="alpha", group="alpha")
        above = world.site.queue("parents")
        top = above.prepare("work", id=f"over-{parent}", tenant=parent)
        await above.add_prepared(msgspec.structs.replace(top, children=(below,)))
    ask = {"worker": "w", "queues": {"built": 2}, "lease_ms": 60_000, "request": "one", "wait_s": 0}
    async with client_of(world.site, await key_for(world.site, "worker", tenant="alpha")) as client:
        jobs = (await client.post("/v1/remote/claim", ask))["jobs"]
    parents = {job["id"]: (job.get("parent") or {}).get("id") for job in jobs}
    assert parents == {"below-alpha": "over-alpha", "below-beta": None}


async def _fail_all(store: Store, queue: str) -> None:
    """All that can run, and what can run then."""
    while claimed := (await store.claim({queue: 10}, worker="w", lease_ms=60_000, request=uuid.uuid4().hex)).jobs:
        failed = [Settlement(one.lease, Failed(one.job.doomed or Failure("boom"))) for one in claimed]
        await store.settle(failed, request=uuid.uuid4().hex)
