"""One job for one subject, whoever added it: every mode, with the first job of one side and the second of the other."""

from typing import Any

from bullpen import State, debounce, dedup
from bullpen.stores.base import AddOutcome
from tests.interop.cells import NPM_5, PYPI, TO_BULLPEN, TO_PEER, cell
from tests.interop.peers import Peer
from tests.interop.us import QUEUE, Us
from tests.support.redis_harness import RedisHarness

HOUR_MS = 3_600_000
NO_RESCHEDULE = {NPM_5: "new in npm 6.x", PYPI: "new in npm 6.x"}


def subject_key(harness: RedisHarness) -> str:
    return f"{harness.prefix}:{QUEUE}:de:s"


async def peer_adds(peer: Peer, name: str, *, delay_ms: int = 0, **mode: Any) -> str:
    opts = {"deduplication": {"id": "s", **mode}, **({"delay": delay_ms} if delay_ms else {})}
    return str(await peer.call("add", name=name, data={"from": name}, opts=opts))


# ── until it has ended ───────────────────────────────────────────────────────────────────


@cell("deduplication: until it ended", TO_BULLPEN)
async def test_a_job_of_the_peer_stands_for_ours_until_it_ended(us: Us, peer: Peer) -> None:
    first = await peer_adds(peer, "first")
    second = await us.queue.add("second", dedup="s")
    assert (second.id, second.outcome) == (first, AddOutcome.DEDUPLICATED)
    async with us.working():
        await us.job(first).result(60)
    assert (await us.queue.add("third", dedup="s")).outcome == AddOutcome.ADDED


@cell("deduplication: until it ended", TO_PEER)
async def test_a_job_of_ours_stands_for_the_peers_until_it_ended(us: Us, peer: Peer) -> None:
    first = await us.queue.add("first", dedup="s")
    assert await peer.call("subject", id="s") == first.id
    assert await peer_adds(peer, "second") == first.id
    await peer.call("work", options={})
    await first.result(60)
    assert await peer_adds(peer, "third") != first.id


# ── throttle, extend ─────────────────────────────────────────────────────────────────────


@cell("deduplication: throttle (ttl)", TO_BULLPEN)
async def test_a_throttle_of_the_peer_holds_for_us_after_the_job_ended(
    us: Us, peer: Peer, harness: RedisHarness
) -> None:
    first = await peer_adds(peer, "first", ttl=HOUR_MS)
    async with us.working():
        await us.job(first).result(60)
    assert (await us.queue.add("second", dedup=dedup("s", ttl=3600))).outcome == AddOutcome.DEDUPLICATED
    await harness.raw.pexpire(subject_key(harness), 0)
    assert (await us.queue.add("third", dedup=dedup("s", ttl=3600))).outcome == AddOutcome.ADDED


@cell("deduplication: throttle (ttl)", TO_PEER)
async def test_a_throttle_of_ours_holds_for_the_peer_after_the_job_ended(
    us: Us, peer: Peer, harness: RedisHarness
) -> None:
    first = await us.queue.add("first", dedup=dedup("s", ttl=3600))
    await peer.call("work", options={})
    await first.result(60)
    assert await peer_adds(peer, "second", ttl=HOUR_MS) == first.id
    await harness.raw.pexpire(subject_key(harness), 0)
    assert await peer_adds(peer, "third", ttl=HOUR_MS) != first.id


@cell("deduplication: extend", TO_BULLPEN)
async def test_our_duplicate_starts_the_peers_time_again(us: Us, peer: Peer, harness: RedisHarness) -> None:
    first = await peer_adds(peer, "first", ttl=HOUR_MS, extend=True)
    await harness.raw.pexpire(subject_key(harness), HOUR_MS // 2)
    second = await us.queue.add("second", dedup=dedup("s", ttl=3600, extend=True))
    assert (second.id, second.outcome) == (first, AddOutcome.DEDUPLICATED)
    assert await harness.raw.pttl(subject_key(harness)) > HOUR_MS // 2


@cell("deduplication: extend", TO_PEER)
async def test_the_peers_duplicate_starts_our_time_again(us: Us, peer: Peer, harness: RedisHarness) -> None:
    first = await us.queue.add("first", dedup=dedup("s", ttl=3600, extend=True))
    await harness.raw.pexpire(subject_key(harness), HOUR_MS // 2)
    assert await peer_adds(peer, "second", ttl=HOUR_MS, extend=True) == first.id
    assert await harness.raw.pttl(subject_key(harness)) > HOUR_MS // 2


# ── replace, debounce, reschedule ────────────────────────────────────────────────────────


@cell("deduplication: replace", TO_BULLPEN)
async def test_our_job_takes_the_place_of_a_delayed_one_of_the_peer(us: Us, peer: Peer) -> None:
    first = await peer_adds(peer, "first", delay_ms=HOUR_MS, replace=True)
    second = await us.queue.add("second", delay=0.1, dedup=dedup("s", replace=True))
    assert second.outcome == AddOutcome.REPLACED
    assert await peer.call("job", id=first) is None
    assert await peer.call("subject", id="s") == second.id
    async with us.working():
        await second.result(60)


@cell("deduplication: replace", TO_PEER)
async def test_a_job_of_the_peer_takes_the_place_of_a_delayed_one_of_ours(us: Us, peer: Peer) -> None:
    await us.queue.add("first", delay=3600, dedup=dedup("s", replace=True))
    second = await peer_adds(peer, "second", delay_ms=100, replace=True)
    counts = await us.queue.counts()
    assert (counts.delayed, counts.unfinished) == (1, 1)
    await peer.call("work", options={})
    assert (await us.job(second).result(60))["echo"] == {"from": "second"}


@cell("deduplication: debounce", TO_BULLPEN)
async def test_our_job_is_the_last_of_a_debounce_that_the_peer_began(us: Us, peer: Peer, harness: RedisHarness) -> None:
    await peer_adds(peer, "first", delay_ms=HOUR_MS, ttl=HOUR_MS, extend=True, replace=True)
    await harness.raw.pexpire(subject_key(harness), HOUR_MS // 2)
    last = await us.queue.add("last", delay=0.1, dedup=debounce("s", 3600))
    assert last.outcome == AddOutcome.REPLACED
    assert await harness.raw.pttl(subject_key(harness)) > HOUR_MS // 2
    async with us.working():
        await last.result(60)
    assert (await us.queue.counts()).unfinished == 0


@cell("deduplication: debounce", TO_PEER)
async def test_the_peers_job_is_the_last_of_a_debounce_that_we_began(us: Us, peer: Peer, harness: RedisHarness) -> None:
    await us.queue.add("first", delay=3600, dedup=debounce("s", 3600))
    await harness.raw.pexpire(subject_key(harness), HOUR_MS // 2)
    last = await peer_adds(peer, "last", delay_ms=100, ttl=HOUR_MS, extend=True, replace=True)
    assert await harness.raw.pttl(subject_key(harness)) > HOUR_MS // 2
    await peer.call("work", options={})
    await us.job(last).result(60)
    assert (await us.queue.counts()).unfinished == 0


@cell("deduplication: reschedule", TO_BULLPEN, lacks=NO_RESCHEDULE)
async def test_a_job_of_ours_that_the_peer_rescheduled_is_run_by_us_at_its_new_time(us: Us, peer: Peer) -> None:
    first = await us.queue.add("first", delay=3600, dedup=dedup("s"))
    assert await peer_adds(peer, "second", delay_ms=100, reschedule=True) == first.id
    async with us.working():
        assert (await first.result(60))["name"] == "first"


@cell("deduplication: reschedule", TO_PEER, lacks=NO_RESCHEDULE)
async def test_a_job_that_the_peer_rescheduled_is_shown_by_us(us: Us, peer: Peer) -> None:
    """Bullpen has no word for this mode, and leaves it alone."""
    first = await peer_adds(peer, "first", delay_ms=HOUR_MS, reschedule=True)
    due_ms = (await us.record(first)).run_at_ms
    assert due_ms is not None
    await peer_adds(peer, "second", delay_ms=2 * HOUR_MS, reschedule=True)
    record = await us.record(first)
    assert record.state == State.DELAYED
    assert record.run_at_ms is not None
    assert record.run_at_ms >= due_ms + HOUR_MS


# ── keep the last one ────────────────────────────────────────────────────────────────────


@cell("deduplication: keep last if active", TO_BULLPEN)
async def test_the_last_one_that_the_peer_kept_is_added_by_us(us: Us, peer: Peer) -> None:
    """The peer stores the newest duplicate of a job that we run; our end of that job adds it."""
    async with us.working() as handling:
        opts = {"deduplication": {"id": "s", "keepLastIfActive": True}}
        first = await peer.call("add", name="first", data={"hold": True}, opts=opts)
        assert await us.held(handling) == first
        for name in ("dropped", "last"):
            await peer.call("add", name=name, data={"from": name}, opts=opts)
        assert (await us.queue.counts()).unfinished == 1
        handling.release()
        order = await us.order(2)
    assert order[0] == first
    record = await us.record(order[1])
    assert (record.name, record.data) == ("last", b'{"from":"last"}')


@cell("deduplication: keep last if active", TO_PEER)
async def test_the_last_one_that_we_kept_is_added_by_the_peer(us: Us, peer: Peer) -> None:
    await peer.call("work", options={})
    subject = dedup("s", keep_last_if_active=True)
    first = await us.queue.add("first", {"hold": True}, dedup=subject)
    await peer.hears("holding", id=first.id)
    for name in ("dropped", "last"):
        assert (await us.queue.add(name, {"from": name}, dedup=subject)).outcome == AddOutcome.KEPT_LAST
    assert (await us.queue.counts()).unfinished == 1
    await peer.call("release")
    order = await us.order(2)
    assert order[0] == first.id
    assert (await us.record(order[1])).data == b'{"from":"last"}'
