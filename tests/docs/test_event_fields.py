"""The table of events tells which fields are set: here the store is made to write every kind."""

import re
from pathlib import Path

import msgspec
import pytest

from bullpen import CrashKind, CrashLimits, Event, EventKind, Failure, Queue, SqliteStore, debounce, dedup, keep
from bullpen.job.verdicts import AwaitChildren, Cancelled, Completed, Failed, Postponed, Retry, Settlement, Verdict
from bullpen.stores.base import FROM_START
from bullpen.testing.clock import ManualClock
from tests.docs.pages import REFERENCE, rows

_ON_ALL = {"kind", "at_ms", "cursor"}
_OF_A_JOB = {"job_id", "tenant"}
_OF_THE_QUEUE = {EventKind.DRAINED, EventKind.CLEANED, EventKind.PAUSED, EventKind.RESUMED}


def _documented() -> dict[str, tuple[set[str], set[str]]]:
    """By kind: what is always set, and what may be."""
    fields = {field.name for field in msgspec.structs.fields(Event)}
    told = {}
    for kind, _, always, sometimes in rows((REFERENCE / "events.md").read_text()):
        own = _ON_ALL if kind in _OF_THE_QUEUE else _ON_ALL | _OF_A_JOB
        sure = own | (fields & set(re.findall(r"`(\w+)`", always)))
        told[kind] = sure, sure | (fields & set(re.findall(r"`(\w+)`", sometimes)))
    return told


def _set_fields(event: Event) -> set[str]:
    return {field.name for field in msgspec.structs.fields(Event) if getattr(event, field.name) != field.default}


class Scene:
    """A queue of a tenant, and a claimant that gives the verdicts it is told to."""

    def __init__(self, store: SqliteStore, clock: ManualClock) -> None:
        self.store = store
        self.clock = clock
        self.queue = Queue(store, "scene", clock=clock)
        self._asked = 0

    async def claim(self) -> Settlement:
        self._asked += 1
        claimed = await self.store.claim({"scene": 1}, worker="w", lease_ms=1_000, request=f"claim {self._asked}")
        return Settlement(claimed.jobs[0].lease, Completed())

    async def end(self, verdict: Verdict) -> None:
        held = await self.claim()
        await self.store.settle([Settlement(held.lease, verdict)], request=f"settle {self._asked}")


@pytest.fixture
async def scene(tmp_path: Path) -> Scene:
    clock = ManualClock()
    store = SqliteStore(tmp_path / "events.db", clock=clock)
    await store.open()
    return Scene(store, clock)


async def _let_everything_happen(scene: Scene) -> None:
    queue, store = scene.queue, scene.store
    await queue.add("plain", id="one", tenant="acme", priority=3)
    await queue.add("plain", id="one", tenant="acme")
    await scene.end(Retry(Failure("no")))
    await scene.end(Retry(Failure("no"), delay_ms=10))
    scene.clock.advance(20)
    await scene.end(Postponed(10))
    scene.clock.advance(20)
    await scene.end(Failed(Failure("no")))
    await queue.job("one").retry()
    await scene.end(Completed(b"1"))
    for mode in (debounce("a", 5), dedup("b"), dedup("c", keep_last_if_active=True)):
        await queue.add("subject", tenant="acme", delay=5 if mode.replace else 0, dedup=mode)
        if mode.keep_last_if_active:
            await scene.claim()
        await queue.add("subject", tenant="acme", delay=5 if mode.replace else 0, dedup=mode)
    active = (await queue.jobs("active")).jobs[0]
    await queue.job(active.id).set_progress(50)
    await queue.job(active.id).cancel("enough")
    await store.report_crash("w", CrashKind.KILLED, limits=CrashLimits())
    await scene.claim()
    scene.clock.advance(2_000)
    await store.rescue(["scene"], limits=CrashLimits(total=0))
    delayed = (await queue.jobs("delayed")).jobs[0]
    await queue.job(delayed.id).change_delay(7)
    await queue.job(delayed.id).promote()
    await queue.job(delayed.id).cancel()
    await queue.add("late", tenant="acme", start_by=0.001)
    scene.clock.advance(10)
    await store.rescue(["scene"], limits=CrashLimits())
    await queue.pause()
    await queue.resume()
    await queue.add("gone", tenant="acme", keep_failed=keep(0))
    await scene.end(Cancelled("by itself"))
    await queue.drain(delayed=True)
    await queue.clean("failed")
    child = queue.prepare("child", tenant="acme")
    parent = queue.prepare("parent", tenant="acme", delay=5)
    await queue.add_prepared(msgspec.structs.replace(parent, children=(child,)))
    await scene.end(Completed())
    scene.clock.advance(6_000)
    held = await scene.claim()
    await store.add_children(held.lease, [child], request="children")
    await store.settle([Settlement(held.lease, AwaitChildren())], request="await")
    await scene.end(Completed())
    await scene.end(Completed())
    await queue.add("last", tenant="acme")
    await scene.end(Completed())


async def test_fields_are_set_as_the_table_says(scene: Scene) -> None:
    """A listener may rely on what the reference calls always set, and finds nothing that it does not mention."""
    await _let_everything_happen(scene)
    page = await scene.store.events("scene", after=FROM_START, limit=1_000, timeout_ms=0)
    await scene.store.close()
    documented = _documented()
    assert {event.kind for event in page.events} == set(EventKind)
    for event in page.events:
        always, at_most = documented[event.kind]
        assert always <= _set_fields(event) <= at_most, event
