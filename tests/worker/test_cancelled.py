"""A worker whose `run` is cancelled while a trip to the store is under way."""

import asyncio
from collections.abc import Awaitable, Callable, Mapping, Sequence
from typing import Any

import pytest

from bullpen import Context, Queue, State, Store, Worker
from bullpen.job.verdicts import Settlement
from bullpen.stores.base import Exchanged
from tests.support.around import StoreAround

Ask = Callable[[], Awaitable[Exchanged]]


class _Held(StoreAround):
    """Its exchanges never come back once they are of the kind that a subclass holds."""

    def __init__(self, inner: Store, is_held: asyncio.Event) -> None:
        super().__init__(inner)
        self._is_held = is_held

    def another(self) -> "_Held":
        return type(self)(self.inner.another(), self._is_held)

    async def exchange(self, settlements: Sequence[Settlement], wants: Mapping[str, int], **rest: Any) -> Exchanged:
        def ask() -> Awaitable[Exchanged]:
            return self.inner.exchange(settlements, wants, **rest)

        return await self._go(settlements, ask)

    async def _go(self, settlements: Sequence[Settlement], ask: Ask) -> Exchanged:
        raise NotImplementedError

    async def _hold(self) -> None:
        self._is_held.set()
        await asyncio.Event().wait()


class _ClaimsHeld(_Held):
    """The answers that bring jobs."""

    async def _go(self, settlements: Sequence[Settlement], ask: Ask) -> Exchanged:
        answer = await ask()
        if answer.claimed.jobs:
            await self._hold()
        return answer


class _VerdictsHeld(_Held):
    """The requests that carry verdicts."""

    async def _go(self, settlements: Sequence[Settlement], ask: Ask) -> Exchanged:
        if settlements:
            await self._hold()
        return await ask()


async def _cancel_when_held(store: _Held, is_held: asyncio.Event) -> None:
    async def work(ctx: Context) -> None:
        return None

    running = asyncio.create_task(Worker(store, {"work": work}).run())  # awaited below
    await is_held.wait()
    running.cancel()
    with pytest.raises(asyncio.CancelledError):
        await running


async def test_a_claim_whose_answer_it_does_not_wait_for_is_handed_back(queue: Queue) -> None:
    """At once, as if it had never been claimed."""
    job = await queue.add("work")
    is_held = asyncio.Event()
    await _cancel_when_held(_ClaimsHeld(queue.store, is_held), is_held)
    record = await job.record()
    assert (record.state, record.attempts_made, record.crashes) == (State.WAITING, 0, {})


async def test_a_job_that_is_done_is_settled_and_not_handed_back(queue: Queue) -> None:
    """Its verdict was on its way, and may never have arrived."""
    job = await queue.add("work")
    is_held = asyncio.Event()
    await _cancel_when_held(_VerdictsHeld(queue.store, is_held), is_held)
    record = await job.record()
    assert (record.state, record.crashes) == (State.COMPLETED, {})
