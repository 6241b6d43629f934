"""A job's life as the API tells it: each activation with how it ended, and no invention where the log is cut."""

import msgspec
import pytest

from bullpen import Failure
from bullpen.job.events import Event, EventKind
from bullpen.job.record import CrashKind, JobRecord, JobRef
from bullpen.job.spec import JobSpec
from bullpen.job.state import State
from bullpen.job.verdicts import Completed, Failed, Postponed, Released, Retry, Settlement, Verdict
from bullpen.server.activations import life_of
from bullpen.server.event_history import Past
from bullpen.server.site import Site
from bullpen.stores.base import FROM_START, EventPage, Store
from tests.server.calling import Client
from tests.support.around import StoreAround

_PATH = "/v1/queues/mail/jobs/one"


class _Hand:
    """Claims the one job again and again, and settles it as told."""

    def __init__(self, site: Site) -> None:
        self.site = site
        self.times = 0

    async def run(self, verdict: Verdict) -> None:
        self.times += 1
        claimed = await self.site.store.claim(
            {"mail": 1}, worker=f"worker-{self.times}", lease_ms=60_000, request=f"claim {self.times}"
        )
        settled = [Settlement(claimed.jobs[0].lease, verdict)]
        await self.site.store.settle(settled, request=f"settle {self.times}")


@pytest.fixture
async def hand(site: Site) -> _Hand:
    await site.queue("mail").add("welcome", id="one", attempts=3)
    return _Hand(site)


def _failure(n: int) -> Failure:
    return Failure(
        f"fault {n}", type="OSError", stack=f"Traceback (most recent call last):\n  line {n}\nOSError: fault {n}"
    )


async def test_every_attempt_is_told_with_its_own_error_and_stack(hand: _Hand, client: Client) -> None:
    await hand.run(Retry(_failure(1)))
    await hand.run(Retry(_failure(2)))
    await hand.run(Completed(b"7"))
    job = await client.get(_PATH)
    assert [one["number"] for one in job["activations"]] == [1, 2, 3]
    assert [one["outcome"] for one in job["activations"]] == ["retried", "retried", "completed"]
    assert "fault 1" in job["activations"][0]["error"]
    assert job["activations"][1]["error"].endswith("fault 2")
    assert [one["stack"] for one in job["activations"]] == [*job["stacks"], None]
    assert [one["worker"] for one in job["activations"]] == [None, None, "worker-3"]
    assert all(one["started_ms"] <= one["ended_ms"] for one in job["activations"])
    assert job["forgotten"] == 0
    assert job["timeline"][0]["kind"] == "added"


async def test_a_retry_tells_when_the_next_is_due(hand: _Hand, client: Client) -> None:
    await hand.run(Retry(_failure(1), delay_ms=3_600_000))
    job = await client.get(_PATH)
    (one,) = job["activations"]
    assert (one["outcome"], one["error"], one["error_kind"]) == ("retried", "fault 1", "error")
    assert one["next_ms"] == job["run_at_ms"] >= one["ended_ms"]
    assert job["timeline"][-1]["kind"] == "due"


async def test_what_uses_no_attempt_is_told_apart(hand: _Hand, client: Client) -> None:
    await hand.run(Postponed(delay_ms=0))
    await hand.run(Released(CrashKind.DEPLOY))
    job = await client.get(_PATH)
    assert [one["outcome"] for one in job["activations"]] == ["set-aside", "set-aside"]


async def test_where_both_happened_neither_is_claimed(hand: _Hand, client: Client) -> None:
    await hand.run(Released(CrashKind.DEPLOY))
    await hand.run(Retry(_failure(1)))
    job = await client.get(_PATH)
    assert [one["outcome"] for one in job["activations"]] == ["unknown", "unknown"]
    assert [one["stack"] for one in job["activations"]] == [None, None]


async def test_a_lost_worker_is_told_with_how_it_was_lost(hand: _Hand, client: Client) -> None:
    await hand.run(Released(CrashKind.OUT_OF_MEMORY))
    await hand.run(Completed(b"1"))
    lost, done = (await client.get(_PATH))["activations"]
    assert (lost["outcome"], lost["crash"]) == ("lost", "out-of-memory")
    assert done["outcome"] == "completed"


async def test_a_retry_by_hand_begins_a_new_series(hand: _Hand, client: Client, site: Site) -> None:
    for n in (1, 2):
        await hand.run(Retry(_failure(n)))
    await hand.run(Failed(_failure(3)))
    await site.store.retry(JobRef("mail", "one"))
    waiting = await client.get(_PATH)
    assert [one["outcome"] for one in waiting["activations"]] == ["retried", "retried", "failed"]
    assert waiting["timeline"][-1] | {"at_ms": 0} == {
        "at_ms": 0, "kind": "retried", "detail": "from failed", "activation": None,
    }  # fmt: skip
    await hand.run(Completed(b"1"))
    job = await client.get(_PATH)
    assert [one["outcome"] for one in job["activations"]] == ["retried", "retried", "failed", "completed"]
    assert [one["stack"] for one in job["activations"]] == [*job["stacks"], None]
    assert job["activations"][2]["error"] == "fault 3"


async def test_an_id_that_was_used_before_tells_nothing_of_the_other_job(
    hand: _Hand, client: Client, site: Site
) -> None:
    await hand.run(Retry(_failure(1)))
    await client.get(_PATH)
    await site.store.remove(JobRef("mail", "one"))
    await site.queue("mail").add("other", id="one", attempts=2)
    await hand.run(Retry(_failure(2)))
    job = await client.get(_PATH)
    assert [(one["number"], one["error"]) for one in job["activations"]] == [(1, "fault 2")]


# ── what it costs ────────────────────────────────────────────────────────────────────────


class _Log(StoreAround):
    """Notes from where the event log is read."""

    def __init__(self, inner: Store) -> None:
        super().__init__(inner)
        self.read: list[str | None] = []

    async def events(self, queue: str, *, after: str | None, limit: int, timeout_ms: int) -> EventPage:
        self.read.append(after)
        return await self.inner.events(queue, after=after, limit=limit, timeout_ms=timeout_ms)


async def test_a_job_that_ran_once_costs_no_look_at_the_log(hand: _Hand, site: Site) -> None:
    log = _Log(site.store)
    await hand.run(Completed(b"1"))
    assert await Past(log).events(await site.store.job(JobRef("mail", "one"))) == ()
    assert log.read == []


async def test_the_log_is_read_once_and_then_only_what_is_new(hand: _Hand, site: Site) -> None:
    log = _Log(site.store)
    past = Past(log)
    await hand.run(Retry(_failure(1)))
    first = await past.events(await site.store.job(JobRef("mail", "one")))
    await hand.run(Completed(b"1"))
    second = await past.events(await site.store.job(JobRef("mail", "one")))
    assert [event.kind for event in second[len(first) :]] == ["active", "completed"]
    assert list(second[: len(first)]) == list(first)
    assert log.read == [FROM_START, log.read[1]]
    assert log.read[1] == first[-1].cursor


async def test_a_long_log_is_read_in_parts(hand: _Hand, site: Site, monkeypatch: pytest.MonkeyPatch) -> None:
    """One request reads so much and no more, and the next goes on from there."""
    monkeypatch.setattr("bullpen.server.event_history._PAGE", 1)
    monkeypatch.setattr("bullpen.server.event_history._PAGES", 2)
    await hand.run(Retry(_failure(1)))
    job = await site.store.job(JobRef("mail", "one"))
    log = _Log(site.store)
    past = Past(log)
    found = await past.events(job)
    assert (found, len(log.read)) == ((), 2)
    while not (found := await past.events(job)):
        pass
    assert found[0].kind == "added"
    assert len(set(log.read)) == len(log.read), "nothing is read twice"


# ── a log that is cut ────────────────────────────────────────────────────────────────────


def _record(**changed: object) -> JobRecord:
    job = JobRecord(JobRef("mail", "one"), "welcome", b"{}", State.FAILED, JobSpec(attempts=3), added_ms=10, worker="w")
    return msgspec.structs.replace(job, **changed)


def test_of_a_log_that_is_gone_only_the_newest_activation_is_left() -> None:
    job = _record(epoch=3, attempts_made=3, started_ms=50, finished_ms=60, failure=_failure(3), stacks=("a", "b", "c"))
    life = life_of(job, ())
    assert life.forgotten == 2
    (one,) = life.activations
    assert (one.number, one.started_ms, one.ended_ms, one.outcome) == (3, 50, 60, "failed")
    assert (one.error, one.stack, one.worker) == ("fault 3", "c", "w")
    assert [moment.kind for moment in life.moments] == ["added", "active", "failed"]


def test_a_log_that_begins_in_the_middle_tells_how_much_it_lacks() -> None:
    events = [
        Event(EventKind.DELAYED, "one", 30, prev="active", run_at_ms=40),
        Event(EventKind.ACTIVE, "one", 41),
        Event(EventKind.DELAYED, "one", 45, prev="active", run_at_ms=55),
    ]
    job = _record(state=State.DELAYED, epoch=3, attempts_made=3, started_ms=41, run_at_ms=55, stacks=("a", "b", "c"))
    life = life_of(job, events)
    assert life.forgotten == 2
    assert [(one.number, one.outcome, one.next_ms, one.stack) for one in life.activations] == [(3, "retried", 55, "c")]


def test_an_activation_whose_end_is_gone_has_no_end() -> None:
    life = life_of(_record(state=State.WAITING, epoch=2, attempts_made=1, started_ms=41), ())
    assert [(one.ended_ms, one.outcome) for one in life.activations] == [(None, "unknown")]


def test_a_job_that_never_ran_has_no_activations() -> None:
    life = life_of(_record(state=State.WAITING), ())
    assert (life.activations, life.forgotten) == ([], 0)
    assert [moment.kind for moment in life.moments] == ["added"]
