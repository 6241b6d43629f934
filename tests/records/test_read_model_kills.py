"""Feeders of the read model are killed at any moment while jobs come and go: in the end it is what a rescan finds.

Five kills here, two hundred by `make soak`.
"""

import asyncio
import contextlib
import random
import sys
import uuid
from collections.abc import AsyncIterator
from pathlib import Path

import pytest

from bullpen import Failure, NewJob, State
from bullpen.job.spec import JobSpec, Keep
from bullpen.job.verdicts import Completed, Failed, Retry, Settlement, Verdict
from bullpen.records import turn_lease
from bullpen.records.records import Records
from bullpen.stores.base import MAX_EVENTS, Store
from tests.records.comparing import check_model, check_rescan
from tests.records.feeding import HOLD_MS
from tests.support.places import Place

_ROOT = Path(__file__).parents[2]
_ON_FILES_AND_SERVERS = pytest.mark.parametrize(
    "address, place", [("sqlite", "sqlite"), ("postgres", "redis")], indirect=True, ids=["files", "servers"]
)
_TOLD_AND_LOOKED = pytest.mark.parametrize("fields", [(), ("user",)], ids=["told", "looked"])
_VERDICTS: tuple[Verdict, ...] = (Completed(), Completed(b"1"), Failed(Failure("no")), Retry(Failure("again")))


@contextlib.asynccontextmanager
async def _feeding(address: str, place: Place, fields: tuple[str, ...]) -> AsyncIterator[None]:
    """A feeder, which is killed at the end of the block."""
    command = [sys.executable, "-m", "tests.records.feeding", address, place.address, *fields]
    process = await asyncio.create_subprocess_exec(*command, cwd=_ROOT, stdout=asyncio.subprocess.PIPE)
    assert process.stdout is not None
    await process.stdout.readline()  # it begins
    try:
        yield
    finally:
        assert process.returncode is None, "it ends by a kill only"
        process.kill()
        await process.wait()


class Bustle:
    """Jobs of two queues that are added, run, pruned, removed and retried, as the dice fall."""

    def __init__(self, store: Store, dice: random.Random) -> None:
        self._store = store
        self._dice = dice

    async def go_on(self, rounds: int) -> None:
        for _ in range(rounds):
            queue = self._dice.choice(["mail", "films"])
            await self._add(queue, self._dice.randint(1, 40))
            await self._run(queue, self._dice.randint(0, 40))
            if self._dice.random() < 0.2:
                await self._store.drain(queue, delayed=False)
            if self._dice.random() < 0.1:
                await self._store.retry_all(queue, State.FAILED, limit=1_000)

    async def overrun_the_log(self, queue: str) -> None:
        """More events than the log keeps, in few trips."""
        for _ in range(MAX_EVENTS // 3 // 500 + 2):
            await self._add(queue, 500)
            await self._run(queue, 500)

    async def _add(self, queue: str, how_many: int) -> None:
        tenants = ["acme", "globex", None]
        specs = [JobSpec(tenant=tenant, keep_completed=Keep(count=30)) for tenant in tenants]
        specs += [
            JobSpec(tags=("t",), keep_completed=Keep(count=30)),
            JobSpec(priority=2, keep_completed=Keep(count=0)),
        ]
        jobs = [NewJob(queue, "work", b'{"user":"ada"}', spec=self._dice.choice(specs)) for _ in range(how_many)]
        await self._store.add(jobs, request=uuid.uuid4().hex)

    async def _run(self, queue: str, how_many: int) -> None:
        if how_many:
            request = uuid.uuid4().hex
            claimed = await self._store.claim({queue: how_many}, worker="w", lease_ms=60_000, request=request)
            settlements = [Settlement(job.lease, self._dice.choice(_VERDICTS)) for job in claimed.jobs]
            await self._store.settle(settlements, request=f"{request} settles")


async def _check_under_kills(address: str, place: Place, kills: int, fields: tuple[str, ...]) -> None:
    dice = random.Random()
    store = place.store()
    await store.open()
    bustle = Bustle(store, dice)
    async with await Records.open(address) as records:
        for kill in range(kills):
            async with _feeding(address, place, fields):
                await bustle.go_on(dice.randint(5, 80))
            if kill == kills // 2:
                await bustle.overrun_the_log("mail")
        last = records.feeder(store, fields=fields)
        while not await last._is_our_turn():
            await asyncio.sleep(0.05)  # the lease of the dead is not over
        await last.catch_up()
        await check_model(records, store)
        await check_rescan(records, last)
    await store.close()


@_ON_FILES_AND_SERVERS
@_TOLD_AND_LOOKED
@pytest.mark.timeout(300)
async def test_the_model_is_right_whoever_fed_it_died(
    address: str, place: Place, fields: tuple[str, ...], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(turn_lease, "HOLD_MS", HOLD_MS)
    await _check_under_kills(address, place, 5, fields)


@pytest.mark.soak
@_ON_FILES_AND_SERVERS
@_TOLD_AND_LOOKED
@pytest.mark.timeout(3_600)
async def test_the_model_is_right_after_many_deaths(
    address: str, place: Place, fields: tuple[str, ...], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(turn_lease, "HOLD_MS", HOLD_MS)
    await _check_under_kills(address, place, 200, fields)
