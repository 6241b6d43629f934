"""A mover that ends at any moment is followed by another, and no job is lost or there twice."""

import asyncio
import random
from collections import Counter
from collections.abc import Awaitable, Callable, Mapping, Sequence
from typing import TypeVar

import pytest

from bullpen import CrashKind, CrashLimits, State, Store
from bullpen.job.spec import JobSpec, Keep, NewJob
from bullpen.job.verdicts import Completed
from bullpen.moving import mover as mover_module
from bullpen.moving.mover import Mover
from bullpen.stores.base import Counts
from bullpen.stores.moving import NO_SIGNALS, Cargo, MemoryPage, Move, SavedJob
from bullpen.testing.conformance.moves import MAIL, PATIENCE_S, WORKER, add, add_many, claim, claim_one, settle_one
from tests.moving.places import Place

T = TypeVar("T")


class Killed(BaseException):
    """The mover's process is gone: no handler of it runs on."""


class Fate:
    """Ends the mover before or after one of its steps."""

    def __init__(self, steps: int, *, before: bool) -> None:
        self._left = steps
        self._before = before

    async def step(self, verb: Callable[[], Awaitable[T]]) -> T:
        self._left -= 1
        if not self._left and self._before:
            raise Killed
        answer = await verb()
        if not self._left:
            raise Killed
        return answer


class Doomed:
    """A store whose moving verbs may be the last thing that its process did."""

    def __init__(self, store: Store, fate: Fate) -> None:
        self._store = store
        self._fate = fate

    def __getattr__(self, name: str) -> object:
        return getattr(self._store, name)

    async def pause(self, queue: str) -> None:
        await self._fate.step(lambda: self._store.pause(queue))

    async def export_jobs(self, queue: str, state: State, *, limit: int) -> Sequence[SavedJob]:
        return await self._fate.step(lambda: self._store.export_jobs(queue, state, limit=limit))

    async def export_memory(self, queue: str, *, limit: int, cursor: str | None = None) -> MemoryPage:
        return await self._fate.step(lambda: self._store.export_memory(queue, limit=limit, cursor=cursor))

    async def depart(self, queue: str, ids: Sequence[str], *, signals: Mapping[str, int] = NO_SIGNALS) -> Sequence[str]:
        return await self._fate.step(lambda: self._store.depart(queue, ids, signals=signals))

    async def begin_move(self, queue: str, move: Move) -> None:
        await self._fate.step(lambda: self._store.begin_move(queue, move))

    async def restore(self, queue: str, cargo: Cargo, *, run: str) -> int:
        return await self._fate.step(lambda: self._store.restore(queue, cargo, run=run))


async def move_until_killed(source: Store, target: Store, fate: Fate) -> bool:
    """Whether it came to its end."""
    mover = Mover(Doomed(source, fate), Doomed(target, fate))  # type: ignore[arg-type]  # made of the store's own verbs
    try:
        async with asyncio.timeout(PATIENCE_S):
            await mover.move()
    except BaseExceptionGroup as ended:
        assert ended.subgroup(lambda error: not isinstance(error, Killed | BaseExceptionGroup)) is None  # noqa: PT017
        return False
    except Killed:
        return False
    return True


async def _run_some(store: Store, how_many: int) -> list[str]:
    """Run jobs of the target, which are pruned at once; their ids."""
    ran = []
    for claimed in await claim(store, how_many):
        await settle_one(store, claimed.lease, Completed())
        ran.append(claimed.job.id)
    return ran


@pytest.mark.parametrize("seed", range(6))
async def test_killed_again_and_again(places: tuple[Place, Place], seed: int, monkeypatch: pytest.MonkeyPatch) -> None:
    """At random steps, with workers on the target and late producers on the source in between."""
    monkeypatch.setattr(mover_module, "_PAGE", 5)
    dice = random.Random(seed)
    origin, goal = places
    source, target = await origin.open(), await goal.open()
    spec = JobSpec(keep_completed=Keep(count=0))
    added = [ref.id for ref in await add_many(source, 20, spec=spec)]
    added += [one.id for one in await add(source, *[NewJob(MAIL, "own", id=f"own-{n}", spec=spec) for n in range(10)])]
    ran: list[str] = []
    kills = 0
    while not await move_until_killed(source, target, Fate(dice.randint(1, 25), before=dice.random() < 0.5)):
        kills += 1
        await origin.crash(source)
        await goal.crash(target)
        source, target = await origin.open(), await goal.open()
        if dice.random() < 0.5:
            ran += await _run_some(target, dice.randint(1, 8))
        if kills < 8:
            added += [ref.id for ref in await add_many(source, dice.randint(0, 3), spec=spec)]
    ran += await _run_some(target, 200)
    assert Counter(ran) == Counter(added)
    assert await source.counts(MAIL) == Counts(paused=True)
    assert await target.counts(MAIL) == Counts()


async def test_killed_at_each_step(places: tuple[Place, Place], monkeypatch: pytest.MonkeyPatch) -> None:
    """Each run gets one step further than the one before it, until one comes to its end."""
    monkeypatch.setattr(mover_module, "_PAGE", 2)
    origin, goal = places
    source, target = await origin.open(), await goal.open()
    await add_many(source, 30)
    await claim_one(source)
    steps = 1
    while not await move_until_killed(source, target, Fate(steps, before=bool(steps % 2))):
        steps += 1
        if steps == 12:
            assert (await source.counts(MAIL)).active == 1, "it stays with its worker as long as that lives"
            await source.report_crash(WORKER, CrashKind.KILLED, limits=CrashLimits())
    assert await target.counts(MAIL) == Counts(waiting=30)
    assert not (await target.counts(MAIL)).paused
