"""One delivery: what its receiver gets, when it is tried again, and what it never shows."""

import asyncio
import contextlib
import email.utils
import hashlib
import hmac
import logging
import time
from collections.abc import AsyncIterator

import msgspec
import pytest

from bullpen import Bullpen, Failure, FailureKind, State, WorkerOptions
from bullpen.builtin import signing
from bullpen.builtin.addresses import Allowed
from bullpen.builtin.messages import QUEUE, EventSummary, delivery, trial
from bullpen.builtin.outgoing import Answer, Outgoing
from bullpen.builtin.webhooks import Deliveries
from bullpen.job.events import Event, EventKind
from bullpen.job.record import JobRecord, JobRef
from bullpen.job.spec import Backoff, NewJob
from bullpen.records.records import Records
from bullpen.records.webhooks import NewWebhook, Webhook
from bullpen.stores.base import Store
from tests.builtin.receiver import HANG, Receiver
from tests.worker.waiting import until


@contextlib.asynccontextmanager
async def delivering(store: Store, records: Records | str, outgoing: Outgoing) -> AsyncIterator[None]:
    pen = Bullpen(store)
    Deliveries(records, outgoing).declare(pen)
    worker = pen.worker([QUEUE], WorkerOptions(grace=1))
    running = asyncio.create_task(worker.run())
    try:
        yield
    finally:
        worker.stop_now()
        await running


async def _added(store: Store, webhook: Webhook, *, quick: bool = True) -> JobRef:
    """A delivery; its retries do not let a test wait."""
    event = Event(EventKind.FAILED, "7", 1_000, tenant=webhook.tenant, failure=Failure("no luck"), cursor="12-0/5")
    job = delivery(
        webhook, event, EventSummary(kind="failed", queue="mail", at_ms=1_000, job_id="7", tenant=webhook.tenant)
    )
    if quick:
        job = _quick(job)
    (added,) = await store.add([job], request=f"add {job.id}")
    return JobRef(QUEUE, added.id)


def _quick(job: NewJob) -> NewJob:
    return msgspec.structs.replace(job, spec=msgspec.structs.replace(job.spec, backoff=Backoff(delay_ms=10)))


async def _ended(store: Store, ref: JobRef) -> JobRecord:
    async with asyncio.timeout(60):
        while (job := await store.job(ref)).state not in (State.COMPLETED, State.FAILED):
            await asyncio.sleep(0.02)
    return job


async def test_a_receiver_can_tell_who_sent_it(
    store: Store, records: Records, receiver: Receiver, outgoing: Outgoing
) -> None:
    """Checked with nothing but what the docs say of the signature."""
    webhook, secret = await records.webhooks.create(NewWebhook(name="ops", url=receiver.url), created_by="ann")
    ref = await _added(store, webhook)
    async with delivering(store, records, outgoing):
        job = await _ended(store, ref)
    assert msgspec.json.decode(job.result or b"")["status"] == 200
    (got,) = receiver.received
    parts = dict(part.split("=") for part in got.headers["x-bullpen-signature"].split(","))
    wanted = hmac.new(secret.encode(), parts["t"].encode() + b"." + got.body, hashlib.sha256).hexdigest()
    assert parts["v1"] == wanted
    assert abs(time.time() - int(parts["t"])) < 60
    assert signing.verify(secret, got.headers["x-bullpen-signature"], got.body, now_s=time.time())
    assert got.headers["x-bullpen-event"] == "failed"
    assert got.headers["x-bullpen-delivery"] == ref.id == got.json["delivery"]
    assert got.headers["content-type"] == "application/json"
    assert (got.json["kind"], got.json["queue"], got.json["job_id"]) == ("failed", "mail", "7")


def test_a_signature_is_good_for_one_body_one_secret_and_some_minutes() -> None:
    header = signing.sign("key", 1_000, b"body")
    assert signing.verify("key", header, b"body", now_s=1_200)
    assert not signing.verify("key", header, b"other", now_s=1_200)
    assert not signing.verify("other", header, b"body", now_s=1_200)
    assert not signing.verify("key", header, b"body", now_s=1_301)
    assert not signing.verify("key", header, b"body", now_s=699)
    for wrong in ("", "t=1000", "v1=00", "t=x,v1=00", "t=1000,v1=é", header.replace("t=1000", "t=1001")):
        assert not signing.verify("key", wrong, b"body", now_s=1_000)


async def test_it_is_tried_again_under_the_same_id_until_it_is_taken(
    store: Store, records: Records, receiver: Receiver, outgoing: Outgoing
) -> None:
    webhook, _ = await records.webhooks.create(NewWebhook(name="ops", url=receiver.url), created_by="ann")
    receiver.answers = [500, 429, 204]
    receiver.body = b""
    ref = await _added(store, webhook)
    async with delivering(store, records, outgoing):
        job = await _ended(store, ref)
    assert (job.state, job.attempts_made) == (State.COMPLETED, 3)
    assert {got.headers["x-bullpen-delivery"] for got in receiver.received} == {ref.id}
    assert len(receiver.received) == 3
    lines = (await store.logs(ref)).lines
    assert [line.split(" after")[0] for line in lines] == ["attempt 1: 500", "attempt 2: 429", "attempt 3: 204"]


@pytest.mark.parametrize("status", [429, 503])
@pytest.mark.parametrize("form", ["seconds", "date", "far"])
async def test_it_is_not_tried_again_before_the_receiver_wants_to_hear(
    store: Store, records: Records, receiver: Receiver, outgoing: Outgoing, status: int, form: str
) -> None:
    webhook, _ = await records.webhooks.create(NewWebhook(name="ops", url=receiver.url), created_by="ann")
    now_s = time.time()
    told = {"seconds": "600", "date": email.utils.formatdate(now_s + 600, usegmt=True), "far": "9" * 400}[form]
    receiver.answers, receiver.headers = [status], f"Retry-After: {told}\r\n"
    ref = await _added(store, webhook)
    async with delivering(store, records, outgoing):
        job = await until(lambda: store.job(ref), lambda job: job.state is State.DELAYED)
    assert job.attempts_made == 1
    assert job.run_at_ms is not None
    wait_s = 3_600 if form == "far" else 600
    assert now_s + wait_s - 1 <= job.run_at_ms / 1000 <= time.time() + wait_s
    assert len(receiver.received) == 1


@pytest.mark.parametrize("told", ["", "soon", "-5", "1.5", "Mon, 99 Foo 2026 25:61:61 GMT"])
def test_a_time_that_is_none_is_not_heeded(told: str) -> None:
    assert Answer(503, {"retry-after": told}, b"", 1).retry_after_s(1_000) is None


def test_a_time_that_is_over_lets_nobody_wait() -> None:
    assert Answer(503, {"retry-after": "Thu, 01 Jan 1970 00:00:01 GMT"}, b"", 1).retry_after_s(90_000) == 0


async def test_a_delivery_has_ten_attempts_from_a_second_on(store: Store, records: Records, receiver: Receiver) -> None:
    webhook, _ = await records.webhooks.create(NewWebhook(name="ops", url=receiver.url), created_by="ann")
    spec = (await store.job(await _added(store, webhook, quick=False))).spec
    assert (spec.attempts, spec.backoff.kind, spec.backoff.delay_ms) == (10, "exponential", 1_000)


@pytest.mark.parametrize("status", [301, 302, 307, 400, 401, 404, 410, 422])
@pytest.mark.parametrize("kinds", [("sqlite", "sqlite")], ids=["files"])
async def test_an_answer_that_no_attempt_can_mend_ends_it(
    status: int, store: Store, records: Records, receiver: Receiver, outgoing: Outgoing
) -> None:
    webhook, _ = await records.webhooks.create(NewWebhook(name="ops", url=receiver.url), created_by="ann")
    receiver.answers, receiver.headers = [status], f"Location: {receiver.url}\r\n"
    ref = await _added(store, webhook)
    async with delivering(store, records, outgoing):
        job = await _ended(store, ref)
    assert job.failure is not None
    assert (job.state, job.failure.kind) == (State.FAILED, FailureKind.UNRECOVERABLE)
    assert job.failure.message == f"127.0.0.1 answered {status}"
    assert len(receiver.received) == 1


@pytest.mark.parametrize("status", [408, 409, 425, 429, 500, 503, HANG])
@pytest.mark.parametrize("kinds", [("sqlite", "sqlite")], ids=["files"])
async def test_an_answer_that_may_change_is_asked_for_again(
    status: int, store: Store, records: Records, receiver: Receiver
) -> None:
    webhook, _ = await records.webhooks.create(NewWebhook(name="ops", url=receiver.url), created_by="ann")
    receiver.answers = [status, 200]
    ref = await _added(store, webhook)
    async with delivering(store, records, Outgoing(Allowed.parse("127.0.0.1"), timeout=2)):
        job = await _ended(store, ref)
    assert job.state == State.COMPLETED
    assert job.attempts_made >= 2, "on a machine that is busy, a good answer may come too late as well"
    assert {got.headers["x-bullpen-delivery"] for got in receiver.received} == {ref.id}


@pytest.mark.parametrize("kinds", [("sqlite", "sqlite")], ids=["files"])
async def test_a_private_address_is_not_called_and_not_tried_again(
    store: Store, records: Records, receiver: Receiver
) -> None:
    url = f"http://localhost:{receiver.port}/"
    webhook, _ = await records.webhooks.create(NewWebhook(name="ops", url=url), created_by="ann")
    ref = await _added(store, webhook)
    async with delivering(store, records, Outgoing(Allowed())):
        job = await _ended(store, ref)
    assert job.failure is not None
    assert (job.failure.kind, job.failure.type) == (FailureKind.UNRECOVERABLE, "AddressRefused")
    assert receiver.connections == 0


@pytest.mark.parametrize("kinds", [("sqlite", "sqlite")], ids=["files"])
async def test_who_is_gone_or_off_is_told_nothing_but_a_trial(
    store: Store, records: Records, receiver: Receiver, outgoing: Outgoing
) -> None:
    off, _ = await records.webhooks.create(NewWebhook(name="off", url=receiver.url, is_enabled=False), created_by="ann")
    gone, _ = await records.webhooks.create(NewWebhook(name="gone", url=receiver.url), created_by="ann")
    await records.webhooks.remove(gone.id)
    refs = [await _added(store, off), await _added(store, gone)]
    async with delivering(store, records, outgoing):
        for ref in refs:
            job = await _ended(store, ref)
            assert job.state == State.COMPLETED
            assert msgspec.json.decode(job.result or b"")["sent"] is False
        assert receiver.received == []
        await store.add([trial(off, now_ms=5)], request="trial")
        (got,) = await receiver.until(1)
    assert got.headers["x-bullpen-event"] == "test"


@pytest.mark.parametrize("kinds", [("sqlite", "sqlite")], ids=["files"])
async def test_a_job_that_names_anothers_subscription_gets_nothing(
    store: Store, records: Records, receiver: Receiver, outgoing: Outgoing
) -> None:
    """Whoever may add jobs to the queue could otherwise have us sign with the secret of another tenant."""
    theirs, _ = await records.webhooks.create(
        NewWebhook(name="beta", url=receiver.url, tenant="beta"), created_by="ann"
    )
    forged = msgspec.structs.replace(trial(theirs, now_ms=5), id="forged")
    forged = msgspec.structs.replace(forged, spec=msgspec.structs.replace(forged.spec, tenant="alpha"))
    (added,) = await store.add([forged], request="forged")
    async with delivering(store, records, outgoing):
        job = await _ended(store, JobRef(QUEUE, added.id))
    assert job.state == State.FAILED
    assert receiver.received == []


async def test_the_secret_is_nowhere_to_be_seen(
    store: Store, records: Records, receiver: Receiver, outgoing: Outgoing, caplog: pytest.LogCaptureFixture
) -> None:
    caplog.set_level(logging.DEBUG)
    webhook, secret = await records.webhooks.create(NewWebhook(name="ops", url=receiver.url), created_by="ann")
    receiver.answers = [500, 400]
    ref = await _added(store, webhook)
    async with delivering(store, records, outgoing):
        job = await _ended(store, ref)
    events = await store.events(QUEUE, after="", limit=1_000, timeout_ms=0)
    seen = [job, events, await store.logs(ref), await records.webhooks.list(), await records.webhooks.get(webhook.id)]
    told = [record.getMessage() + str(record.args) for record in caplog.records if record.name.startswith("bullpen")]
    assert len(receiver.received) == 2
    assert secret not in msgspec.json.encode(seen).decode() + repr(seen) + "".join(told)
    assert all(secret.encode() not in got.body + str(got.headers).encode() for got in receiver.received)


@pytest.mark.parametrize("kinds", [("sqlite", "sqlite")], ids=["files"])
async def test_records_are_opened_by_their_address_and_closed_with_the_worker(
    store: Store, records: Records, address: str, receiver: Receiver, outgoing: Outgoing
) -> None:
    """As `bullpen worker bullpen.builtin.ready:pen` does it."""
    webhook, _ = await records.webhooks.create(NewWebhook(name="ops", url=receiver.url), created_by="ann")
    ref = await _added(store, webhook)
    async with delivering(store, address, outgoing):
        assert (await _ended(store, ref)).state == State.COMPLETED
