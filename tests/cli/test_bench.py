"""`bullpen bench`: what it tells, and that nothing of it stays."""

import signal
import time

from bullpen import Queue, Store
from tests.cli.commands import LIMIT_S, Folder

_BRIEF = ("bench", "--seconds", "200ms")


async def test_each_measure_is_told_and_nothing_stays(folder: Folder, store: Store) -> None:
    await Queue(store, "mail").add("welcome", id="one")
    answer = folder.bullpen(*_BRIEF)
    assert answer.code == 0
    told = [line.split("  ")[0] for line in answer.lines]
    assert told == [
        store.facts.name,
        "adds, one at a time",
        "adds, 500 at once",
        "work, one worker of 50 slots",
        "pickup, p50",
        "pickup, p99",
    ]
    assert list(await store.queues()) == ["mail"]
    assert (await store.counts("mail")).waiting == 1


async def test_programs_get_the_same(folder: Folder, store: Store) -> None:
    found = folder.bullpen(*_BRIEF, "--json").json
    assert found["store"] == store.facts.name
    assert set(found) == {"store", "adds", "adds_at_once", "work", "pickup"}
    assert all(found[name]["jobs"] > 0 for name in ("adds", "adds_at_once", "work", "pickup"))
    assert found["pickup"]["p50_ms"] <= found["pickup"]["p99_ms"]
    assert list(await store.queues()) == []


async def test_ctrl_c_leaves_nothing_behind(folder: Folder, store: Store) -> None:
    """In the middle of adds, which is where most of it would stay."""
    with folder.started("bench", "--seconds", "1h") as bench:
        until_s = time.monotonic() + LIMIT_S
        while not await store.queues():
            assert time.monotonic() < until_s
        bench.send_signal(signal.SIGINT)
        assert bench.wait(LIMIT_S) == 130
    assert list(await store.queues()) == []
