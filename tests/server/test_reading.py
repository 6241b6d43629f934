"""What the server shows of queues and jobs."""

from bullpen import Failure
from bullpen.job.verdicts import Completed, Failed, Settlement
from bullpen.server.site import Site
from tests.server.calling import Client
from tests.server.conftest import Eventually


async def _end_one(site: Site, *, fails: bool = False) -> None:
    claimed = await site.store.claim({"mail": 1}, worker="w", lease_ms=60_000, request=f"claim {fails}")
    verdict = Failed(Failure("no such host", type="OSError")) if fails else Completed(b'"sent"')
    await site.store.settle([Settlement(claimed.jobs[0].lease, verdict)], request=f"settle {fails}")


async def test_who_one_is(client: Client, site: Site) -> None:
    me = await client.get("/v1/me")
    assert (me["name"], me["role"], me["kind"], me["tenant"]) == ("local", "admin", "open", None)
    assert me["store"] == site.store.place
    assert "keys:write" in me["permissions"]


async def test_queues_and_jobs_are_shown(client: Client, site: Site, eventually: Eventually) -> None:
    queue = site.queue("mail")
    for n in range(3):
        await queue.add("welcome", {"user": f"ann {n}"}, id=f"job-{n}", tenant="acme", tags=["new"])
    await _end_one(site)
    await _end_one(site, fails=True)

    async def is_known() -> bool:
        overview = await client.get("/v1/overview")
        return bool(overview["totals"]["failed"] == 1 and overview["totals"]["completed"] == 1)

    await eventually(is_known)
    (shown,) = (await client.get("/v1/queues"))["items"]
    assert (shown["name"], shown["paused"], shown["counts"]["waiting"]) == ("mail", False, 1)
    assert shown["rates"]["completed_per_s"] > 0
    assert sum(minute["added"] for minute in shown["spark"]) == 3
    one = await client.get("/v1/queues/mail")
    assert one["tenants"] == {"acme": {"waiting": 1, "completed": 1, "failed": 1}}
    page = await client.get("/v1/jobs", queue="mail", state="failed", q="host")
    assert [job["id"] for job in page["items"]] == ["job-1"]
    first = await client.get("/v1/jobs", limit=2)
    rest = await client.get("/v1/jobs", limit=2, cursor=first["next_cursor"])
    assert [job["id"] for job in first["items"] + rest["items"]] == ["job-2", "job-1", "job-0"]
    job = await client.get("/v1/queues/mail/jobs/job-0")
    assert (job["state"], job["result"], job["data"], job["tenant"]) == ("completed", "sent", {"user": "ann 0"}, "acme")
    failed = await client.get("/v1/queues/mail/jobs/job-1")
    assert failed["failure"]["message"] == "no such host"
    assert [moment["kind"] for moment in failed["timeline"]] == ["added", "active", "failed"]


async def test_an_id_may_have_a_slash(client: Client, site: Site) -> None:
    await site.queue("mail").add("welcome", id="a/b c")
    assert (await client.get("/v1/queues/mail/jobs/a%2Fb%20c"))["id"] == "a/b c"


async def test_what_is_not_there(client: Client, site: Site) -> None:
    await site.queue("mail").add("welcome", id="one")
    assert (await client.get("/v1/queues/mail/jobs/two", status=404))["code"] == "job-missing"
    assert (await client.get("/v1/queues/none", status=404))["code"] == "queue-missing"
    assert (await client.get("/v1/nothing", status=404))["code"] == "not-found"
    problem = await client.get("/v1/jobs", status=422, limit="many")
    assert (problem["code"], problem["field"]) == ("bad-request", "limit")
    problem = await client.get("/v1/jobs", status=422, cursor="nonsense")
    assert (problem["code"], problem["field"]) == ("bad-option", "cursor")


async def test_pausing_is_seen_and_noted(client: Client, site: Site, eventually: Eventually) -> None:
    await site.queue("mail").add("welcome")
    await client.post("/v1/queues/mail/pause")
    assert (await site.store.counts("mail")).paused

    async def is_known() -> bool:
        return [(one["name"], one["paused"]) for one in (await client.get("/v1/queues"))["items"]] == [("mail", True)]

    await eventually(is_known)
    await client.post("/v1/queues/mail/resume")
    entries = (await site.records.audit.list()).entries
    assert [(one.actor, one.action, one.target, one.outcome) for one in entries] == [
        ("local", "queue.resume", "mail", "ok"),
        ("local", "queue.pause", "mail", "ok"),
    ]
