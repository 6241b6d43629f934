"""Programs of the outbox that kill themselves in the middle of it.

python -m tests.records.outbox_programs <program> <argument> …
"""

import asyncio
import os
import random
import signal
import sys
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from sqlalchemy import Column, Integer, MetaData, Table, insert
from sqlalchemy.ext.asyncio import AsyncSession

from bullpen import NewJob
from bullpen.clock import SYSTEM_CLOCK
from bullpen.job.spec import JobSpec, Keep
from bullpen.records import outbox
from bullpen.records.database import database_at
from bullpen.records.outbox_rows import HeldRow
from bullpen.records.relay import OutboxRelay
from bullpen.settings import store_from

ROOT = Path(__file__).parents[2]
HOLD_MS = 200
orders = Table("orders", MetaData(), Column("id", Integer, primary_key=True))


def order_job(order: int) -> NewJob:
    """Gone as soon as it is completed: only the store's memory of its id tells that it was there."""
    return NewJob("orders", "charge", b"%d" % order, spec=JobSpec(keep_completed=Keep(count=0)))


def command(program: str, *arguments: object) -> list[str]:
    return [sys.executable, "-m", "tests.records.outbox_programs", program, *map(str, arguments)]


def _die() -> None:
    os.kill(os.getpid(), signal.SIGKILL)


async def produce(records: str, first: str, last: str, dies_at: str) -> None:
    """Write orders, each with its job; die within one of them, before or after its commit. Some are taken back."""
    database = database_at(records, SYSTEM_CLOCK)
    for order in range(int(first), int(last)):
        async with AsyncSession(database.engine) as session:
            await session.execute(insert(orders), {"id": order})
            outbox.add(session, order_job(order))
            await session.flush()
            if order == int(dies_at):
                if order % 2:
                    await session.commit()
                _die()
            if order % 10 == 0:
                await session.rollback()
            else:
                await session.commit()
    await database.close()


class DyingRelay(OutboxRelay):
    """Dies at the n-th of its steps: before the add, after it, or after rows were deleted."""

    steps_left = 1

    def _step(self) -> None:
        self.steps_left -= 1
        if self.steps_left == 0:
            _die()

    async def _hold(self, now_ms: int) -> list[HeldRow]:
        held = await super()._hold(now_ms)
        if held:
            self._step()
        return held

    async def _add(self, jobs: Sequence[NewJob]) -> None:
        await super()._add(jobs)
        self._step()

    async def _settle(self, numbers: Sequence[int]) -> None:
        await super()._settle(numbers)
        self._step()


async def relay(records: str, queue: str, steps: str) -> None:
    database = database_at(records, SYSTEM_CLOCK)
    store = store_from(queue)
    await store.open()
    dying = DyingRelay(database.engine, store, batch=random.randint(1, 20), look_every=0.02, hold_ms=HOLD_MS)
    dying.steps_left = int(steps)
    await dying.run()


if __name__ == "__main__":
    programs: dict[str, Any] = {"produce": produce, "relay": relay}
    asyncio.run(programs[sys.argv[1]](*sys.argv[2:]))
