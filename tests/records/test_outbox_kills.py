"""The outbox under kills: each committed row runs one job, whoever dies."""

import asyncio
import random
from collections import Counter

import pytest
from sqlalchemy import select

from bullpen import Context, Worker, WorkerOptions
from bullpen.records.records import Records
from bullpen.records.relay import OutboxRelay
from tests.records.outbox_programs import HOLD_MS, ROOT, command, orders
from tests.support.places import Place
from tests.support.working import working


class Shop:
    """Producers and relays that die all the time, and a worker that does not."""

    def __init__(self, records: Records, address: str, place: Place) -> None:
        self.records = records
        self.address = address
        self.place = place
        self.ran: Counter[int] = Counter()

    async def handle(self, ctx: Context) -> None:
        self.ran[int(ctx.job.data)] += 1

    async def produce(self, start: int, stop: int) -> None:
        """Each producer goes on behind where the one before died."""
        while start < stop:
            dies_at = min(stop, start + random.randint(20, 100))
            await self._run("produce", self.address, start, stop, dies_at)
            start = dies_at + 1

    async def relay(self, done: asyncio.Event) -> None:
        while not done.is_set():
            await self._run("relay", self.address, self.place.address, random.randint(1, 12))

    async def _run(self, *words: object) -> None:
        process = await asyncio.create_subprocess_exec(*command(str(words[0]), *words[1:]), cwd=ROOT)
        try:
            async with asyncio.timeout(60):
                await process.wait()
        except TimeoutError:
            pass  # a relay with nothing left to die of
        finally:
            if process.returncode is None:
                process.kill()
                await process.wait()

    async def committed(self) -> list[int]:
        async with self.records.database.reading() as connection:
            return sorted((await connection.execute(select(orders.c.id))).scalars())


async def _check_under_kills(records: Records, address: str, place: Place, how_many: int) -> None:
    async with records.database.writing() as connection:
        await connection.run_sync(orders.metadata.create_all)
    store = place.store()
    await store.open()
    shop = Shop(records, address, place)
    done = asyncio.Event()
    half = how_many // 2
    async with working(Worker(store, {"orders": shop.handle}, WorkerOptions(concurrency=20))):
        async with asyncio.TaskGroup() as tasks:
            relays = [tasks.create_task(shop.relay(done)) for _ in range(2)]
            await asyncio.gather(shop.produce(0, half), shop.produce(half, how_many))
            done.set()
            # The one that lives takes up what the dead ones held.
            living = OutboxRelay(records.database.engine, store, look_every=0.02, hold_ms=HOLD_MS)
            async with living:
                while (await living.standing()).pending:
                    await asyncio.sleep(0.02)
            for relay in relays:
                relay.cancel()
        committed = await shop.committed()
        while (await store.counts("orders")).unfinished:
            await asyncio.sleep(0.02)
    await store.close()
    assert len(committed) > how_many // 2
    assert shop.ran == Counter(committed)


@pytest.mark.parametrize(
    "address, place", [("sqlite", "sqlite"), ("postgres", "redis")], indirect=True, ids=["files", "servers"]
)
@pytest.mark.timeout(600)
async def test_each_committed_order_ran_once_whoever_died(records: Records, address: str, place: Place) -> None:
    """Producers and relays are killed at any step, and jobs are pruned as soon as they ran."""
    await _check_under_kills(records, address, place, 300)


@pytest.mark.soak
@pytest.mark.timeout(3_600)
async def test_each_of_many_committed_orders_ran_once(records: Records, address: str, place: Place) -> None:
    await _check_under_kills(records, address, place, 5_000)
