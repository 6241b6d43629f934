"""Claiming over HTTP: who gets which jobs, once, and what becomes of those that do not arrive."""

import asyncio
import uuid
from pathlib import Path
from typing import Any

import pytest

from bullpen.job.limits import GroupLimits
from bullpen.job.schedule import Schedule, Timing
from bullpen.job.state import State
from bullpen.records.keys import NewKey, Role
from bullpen.remote.messages import ClaimAsk
from bullpen.server.access.caller import LOCAL
from tests.remote.serving import QUEUE, Caller, Served, lease_of, serving
from tests.support.places import Place, only_on_sqlite
from tests.worker.waiting import until


async def test_a_claimed_job_has_all_that_its_worker_needs(served: Served, far: Caller) -> None:
    """And a lease that the store knows."""
    ref = await served.add(tenant="acme", headers={"traceparent": "00-1"}, attempts=3, timeout_ms=5_000)
    (job,) = await far.claim(5)
    told = ("queue", "id", "name", "data", "attempt", "tenant", "headers", "timeout_ms")
    assert [job[field] for field in told] == [
        QUEUE, ref.id, "build", {"n": 1}, 1, "acme", {"traceparent": "00-1"}, 5_000,
    ]  # fmt: skip
    record = await served.store.job(ref)
    assert (record.state, record.epoch) == (State.ACTIVE, job["epoch"])
    assert record.worker is not None
    assert record.worker.startswith("far@key:")


async def test_a_claim_waits_for_the_first_job(served: Served, far: Caller) -> None:
    """And is woken by it."""
    waiting = asyncio.create_task(far.claim(wait_s=30))
    await until_someone_sleeps(served)
    ref = await served.add()
    assert [job["id"] for job in await waiting] == [ref.id]


async def test_several_wait_and_each_gets_a_job(served: Served, far: Caller) -> None:
    """None is woken for nothing that stays so, and no job goes to two."""
    waiting = [asyncio.create_task(far.claim(wait_s=30, worker=f"far-{n}")) for n in range(4)]
    await until_someone_sleeps(served, 4)
    refs = [await served.add() for _ in range(4)]
    got = [job["id"] for jobs in await asyncio.gather(*waiting) for job in jobs]
    assert sorted(got) == sorted(ref.id for ref in refs)


async def test_one_call_asks_for_jobs_of_several_queues(served: Served, far: Caller) -> None:
    """Earlier ones first, and no more than asked for together."""
    for queue in ("b", "a"):
        await served.add(queue=queue)
        await served.add(queue=queue)
    jobs = await far.claim(queues={"a": 5, "b": 5}, at_most=3)
    assert [job["queue"] for job in jobs] == ["a", "a", "b"]


async def test_nothing_to_run_is_no_error(far: Caller) -> None:
    assert await far.claim() == []


async def test_the_same_request_gets_the_same_jobs(served: Served, far: Caller) -> None:
    """The answer was lost: it is asked for again, also when it came after a wait."""
    request = uuid.uuid4().hex
    waiting = asyncio.create_task(far.claim(2, request=request, wait_s=30))
    await until_someone_sleeps(served)
    await served.add()
    first = await waiting
    await served.add()
    again = await far.claim(2, request=request, wait_s=30, again=True)
    assert [lease_of(job) for job in again] == [lease_of(job) for job in first]


async def test_another_key_cannot_ask_for_the_same_request(served: Served, far: Caller) -> None:
    """What a request is called is known to whoever made it, and counts for them alone."""
    await served.add()
    await far.claim(request="r")
    assert await (await served.caller()).claim(request="r") == []


async def test_who_hangs_up_while_waiting_takes_nothing(served: Served, far: Caller) -> None:
    """What comes later goes to whoever is there, as if nobody had asked."""
    waiting = asyncio.create_task(far.claim(wait_s=30))
    await until_someone_sleeps(served)
    waiting.cancel()
    await until_someone_sleeps(served, 0)
    ref = await served.add()
    (job,) = await far.claim(wait_s=30)
    assert (job["id"], job["attempt"], job.get("crashes", {})) == (ref.id, 1, {})


class Gone:
    """A caller that hung up just when there was something for it."""

    def __init__(self, *, superseded: bool = False) -> None:
        self.is_superseded = superseded

    async def has_left(self) -> bool:
        return True

    async def or_gone(self, wait: Any) -> None:
        wait.close()


async def test_what_was_claimed_for_someone_who_is_gone_comes_back(served: Served) -> None:
    """In its old order, and not held against the jobs."""
    refs = [await served.add(), await served.add()]
    ask = ClaimAsk(worker="far", queues={QUEUE: 2}, request="r")
    answer = await served.site.desk.claim(LOCAL, ask, Gone())  # type: ignore[arg-type]  # as a Presence
    assert answer.jobs == []
    assert [(await served.store.job(ref)).state for ref in refs] == [State.WAITING] * 2
    claimed = await served.store.claim({QUEUE: 2}, worker="w", lease_ms=30_000, request="other")
    assert [(one.job.ref, one.job.stalls) for one in claimed.jobs] == [(ref, 0) for ref in refs]


async def test_who_asks_again_gets_what_its_first_call_claimed(served: Served) -> None:
    """Its first call is not to hand it back behind its back."""
    ref = await served.add()
    ask = ClaimAsk(worker="far", queues={QUEUE: 2}, request="r")
    answer = await served.site.desk.claim(LOCAL, ask, Gone(superseded=True))  # type: ignore[arg-type]
    assert [job.id for job in answer.jobs] == [ref.id]
    assert (await served.store.job(ref)).state == State.ACTIVE


async def test_a_restarted_server_knows_every_lease(served: Served, place: Place, tmp_path: Path) -> None:
    """Any replica takes the next call, also of what another gave out."""
    key = await served.key()
    ref = await served.add()
    (job,) = await (await served.with_key(key)).claim()
    async with serving(place, tmp_path / "records.db") as other:
        far = await other.with_key(key)
        beat = await far.call("heartbeat", {"leases": [lease_of(job)]})
        assert beat["leases"] == [{"state": "held"}]
        assert await far.settle(job, result={"ok": True}) == "settled"
    assert (await served.store.job(ref)).result == b'{"ok":true}'


# ── scope ────────────────────────────────────────────────────────────────────────────────


async def test_a_tenants_token_gets_that_tenants_jobs_only(served: Served) -> None:
    """Those that wait in its group; another's are neither given nor shown."""
    await served.add(tenant="other", group="other")
    await served.add()
    ref = await served.add(tenant="acme", group="acme")
    far = await served.caller(tenant="acme")
    assert [job["id"] for job in await far.claim(10)] == [ref.id]
    assert await far.claim(10) == []


async def test_what_a_tenants_producer_adds_its_worker_gets(served: Served) -> None:
    """Though nobody gave the tenant a plan or the job a group; at once, in bulk, and with a schedule's tick."""
    producer, far = await served.caller(Role.OPERATOR, tenant="acme"), await served.caller(tenant="acme")
    path = f"/v1/queues/{QUEUE}"
    await producer.http.post(f"{path}/jobs", json={"name": "one"})
    await producer.http.post(f"{path}/jobs/bulk", json={"jobs": [{"name": "two"}]})
    await producer.http.put(f"{path}/schedules/often", json={"name": "three", "every": 60})
    assert [job["name"] for job in await far.claim(10)] == ["one", "two", "three"]


async def test_a_tenants_token_is_woken_by_its_own_jobs(served: Served) -> None:
    """Though another's lie there all the time."""
    await served.add(tenant="other", group="other")
    far = await served.caller(tenant="acme")
    waiting = asyncio.create_task(far.claim(wait_s=30))
    await until_someone_sleeps(served, tenant="acme")
    ref = await served.add(tenant="acme", group="acme")
    assert [job["id"] for job in await waiting] == [ref.id]


async def test_a_job_in_a_tenants_group_that_is_not_its_own_is_set_aside(served: Served) -> None:
    """The group's name alone does not make it the tenant's."""
    ref = await served.add(tenant="other", group="acme")
    assert await (await served.caller(tenant="acme")).claim() == []
    assert (await served.store.job(ref)).state == State.DELAYED


async def test_another_tenants_lease_is_as_good_as_lost(served: Served, far: Caller) -> None:
    """Even one that is known: nothing changes, and nothing is learnt."""
    ref = await served.add(tenant="other", group="other")
    (job,) = await far.claim()
    thief = await served.caller(tenant="acme")
    beat = await thief.call("heartbeat", {"leases": [lease_of(job)]})
    assert beat["leases"] == [{"state": "lost"}]
    assert await thief.settle(job) == "lease-lost"
    for verb, more in (("progress", {"value": 1}), ("log", {"lines": ["x"], "request": "r"}), ("step", {})):
        assert await thief.refused(verb, {"lease": lease_of(job), **more}) == (409, "lease-lost")
    record = await served.store.job(ref)
    assert (record.state, record.progress) == (State.ACTIVE, None)
    assert (await served.store.logs(ref)).total == 0


async def test_a_token_for_one_queue_is_refused_for_another(served: Served, far: Caller) -> None:
    """With every verb, and nothing changes."""
    ref = await served.add()
    (job,) = await far.claim()
    lease = lease_of(job)
    narrow = await served.caller(queues=("mail",))
    asked: dict[str, dict[str, Any]] = {
        "claim": {"worker": "far", "queues": {QUEUE: 1}, "request": "r"},
        "wait": {"queues": [QUEUE]},
        "heartbeat": {"leases": [lease]},
        "progress": {"lease": lease, "value": 1},
        "log": {"lease": lease, "lines": ["x"], "request": "r"},
        "step": {"lease": lease},
        "settle": {"settlements": [{"lease": lease, "verdict": "complete"}], "request": "r"},
    }
    for verb, body in asked.items():
        assert await narrow.refused(verb, body) == (403, "forbidden"), verb
    record = await served.store.job(ref)
    assert (record.state, record.progress) == (State.ACTIVE, None)


async def test_only_tokens_for_workers_work(served: Served, far: Caller) -> None:
    """No token and a revoked one are 401, another role's is 403; no job moves."""
    ref = await served.add()
    body = {"worker": "far", "queues": {QUEUE: 1}, "request": "r"}
    del far.http.headers["Authorization"]
    assert await far.refused("claim", body) == (401, "unauthenticated")
    assert await (await served.with_key(await revoked_key(served))).refused("claim", body) == (401, "unauthenticated")
    assert await (await served.caller(Role.PRODUCER)).refused("claim", body) == (403, "forbidden")
    assert (await served.store.job(ref)).state == State.WAITING


async def revoked_key(served: Served) -> str:
    key, text = await served.site.records.keys.create(NewKey(name="old", role=Role.WORKER), created_by="test")
    await served.site.records.keys.revoke(key.id)
    return text


# ── what the server sees to before it gives a job out ────────────────────────────────────


async def test_limits_hold_for_remote_workers_too(served: Served, far: Caller) -> None:
    await served.store.set_group(QUEUE, "acme", GroupLimits(concurrency=1))
    for _ in range(2):
        await served.add(tenant="acme", group="acme")
    assert len(await far.claim(5)) == 1


async def test_a_tick_starts_the_next_one_before_it_is_given_out(served: Served, far: Caller) -> None:
    """As beside the store: whoever runs it need not know of schedules."""
    now_ms = served.store.clock.now_ms()
    schedule = Schedule(queue=QUEUE, id="tidy", name="tidy", timing=Timing(every_ms=60_000))
    await served.store.put_schedule(schedule, next_ms=now_ms - 60_000, seen_ms=None)
    (job,) = await far.claim()
    assert job["name"] == "tidy"
    record = await served.store.schedule(QUEUE, "tidy")
    assert record.pending


async def test_a_worker_that_died_loses_its_jobs_though_no_other_worker_is_there(served: Served, far: Caller) -> None:
    """The server looks after the queues that it serves."""
    ref = await served.add()
    (job,) = await far.claim(lease_ms=100)
    record = await until(lambda: served.store.job(ref), lambda record: record.state == State.WAITING)
    assert record.stalls == 1
    assert await far.settle(job) == "lease-lost"


# ── refusals ─────────────────────────────────────────────────────────────────────────────


@only_on_sqlite
@pytest.mark.parametrize(
    "body, field",
    [
        ({"queues": {QUEUE: 1}, "request": "r"}, None),
        ({"worker": "far", "queues": {QUEUE: "many"}, "request": "r"}, "queues[...]"),
        ({"worker": "far", "queues": {QUEUE: 1}, "request": "r", "more": 1}, None),
    ],
)
async def test_refuses_what_it_cannot_read(far: Caller, body: dict[str, Any], field: str | None) -> None:
    """And says where, as every route does."""
    problem = await far.call("claim", body, status=422)
    assert (problem["code"], problem.get("field")) == ("bad-request", field)


@only_on_sqlite
@pytest.mark.parametrize(
    "wrong",
    [
        {"queues": {}},
        {"queues": {QUEUE: 0}},
        {"queues": {QUEUE: 1_001}},
        {"wait_s": 31},
        {"wait_s": -1},
        {"lease_ms": 99},
        {"lease_ms": 3_600_001},
        {"at_most": 0},
        {"worker": ""},
        {"request": "x" * 201},
    ],
)
async def test_refuses_options_out_of_range(far: Caller, wrong: dict[str, Any]) -> None:
    body = {"worker": "far", "queues": {QUEUE: 1}, "request": "r"} | wrong
    assert await far.refused("claim", body) == (422, "bad-option")


@only_on_sqlite
async def test_refuses_a_bad_queue_name(far: Caller) -> None:
    assert await far.refused("wait", {"queues": ["a b"]}) == (422, "bad-name")


async def until_someone_sleeps(served: Served, count: int = 1, *, tenant: str | None = None) -> None:
    """Until so many calls wait at the server."""

    async def sleepers() -> int:
        return len(served.site.desk._bells.of(tenant)._sleepers)

    await until(sleepers, lambda found: found == count)
