"""Settling over HTTP: each verdict is carried out once, and judged as every worker judges."""

import uuid
from typing import Any

import pytest
from sqlalchemy import update

from bullpen.clock import SYSTEM_CLOCK
from bullpen.job.record import FailureKind
from bullpen.job.spec import Backoff
from bullpen.job.state import State
from bullpen.records.tables.access import api_key
from tests.remote.serving import QUEUE, Caller, Served, lease_of
from tests.support.places import only_on_sqlite

BOOM = {"message": "boom", "type": "ValueError", "stack": "Traceback: boom"}


async def test_a_completed_job_has_its_result(served: Served, far: Caller) -> None:
    ref = await served.add()
    (job,) = await far.claim()
    assert await far.settle(job, result={"built": True}) == "settled"
    record = await served.store.job(ref)
    assert (record.state, record.result) == (State.COMPLETED, b'{"built":true}')


async def test_a_failed_attempt_is_tried_again_after_its_backoff(served: Served, far: Caller) -> None:
    """As long as attempts are left; the server knows how many, and how long to wait."""
    ref = await served.add(attempts=2, backoff=Backoff(delay_ms=60_000))
    (job,) = await far.claim()
    assert await far.settle(job, "fail", failure=BOOM) == "settled"
    record = await served.store.job(ref)
    assert (record.state, record.attempts_made) == (State.DELAYED, 1)
    await served.store.promote(ref)
    (job,) = await far.claim()
    assert (job["attempt"], job["failure"]["message"]) == (2, "boom")
    assert await far.settle(job, "fail", failure=BOOM) == "settled"
    record = await served.store.job(ref)
    assert (record.state, record.attempts_made) == (State.FAILED, 2)
    assert record.failure is not None
    assert (record.failure.kind, record.failure.type) == (FailureKind.ERROR, "ValueError")


@pytest.mark.parametrize("said", [{"retry": False}, {"failure": BOOM | {"kind": "unrecoverable"}}])
async def test_a_failure_that_no_attempt_can_mend_is_the_last(
    served: Served, far: Caller, said: dict[str, Any]
) -> None:
    ref = await served.add(attempts=5)
    (job,) = await far.claim()
    await far.settle(job, "fail", **({"failure": BOOM} | said))
    assert (await served.store.job(ref)).state == State.FAILED


async def test_a_worker_may_say_when_to_try_again_but_not_how_often(served: Served, far: Caller) -> None:
    """With no attempts left the job fails, whatever it asked for."""
    ref = await served.add(attempts=2)
    (job,) = await far.claim()
    await far.settle(job, "retry", failure=BOOM, delay_ms=0)
    (job,) = await far.claim()
    await far.settle(job, "retry", failure=BOOM, delay_ms=0)
    assert (await served.store.job(ref)).state == State.FAILED


@pytest.mark.parametrize(
    "verdict, more, state",
    [
        ("delay", {"delay_ms": 60_000, "note": "too early"}, State.DELAYED),
        ("park", {"signals": ["approved"]}, State.DELAYED),
        ("release", {}, State.WAITING),
        ("limit", {"delay_ms": 60_000}, State.WAITING),
    ],
)
async def test_verdicts_that_use_no_attempt(
    served: Served, far: Caller, verdict: str, more: dict[str, Any], state: State
) -> None:
    ref = await served.add(attempts=2)
    (job,) = await far.claim()
    assert await far.settle(job, verdict, **more) == "settled"
    record = await served.store.job(ref)
    assert (record.state, record.attempts_made) == (state, 0)


async def test_a_job_that_stopped_as_asked_ends_as_cancelled(served: Served, far: Caller) -> None:
    ref = await served.add(attempts=3)
    (job,) = await far.claim()
    assert await far.settle(job, "cancel", reason="no more") == "settled"
    record = await served.store.job(ref)
    assert record.failure is not None
    assert (record.state, record.failure.kind) == (State.FAILED, FailureKind.CANCELLED)


async def test_a_tenants_worker_closes_its_group_and_not_the_queue(served: Served) -> None:
    """However much it asks for: the queue is everybody's."""
    await served.add(tenant="acme", group="acme")
    await served.add(tenant="other", group="other")
    acme = await served.caller(tenant="acme")
    (job,) = await acme.claim()
    await acme.settle(job, "limit", delay_ms=60_000, whole_queue=True)
    assert await acme.claim() == []
    assert len(await (await served.caller(tenant="other")).claim()) == 1


async def test_the_same_settle_again_gets_the_first_answer(served: Served, far: Caller) -> None:
    """The answer was lost: the attempt is counted once."""
    ref = await served.add(attempts=3)
    (job,) = await far.claim()
    request = uuid.uuid4().hex
    for _ in range(3):
        assert await far.settle(job, "fail", failure=BOOM, request=request) == "settled"
    assert (await served.store.job(ref)).attempts_made == 1


async def test_a_second_verdict_changes_nothing(served: Served, far: Caller) -> None:
    ref = await served.add()
    (job,) = await far.claim()
    await far.settle(job)
    assert await far.settle(job, "fail", failure=BOOM) == "lease-lost"
    assert (await served.store.job(ref)).state == State.COMPLETED


async def test_many_are_settled_in_one_call_and_one_that_is_lost_hinders_none(served: Served, far: Caller) -> None:
    for _ in range(3):
        await served.add()
    jobs = await far.claim(3)
    await far.settle(jobs[1])
    settlements = [{"lease": lease_of(job), "verdict": "complete"} for job in jobs]
    answer = await far.call("settle", {"settlements": settlements, "request": "r"})
    assert answer["outcomes"] == ["settled", "lease-lost", "settled"]


async def test_a_made_up_token_settles_nothing(served: Served, far: Caller) -> None:
    """Nor does an old epoch."""
    ref = await served.add()
    (job,) = await far.claim()
    assert await far.settle(job | {"token": "0:made.1"}) == "lease-lost"
    assert (await served.store.job(ref)).state == State.ACTIVE


@only_on_sqlite
@pytest.mark.parametrize(
    "verdict, more, answer",
    [
        ("complete", {"result": "x" * 300_000}, (413, "payload-too-large")),
        ("delay", {"delay_ms": -1}, (422, "bad-option")),
        ("explode", {}, (422, "bad-request")),
        ("fail", {}, (422, "bad-request")),
    ],
)
async def test_refuses_a_verdict_that_cannot_be(
    served: Served, far: Caller, verdict: str, more: dict[str, Any], answer: tuple[int, str]
) -> None:
    """And the job runs on."""
    ref = await served.add()
    (job,) = await far.claim()
    said = {"lease": lease_of(job), "verdict": verdict} | more
    assert await far.refused("settle", {"settlements": [said], "request": "r"}) == answer
    assert (await served.store.job(ref)).state == State.ACTIVE


@only_on_sqlite
async def test_refuses_more_than_a_thousand_at_once(far: Caller) -> None:
    lease = {"queue": QUEUE, "id": "1", "token": "t", "epoch": 1}
    said = [{"lease": lease, "verdict": "release"}] * 1_001
    assert await far.refused("settle", {"settlements": said, "request": "r"}) == (422, "bad-option")


async def test_a_token_that_expired_changes_nothing(served: Served) -> None:
    """Not even for a job that its worker holds: each call gets 401, and the job stays as it is."""
    ref = await served.add()
    text = await served.key(expires_ms=SYSTEM_CLOCK.now_ms() + 3_600_000)
    caller = await served.with_key(text)
    (job,) = await caller.claim(lease_ms=3_600_000)
    await served.add()
    async with served.site.records.database.writing() as connection:
        await connection.execute(update(api_key).values(expires_ms=1))
    before = [await served.store.job(ref), await served.store.logs(ref), await served.store.counts(QUEUE)]
    lease = lease_of(job)
    calls: dict[str, Any] = {
        "claim": {"worker": "far", "queues": {QUEUE: 1}, "request": "one"},
        "wait": {"queues": [QUEUE], "wait_s": 0},
        "heartbeat": {"leases": [lease]},
        "notices": {"worker": "far", "wait_s": 0},
        "progress": {"lease": lease, "value": 1},
        "log": {"lease": lease, "lines": ["late"], "request": "one"},
        "step": {"lease": lease, "record": [{"place": 0, "name": "late", "value": 1}]},
        "settle": {"settlements": [{"verdict": "complete", "lease": lease}], "request": "one"},
    }
    for verb, body in calls.items():
        assert await caller.refused(verb, body) == (401, "unauthenticated"), verb
    assert [await served.store.job(ref), await served.store.logs(ref), await served.store.counts(QUEUE)] == before
