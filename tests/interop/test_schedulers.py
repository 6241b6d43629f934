"""BullMQ's job schedulers and our schedules are one: whoever made one, whoever claims its tick adds the next."""

import asyncio
from datetime import UTC, datetime
from typing import Any
from zoneinfo import ZoneInfo

import pytest

from bullpen import EventKind, Overlap, ScheduleMissing
from bullpen.job.schedule import tick_of
from bullpen.upkeep.advancer import advance
from tests.interop.cells import NPM_5, NPM_6, TO_BULLPEN, TO_PEER, cell
from tests.interop.peers import Peer
from tests.interop.us import QUEUE, Us

EVERY_MS = 100


async def peer_makes(peer: Peer, schedule_id: str = "s", *, data: Any = None, **repeat: Any) -> str:
    made = await peer.call(
        "upsertScheduler", id=schedule_id, repeat=repeat, name="sweep", data=data or {"n": 1}, opts={"attempts": 2}
    )
    assert isinstance(made, str)
    return made


async def listed(peer: Peer) -> dict[str, Any]:
    """The one scheduler that the peer lists."""
    (found,) = await peer.call("schedulers")
    assert isinstance(found, dict)
    return found


def times(ticks: list[str]) -> list[int]:
    return [tick.at_ms for job_id in ticks if (tick := tick_of(job_id)) is not None]


async def ran(us: Us, count: int) -> list[str]:
    """The first ticks that completed, in order, once there are that many."""
    events = await us.events(EventKind.COMPLETED, count)
    return [event.job_id or "" for event in events if event.kind == EventKind.COMPLETED][:count]


async def added(us: Us) -> list[str]:
    events = await us.events(EventKind.ADDED)
    return [event.job_id or "" for event in events if event.kind == EventKind.ADDED]


# ── looking ──────────────────────────────────────────────────────────────────────────────


@cell("schedule: make and list", TO_BULLPEN)
async def test_a_scheduler_of_the_peer_is_a_schedule_to_us(us: Us, peer: Peer) -> None:
    job_id = await peer_makes(peer, pattern="0 3 * * *", tz="Europe/Berlin", limit=5)
    (record,) = await us.queue.schedules.list()
    timing = record.schedule.timing
    assert (timing.cron, timing.tz, timing.limit, timing.every_ms) == ("0 3 * * *", "Europe/Berlin", 5, None)
    assert (record.schedule.name, record.schedule.data, record.schedule.spec.attempts) == ("sweep", b'{"n":1}', 2)
    assert (record.count, record.ticks, record.pending, record.paused) == (1, 1, True, False)
    assert record.schedule.overlap == Overlap.ALLOW, "there ticks overlap"
    assert job_id == f"repeat:s:{record.next_ms}"
    assert record.next_ms is not None
    local = datetime.fromtimestamp(record.next_ms / 1000, ZoneInfo("Europe/Berlin"))
    assert (local.hour, local.minute) == (3, 0)


@cell("schedule: make and list", TO_PEER)
async def test_our_schedule_is_a_scheduler_to_the_peer(us: Us, peer: Peer) -> None:
    job = us.queue.prepare("sweep", {"n": 1}, attempts=2)
    end = datetime(2099, 1, 1, tzinfo=UTC)
    record = await us.queue.schedules.upsert("s", job, cron="0 3 * * *", tz="Europe/Berlin", limit=5, end=end)
    seen = await listed(peer)
    assert (seen["key"], seen["name"], seen["next"]) == ("s", "sweep", record.next_ms)
    assert (seen["pattern"], seen["tz"], seen["limit"]) == ("0 3 * * *", "Europe/Berlin", 5)
    assert seen["endDate"] == round(end.timestamp() * 1000)
    assert seen["template"]["data"] == {"n": 1}
    tick = await peer.call("job", id=f"repeat:s:{record.next_ms}")
    assert (tick["state"], tick["data"], tick["opts"]["repeat"]["count"]) == ("delayed", {"n": 1}, 1)


# ── ticking ──────────────────────────────────────────────────────────────────────────────


@pytest.mark.parametrize("repeat", [{"every": EVERY_MS}, {"pattern": "* * * * * *"}], ids=["every", "cron"])
@cell("schedule: tick", TO_BULLPEN)
async def test_our_worker_goes_on_with_a_scheduler_of_the_peer(us: Us, peer: Peer, repeat: dict[str, Any]) -> None:
    async with us.working(concurrency=2):
        await peer_makes(peer, **repeat)
        ticks = await ran(us, 3)
    assert len(set(ticks)) == 3
    assert times(ticks) == sorted(times(ticks))
    record = await us.queue.schedules.get("s")
    assert record.ticks >= 4
    assert (await listed(peer))["next"] == record.last_ms
    seen = await peer.call("job", id=ticks[2])
    assert (seen["data"], seen["opts"]["attempts"], seen["opts"]["repeat"]["count"]) == ({"n": 1}, 2, 3)


@pytest.mark.parametrize("when", [{"every": EVERY_MS / 1000}, {"cron": "* * * * * *"}], ids=["every", "cron"])
@cell("schedule: tick", TO_PEER)
async def test_a_worker_of_the_peer_goes_on_with_our_schedule(us: Us, peer: Peer, when: dict[str, Any]) -> None:
    await peer.call("work", options={})
    await us.queue.schedules.upsert("s", us.queue.prepare("sweep", {"n": 1}, attempts=2), **when)
    ticks = await ran(us, 3)
    assert len(set(ticks)) == 3
    record = await us.queue.schedules.get("s")
    assert record.ticks >= 3
    assert record.schedule.overlap == Overlap.SKIP, "an advance keeps what only we know"
    tick = await us.record(ticks[2])
    assert (tick.data, tick.spec.attempts) == (b'{"n":1}', 2)


@cell("schedule: tick", TO_BULLPEN)
async def test_workers_of_both_share_one_schedule(us: Us, peer: Peer) -> None:
    """No tick twice, none out of step, whoever claimed it."""
    await peer.call("work", options={"name": "peer-1"})
    async with us.working():
        await peer_makes(peer, every=EVERY_MS)
        ticks = await ran(us, 20)
        await us.queue.schedules.remove("s")
    every_tick = [job_id for job_id in await added(us) if tick_of(job_id)]
    assert len(every_tick) == len(set(every_tick))
    assert len({at_ms % EVERY_MS for at_ms in times(ticks)}) == 1


@cell("schedule: limit", TO_PEER)
async def test_the_peer_ends_our_schedule_at_its_limit(us: Us, peer: Peer) -> None:
    """It leaves it with nothing pending; whoever of us looks notes that it has ended."""
    await peer.call("work", options={})
    await us.queue.schedules.upsert("s", "sweep", every=EVERY_MS / 1000, limit=3)
    assert len(set(await ran(us, 3))) == 3
    async with asyncio.timeout(60):
        while not (idle := await us.store.idle_schedules([QUEUE])):
            await asyncio.sleep(0.01)  # between two looks: the last tick has completed, its record follows
    assert await advance(us.store, idle[0])
    assert (await us.queue.schedules.get("s")).ended
    assert (await us.queue.counts()).unfinished == 0


@cell("schedule: limit", TO_BULLPEN)
async def test_we_end_a_scheduler_of_the_peer_at_its_limit(us: Us, peer: Peer) -> None:
    async with us.working():
        await peer_makes(peer, every=EVERY_MS, limit=3)
        await ran(us, 3)
    assert (await us.queue.schedules.get("s")).ended
    assert (await us.queue.counts()).completed == 3


# ── changing and removing ────────────────────────────────────────────────────────────────


@cell("schedule: change", TO_PEER)
async def test_an_upsert_by_the_peer_takes_ours_over(us: Us, peer: Peer) -> None:
    """It drops what it does not know: a paused schedule goes on, and its ticks overlap."""
    await us.queue.schedules.upsert("s", "sweep", cron="0 3 * * *")
    await us.queue.schedules.pause("s")
    await peer_makes(peer, pattern="0 4 * * *")
    record = await us.queue.schedules.get("s")
    assert (record.schedule.timing.cron, record.paused, record.pending) == ("0 4 * * *", False, True)
    assert record.schedule.overlap == Overlap.ALLOW
    assert (await us.queue.counts()).delayed == 1


@cell("schedule: change", TO_BULLPEN)
async def test_an_upsert_by_us_takes_the_peers_over(us: Us, peer: Peer) -> None:
    await peer_makes(peer, pattern="0 4 * * *")
    record = await us.queue.schedules.upsert("s", "other", {"n": 2}, every=3600)
    seen = await listed(peer)
    assert (seen["name"], seen["every"], seen["next"]) == ("other", 3_600_000, record.next_ms)
    assert seen.get("pattern") is None
    assert (await us.queue.counts()).unfinished == 1


@cell("schedule: pause", TO_PEER)
async def test_a_schedule_that_we_paused_gives_the_peer_nothing(us: Us, peer: Peer) -> None:
    await us.queue.schedules.upsert("s", "sweep", every=3600)
    await us.queue.schedules.pause("s")
    await peer.call("work", options={})
    await (await us.queue.add("other")).result(60)
    assert (await us.queue.counts()).completed == 1
    assert (await listed(peer))["key"] == "s"


@cell("schedule: remove", TO_BULLPEN)
async def test_we_remove_a_scheduler_of_the_peer(us: Us, peer: Peer) -> None:
    await peer_makes(peer, pattern="0 4 * * *")
    await us.queue.schedules.remove("s")
    assert await peer.call("schedulers") == []
    assert (await us.queue.counts()).unfinished == 0


@cell("schedule: remove", TO_PEER)
async def test_the_peer_removes_our_schedule(us: Us, peer: Peer) -> None:
    await us.queue.schedules.upsert("s", "sweep", cron="0 3 * * *")
    await peer.call("removeScheduler", id="s")
    with pytest.raises(ScheduleMissing):
        await us.queue.schedules.get("s")
    assert (await us.queue.counts()).unfinished == 0


# ── where next times differ ──────────────────────────────────────────────────────────────


@pytest.mark.parametrize("peer", [NPM_5, NPM_6], indirect=True)
@pytest.mark.parametrize(
    "pattern", ["0 0 1 * 1", "0 0 */2 * 1", "0 0 L * *", "0 0 * * 5L", "@monthly", "0 0 9 * * 1#2"]
)
async def test_next_times_are_the_same(us: Us, peer: Peer, pattern: str) -> None:
    """Outside changes of clocks; the day of the month or of the week, as both have it."""
    await peer_makes(peer, "theirs", pattern=pattern)
    ours = await us.queue.schedules.upsert("ours", "sweep", cron=pattern)
    theirs = await us.queue.schedules.get("theirs")
    assert theirs.next_ms == ours.next_ms
