"""What the server does: adds, acts, plans, and each once."""

import asyncio
from typing import Any
from uuid import uuid4

import pytest

from bullpen import Failure
from bullpen.job.limits import GroupLimits
from bullpen.job.record import JobRef
from bullpen.job.verdicts import Failed, Parked, Retry, Settlement
from bullpen.server.site import Site
from tests.server.calling import Client, client_of, key_for, only_on_files
from tests.server.conftest import Eventually


async def _fail_all(site: Site, queue: str = "mail") -> None:
    claimed = await site.store.claim({queue: 100}, worker="w", lease_ms=60_000, request=uuid4().hex)
    lost = [Settlement(job.lease, Failed(Failure("no such host", type="OSError"))) for job in claimed.jobs]
    await site.store.settle(lost, request=uuid4().hex)


async def test_a_job_is_added_with_its_options(client: Client, site: Site) -> None:
    options = {
        "id": "one",
        "tenant": "acme",
        "attempts": 4,
        "backoff": {"kind": "exponential", "delay": 2},
        "timeout": 30,
        "tags": ["new"],
        "delay": 60,
        "keep_completed": {"count": 5},
    }
    body = {"name": "welcome", "data": {"user": 1}, "options": options}
    added = await client.post("/v1/queues/mail/jobs", body, status=201)
    assert added == {"queue": "mail", "id": "one", "outcome": "added"}
    assert (await client.post("/v1/queues/mail/jobs", body, status=201))["outcome"] == "duplicate"
    job = await site.store.job(JobRef("mail", "one"))
    assert (job.state, job.spec.attempts, job.spec.backoff.delay_ms, job.priority) == ("delayed", 4, 2000, 5)
    problem = await client.post("/v1/queues/mail/jobs", {"name": "w", "options": {"retries": 3}}, status=422)
    assert problem["field"] == "options.retries"
    problem = await client.post("/v1/queues/mail/jobs", {"name": "w", "options": {"attempts": 0}}, status=422)
    assert (problem["code"], problem["field"]) == ("bad-option", "attempts")
    many = {"jobs": [{"name": "welcome", "options": {"id": f"job-{n}"}} for n in range(3)]}
    assert len((await client.post("/v1/queues/mail/jobs/bulk", many, status=201))["items"]) == 3


async def test_a_flow_is_added_and_shown(client: Client) -> None:
    child = {"queue": "fetch", "name": "page", "options": {"id": "below"}}
    flow = {"queue": "reports", "name": "report", "options": {"id": "top"}, "children": [child]}
    added = await client.post("/v1/flows", flow, status=201)
    assert (added["id"], added["children"][0]["id"]) == ("top", "below")
    tree = await client.get("/v1/queues/reports/jobs/top/flow")
    assert (tree["state"], tree["children"][0]["state"]) == ("waiting-children", "prioritized")
    (shown,) = (await client.get("/v1/queues/reports/jobs/top/children"))["items"]
    assert (shown["queue"], shown["id"], shown["child_state"]) == ("fetch", "below", "pending")
    assert (await client.get("/v1/queues/reports/jobs/top"))["has_children"]


async def test_jobs_are_retried_cancelled_changed_and_removed(client: Client, site: Site) -> None:
    queue = site.queue("mail")
    for name in ("a", "b", "c"):
        await queue.add("work", id=name)
    await queue.add("work", id="later", delay=3600)
    await client.call("PATCH", "/v1/queues/mail/jobs/later", json={"priority": 2, "data": {"n": 2}})
    assert (await site.store.job(JobRef("mail", "later"))).data == b'{"n":2}'
    await client.post("/v1/queues/mail/jobs/later/promote")
    assert (await site.store.job(JobRef("mail", "later"))).state == "prioritized"
    assert await client.post("/v1/queues/mail/jobs/a/cancel", {"reason": "no need"}) == {"outcome": "cancelled"}
    assert (await client.post("/v1/queues/mail/jobs/b/retry", status=409))["code"] == "wrong-state"
    assert (await client.post("/v1/queues/mail/jobs/b/signal", {"name": "go"}))["outcome"] == "kept"
    await client.delete("/v1/queues/mail/jobs/b", status=204)
    refs = [{"queue": "mail", "id": name} for name in ("a", "b", "c")]
    done = await client.post("/v1/jobs/actions", {"action": "retry", "jobs": refs})
    assert [one["outcome"] for one in done["items"]] == ["done", "job-missing", "wrong-state"]


async def test_dead_letters_by_filter(client: Client, site: Site, eventually: Eventually) -> None:
    for n in range(4):
        await site.queue("mail").add("work", id=f"job-{n}", tenant=("acme", "other")[n % 2])
    await _fail_all(site)

    async def is_known() -> bool:
        return len((await client.get("/v1/dead-letters"))["items"]) == 4

    await eventually(is_known)
    (group,) = (await client.get("/v1/failures", queue="mail"))["items"]
    assert (group["count"], group["error"]) == (4, "no such host")
    wanted = {"filter": {"tenant": "acme", "fingerprint": group["fingerprint"]}}
    assert await client.post("/v1/dead-letters/retry", wanted) == {
        "done": 2,
        "passed_over": 0,
        "next_cursor": None,
    }
    assert (await site.store.counts("mail")).failed == 2
    assert (await client.post("/v1/dead-letters/purge", {"filter": {"queue": "mail"}}))["done"] == 2
    await client.post("/v1/dead-letters/purge", {}, status=422)


async def test_more_dead_letters_than_the_limit_are_gone_on_with(
    client: Client, site: Site, eventually: Eventually
) -> None:
    """Each is taken once, also where it has failed again before the next call."""
    for _ in range(5):
        await site.queue("mail").add("send")
    await _fail_all(site)

    async def are_known() -> bool:
        return len((await client.get("/v1/dead-letters"))["items"]) == 5

    await eventually(are_known)
    body: dict[str, object] = {"filter": {"queue": "mail"}, "limit": 2}
    for done in (2, 2, 1):
        answer = await client.post("/v1/dead-letters/retry", body)
        assert answer["done"] == done
        await _fail_all(site)
        await eventually(are_known)
        body["cursor"] = answer["next_cursor"]
    assert body["cursor"] is None
    await client.post("/v1/dead-letters/retry", {"filter": {}, "cursor": "nonsense"}, status=422)


async def test_schedules_with_their_next_runs(client: Client) -> None:
    path = "/v1/queues/reports/schedules/nightly"
    made = await client.put(path, {"name": "report", "cron": "0 3 * * *", "tz": "Europe/Berlin"})
    assert len(made["next_runs"]) == 5
    assert made["next_runs"] == sorted(set(made["next_runs"]))
    assert made["next_runs"][0] == made["next_ms"]
    assert (await client.post(f"{path}/pause"))["next_runs"] == []
    assert not (await client.post(f"{path}/resume"))["paused"]
    assert (await client.post(f"{path}/run", status=201))["outcome"] == "added"
    assert (await client.put(path, {"name": "report", "cron": "nonsense"}, status=422))["field"] == "cron"
    await client.delete(path, status=204)
    assert (await client.get(path, status=404))["code"] == "schedule-missing"


async def test_limits_and_groups(client: Client, site: Site) -> None:
    await site.queue("mail").add("work", group="acme")
    assert (await client.put("/v1/queues/mail/limits", {"concurrency": 3, "rate": {"max": 5}}))["rate_ms"] == 1000
    await client.delete("/v1/queues/mail/limits", status=204)
    assert (await client.get("/v1/queues/mail/limits"))["concurrency"] is None
    await client.put("/v1/queues/mail/groups/acme", {"weight": 3})
    group = await client.post("/v1/queues/mail/groups/acme/pause")
    assert (group["paused"], group["limits"]["weight"], group["waiting"]) == (True, 3, 1)
    group = await client.post("/v1/queues/mail/groups/acme/resume")
    assert (group["paused"], group["limits"]["weight"]) == (False, 3)
    assert [one["name"] for one in (await client.get("/v1/queues/mail/groups"))["items"]] == ["acme"]


async def test_a_queue_is_steered_as_a_whole(client: Client, site: Site) -> None:
    for n in range(3):
        await site.queue("mail").add("work", id=f"job-{n}", delay=3600)
    assert (await client.post("/v1/queues/mail/promote-all"))["count"] == 3
    await _fail_all(site)
    assert (await client.post("/v1/queues/mail/retry-all"))["count"] == 3
    assert (await client.post("/v1/queues/mail/drain"))["count"] == 3
    assert (await client.post("/v1/queues/mail/clean", {"state": "failed"}))["count"] == 0
    await client.post("/v1/queues/mail/obliterate")
    await client.post("/v1/queues/mail/resume", status=404)


async def test_all_that_was_delayed_is_promoted_once(
    client: Client, site: Site, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Not what was tried since and waits for its next attempt, nor what waits for a signal; in parts, to the end."""
    queue, store = site.queue("mail"), site.store
    await queue.add("work", id="parked")
    (parked,) = (await store.claim({"mail": 1}, worker="w", lease_ms=60_000, request="park")).jobs
    await store.settle([Settlement(parked.lease, Parked(signals=("go",)))], request="parked")
    for n in range(6):
        await queue.add("work", id=f"job-{n}", delay=60, attempts=9)
    first = await client.post("/v1/queues/mail/promote-all", {"limit": 2})
    assert (first["count"], bool(first["next_cursor"])) == (2, True)
    claimed = await store.claim({"mail": 9}, worker="w", lease_ms=60_000, request="claim")
    retries = [Settlement(job.lease, Retry(Failure("no"), delay_ms=3_600_000)) for job in claimed.jobs]
    await store.settle(retries, request="settle")
    rest = await client.post("/v1/queues/mail/promote-all", {"cursor": first["next_cursor"]})
    assert rest == {"count": 4, "next_cursor": None}
    counts = await store.counts("mail")
    assert (counts.delayed, counts.waiting + counts.prioritized) == (3, 4)
    problem = await client.post("/v1/queues/mail/promote-all", {"cursor": "none"}, status=422)
    assert problem["field"] == "cursor"


@only_on_files
async def test_a_change_that_is_refused_changes_nothing(client: Client, site: Site) -> None:
    """One that is not delayed takes no delay, and keeps its priority and its data then."""
    await site.queue("mail").add("work", {"n": 1}, id="job-1")
    before = await site.store.job(JobRef("mail", "job-1"))
    for body in ({"delay": 60, "priority": 9, "data": {"n": 2}}, {"priority": 9, "data": "x" * 300_000}):
        answer = await client.http.request("PATCH", "/v1/queues/mail/jobs/job-1", json=body)
        assert answer.status_code in (409, 413)
        assert await site.store.job(JobRef("mail", "job-1")) == before


@only_on_files
async def test_what_webhooks_deliver_is_not_rewritten(client: Client, site: Site) -> None:
    """It would be signed all the same."""
    await site.queue("bullpen-webhooks").add("deliver", {"n": 1}, id="one", delay=60)
    path = "/v1/queues/bullpen-webhooks/jobs/one"
    assert (await client.call("PATCH", path, json={"data": {"n": 2}}, status=403))["code"] == "forbidden"
    await client.call("PATCH", path, json={"delay": 90})
    assert (await site.store.job(JobRef("bullpen-webhooks", "one"))).data == b'{"n":1}'


async def test_a_large_flow_is_cut(client: Client, monkeypatch: pytest.MonkeyPatch) -> None:
    """Each job of it is a question to the store."""
    monkeypatch.setattr("bullpen.server.routes.details._NODES", 5)
    leaf = {"queue": "mail", "name": "leaf"}
    flow: dict[str, Any] = {"queue": "reports", "name": "top", "options": {"id": "top"}}
    flow |= {"children": [{"queue": "mail", "name": "part", "children": [leaf] * 3}] * 3}
    await client.post("/v1/flows", flow, status=201)
    tree = await client.get("/v1/queues/reports/jobs/top/flow")
    assert tree["is_cut"]
    assert len(tree["children"]) == 3
    # One is asked for; Redis may tell all of a small family at once.
    assert 1 <= sum(len(part["children"]) for part in tree["children"]) <= 3
    assert any(part["is_cut"] for part in tree["children"])
    monkeypatch.setattr("bullpen.server.routes.details._NODES", 500)
    tree = await client.get("/v1/queues/reports/jobs/top/flow")
    assert not tree["is_cut"]
    assert sum(len(part["children"]) for part in tree["children"]) == 9


# ── plans ────────────────────────────────────────────────────────────────────────────────


@pytest.mark.parametrize("how", ["obliterate", "unlimit", "elsewhere"])
async def test_the_limits_of_a_plan_come_back(client: Client, site: Site, how: str) -> None:
    """The queue went with its groups, or the limits were taken away; by this server or past it."""
    await client.post("/v1/tenants", {"id": "acme", "plan": {"limits": {"concurrency": 2}}}, status=201)
    job = {"name": "work", "options": {"tenant": "acme"}}
    await client.post("/v1/queues/mail/jobs", job, status=201)
    if how == "obliterate":
        await client.post("/v1/queues/mail/obliterate", {"force": True})
    elif how == "unlimit":
        await client.delete("/v1/queues/mail/groups/acme", status=204)
    else:
        await site.store.obliterate("mail", force=True)
        later = {known: (sure_ms - 10_000, limits) for known, (sure_ms, limits) in site.plans._limited.items()}
        site.plans._limited = later
    await client.post("/v1/queues/mail/jobs", job, status=201)
    assert (await site.store.group("mail", "acme")).limits.concurrency == 2


async def test_a_plan_sets_priorities_and_limits(client: Client, site: Site, eventually: Eventually) -> None:
    """The default counts where nothing is asked, the highest is not passed, and the group is limited."""
    await site.queue("mail").add("work", id="old", tenant="acme", group="acme")
    site.feeder.nudge()

    async def is_known() -> bool:
        return "mail" in await site.standing.names()

    await eventually(is_known)
    plan = {"limits": {"concurrency": 2}, "default_priority": 7, "highest_priority": 4}
    await client.post("/v1/tenants", {"id": "acme", "plan": plan}, status=201)
    assert (await site.store.group("mail", "acme")).limits == GroupLimits(concurrency=2)
    admin = await key_for(site, "admin")
    async with client_of(site, await key_for(site, "producer", tenant="acme")) as producer:
        for asked, status in ((None, 201), (4, 201), (9, 201), (3, 422), (0, 422)):
            options = {} if asked is None else {"priority": asked}
            body = {"name": "work", "options": options}
            answer = await producer.post("/v1/queues/fresh/jobs", body, status=status)
            if status == 201:
                job = await site.store.job(JobRef("fresh", answer["id"]))
                assert (job.priority, job.tenant, job.spec.group) == (asked or 7, "acme", "acme")
            else:
                assert answer["field"] == "priority"
        assert (await site.store.group("fresh", "acme")).limits == GroupLimits(concurrency=2)
    async with client_of(site, admin) as system:
        body = {"name": "work", "options": {"tenant": "acme", "priority": 1}}
        await system.post("/v1/queues/mail/jobs", body, status=201)
        await system.put("/v1/tenants/acme", {"plan": {"limits": {"concurrency": 5}}})
        assert (await site.store.group("mail", "acme")).limits == GroupLimits(concurrency=5)
        await system.put("/v1/tenants/acme", {"is_disabled": True})
        assert (await system.post("/v1/queues/mail/jobs", body, status=403))["code"] == "tenant-refused"
        await system.delete("/v1/tenants/acme", status=204)
        assert (await site.store.group("mail", "acme")).limits == GroupLimits()


async def test_without_a_plan_the_highest_priorities_are_the_systems(site: Site) -> None:
    async with client_of(site, await key_for(site, "operator", tenant="acme")) as own:
        for asked, status in ((None, 201), (3, 201), (2, 422), (1, 422), (0, 422)):
            job = {"name": "work", "options": {} if asked is None else {"priority": asked}}
            calls = {
                "/v1/queues/mail/jobs": job,
                "/v1/queues/mail/jobs/bulk": {"jobs": [{"name": "work"}, job]},
                "/v1/flows": {"queue": "mail", "name": "work", "children": [job | {"queue": "mail"}]},
            }
            for path, body in calls.items():
                answer = await own.post(path, body, status=status)
                assert status == 201 or answer["field"] == "priority"
        added = await own.post("/v1/queues/mail/jobs", {"name": "work"}, status=201)
        path = f"/v1/queues/mail/jobs/{added['id']}"
        await own.call("PATCH", path, json={"priority": 2}, status=422)
        await own.call("PATCH", path, json={"priority": 3})
        every = {"name": "work", "every": 60, "options": {"priority": 1}}
        assert (await own.put("/v1/queues/mail/schedules/often", every, status=422))["field"] == "priority"
    assert (await site.store.job(JobRef("mail", added["id"]))).priority == 3
    async with client_of(site, await key_for(site, "producer")) as system:
        for tenant in (None, "acme"):
            body = {"name": "work", "options": {"tenant": tenant, "priority": 1}}
            added = await system.post("/v1/queues/mail/jobs", body, status=201)
            assert (await site.store.job(JobRef("mail", added["id"]))).priority == 1


# ── once ─────────────────────────────────────────────────────────────────────────────────


async def test_the_same_key_gets_the_first_answer(client: Client, site: Site) -> None:
    body = {"name": "work"}
    first = await client.post("/v1/queues/mail/jobs", body, status=201, **{"Idempotency-Key": "k1"})
    answer = await client.http.post("/v1/queues/mail/jobs", json=body, headers={"Idempotency-Key": "k1"})
    assert (answer.status_code, answer.json(), answer.headers["idempotent-replayed"]) == (201, first, "true")
    assert (await site.store.counts("mail")).prioritized == 1
    problem = await client.post("/v1/queues/mail/jobs", {"name": "x"}, status=409, **{"Idempotency-Key": "k1"})
    assert problem["code"] == "idempotency-conflict"
    await client.post("/v1/queues/mail/jobs", {"name": ""}, status=422, **{"Idempotency-Key": "k2"})
    await client.post("/v1/queues/mail/jobs", body, status=201, **{"Idempotency-Key": "k2"})


async def test_two_at_once_with_one_key_are_one(client: Client, site: Site) -> None:
    calls = [
        client.http.post("/v1/queues/mail/jobs", json={"name": "work"}, headers={"Idempotency-Key": "k1"})
        for _ in range(6)
    ]
    answers = await asyncio.gather(*calls)
    codes = {answer.status_code: answer.json() for answer in answers}
    assert codes.keys() <= {201, 409}
    assert codes.get(409, {}).get("code") in (None, "idempotency-in-progress")
    assert (await site.store.counts("mail")).prioritized == 1


@only_on_files
async def test_a_key_is_shown_once(client: Client, site: Site) -> None:
    headers = {"Idempotency-Key": "k1", **await key_for(site, "admin")}
    body = {"name": "ci", "role": "producer"}
    first: Any = (await client.http.post("/v1/keys", json=body, headers=headers)).json()
    again = (await client.http.post("/v1/keys", json=body, headers=headers)).json()
    assert first["text"].startswith("bp_")
    assert again == first | {"text": None}
    listed = await client.http.get("/v1/keys", headers=headers)
    assert first["text"] not in listed.text


@only_on_files
async def test_a_body_has_a_limit(client: Client, site: Site) -> None:
    large = "x" * (site.settings.body_limit + 1)
    problem = await client.post("/v1/queues/mail/jobs", {"name": "work", "data": large}, status=413)
    assert problem["code"] == "body-too-large"
    problem = await client.post("/v1/queues/mail/jobs", {"name": "work", "data": "x" * 300_000}, status=413)
    assert problem["code"] == "payload-too-large"
    many = {"jobs": [{"name": "work", "data": "x" * 200_000} for _ in range(10)]}
    await client.post("/v1/queues/mail/jobs/bulk", many, status=201)


@only_on_files
@pytest.mark.parametrize("name", ["mine"])
async def test_views_and_alerts(client: Client, name: str) -> None:
    await client.put(f"/v1/views/{name}", {"page": "jobs", "query": {"state": "failed"}})
    await client.put(f"/v1/views/{name}", {"page": "jobs", "query": {"state": "active"}})
    (view,) = (await client.get("/v1/views"))["items"]
    assert view["query"] == {"state": "active"}
    assert await client.get(f"/v1/views/{name}") == view
    await client.delete(f"/v1/views/{name}", status=204)
    alert = await client.put("/v1/alerts", {"name": "many", "condition": {"failed": 10}, "channel": {"kind": "log"}})
    changed = await client.put("/v1/alerts", alert | {"name": "more"}, status=422)
    assert changed["code"] == "bad-request"
    await client.delete(f"/v1/alerts/{alert['id']}", status=204)


async def test_views_that_are_saved_at_once_under_one_name_are_one(client: Client) -> None:
    saving = [client.put("/v1/views/mine", {"page": "jobs", "query": {"n": n}}) for n in range(6)]
    assert len({view["id"] for view in await asyncio.gather(*saving)}) == 1
    assert len((await client.get("/v1/views"))["items"]) == 1


async def test_a_tenant_has_so_many_records_and_no_more(site: Site, monkeypatch: pytest.MonkeyPatch) -> None:
    """Also where they are made at once; what is there can be changed, and other tenants have room."""
    for most in ("webhooks.MOST", "settings.MOST_ALERTS", "settings.MOST_VIEWS"):
        monkeypatch.setattr(f"bullpen.records.{most}", 3)
    async with (
        client_of(site, await key_for(site, "operator", tenant="acme")) as client,
        client_of(site, await key_for(site, "operator", tenant="other")) as other,
    ):
        makes: tuple[tuple[str, str, dict[str, Any]], ...] = (
            ("POST", "/v1/webhooks", {"name": "w", "url": "https://example.org/hook"}),
            ("PUT", "/v1/alerts", {"name": "a", "condition": {"failed": 1}, "channel": {"kind": "log"}}),
            ("PUT", "/v1/views/view-{n}", {"page": "jobs", "query": {}}),
        )
        for method, path, body in makes:
            making = [client.http.request(method, path.format(n=n), json=body) for n in range(5)]
            answers = await asyncio.gather(*making)
            refused = [answer.json() for answer in answers if answer.status_code == 409]
            assert [one["code"] for one in refused] == ["record-limit"] * 2
            assert (await other.http.request(method, path.format(n=0), json=body)).is_success
        (view, *_) = (await client.get("/v1/views"))["items"]
        await client.put(f"/v1/views/{view['name']}", {"page": "jobs", "query": {"changed": True}})


@only_on_files
async def test_health_and_metrics(client: Client, site: Site, eventually: Eventually) -> None:
    await site.queue("mail").add("work")
    site.feeder.nudge()
    assert (await client.get("/health/live"))["status"] == "healthy"
    assert (await client.get("/v1/health/ready"))["checks"]["records"]["status"] == "healthy"

    async def is_counted() -> bool:
        text = (await client.http.get("/metrics")).text
        return 'bullpen_queue_jobs{queue="mail",state="waiting"} 1' in text

    await eventually(is_counted)
