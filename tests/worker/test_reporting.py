"""A job's words on their way to the store."""

import asyncio
from collections.abc import Sequence

from bullpen import JobRef, Store
from bullpen.worker.reporting import MOST_CHARS, MOST_LINES, StoreReporter
from tests.support.around import StoreAround


class SlowAtFirst(StoreAround):
    """Its first lines arrive when they are let go."""

    def __init__(self, inner: Store) -> None:
        super().__init__(inner)
        self.came, self.let_go = asyncio.Event(), asyncio.Event()
        self.arrived: list[str] = []

    async def add_log(self, ref: JobRef, lines: Sequence[str]) -> int:
        if not self.came.is_set():
            self.came.set()
            await self.let_go.wait()
        self.arrived += lines
        return len(self.arrived)


class Broken(StoreAround):
    async def add_log(self, ref: JobRef, lines: Sequence[str]) -> int:
        raise ArithmeticError("nobody thought of that")


async def test_lines_keep_their_order_while_earlier_ones_are_under_way(store: Store) -> None:
    """And when they are flushed, none is left that could arrive later."""
    slow = SlowAtFirst(store)
    reporter = StoreReporter(slow, JobRef("work", "1"), asyncio.get_running_loop())
    reporter.log("one")
    await slow.came.wait()
    reporter.log("two")
    reporter._start_sending()  # as it does a little later
    flushing = asyncio.create_task(reporter.flush())  # awaited below
    for _ in range(5):
        await asyncio.sleep(0)  # each has its turn
    reporter.log("three")
    slow.let_go.set()
    await flushing
    await reporter.flush()
    assert slow.arrived == ["one", "two", "three"]


async def test_of_too_many_lines_the_oldest_are_dropped_and_the_log_says_so(store: Store) -> None:
    """While a store is slow they would fill the memory: by their number, or by their length."""
    slow = SlowAtFirst(store)
    slow.came.set()
    reporter = StoreReporter(slow, JobRef("work", "1"), asyncio.get_running_loop())
    for n in range(MOST_LINES + 1_500):
        reporter.log(str(n))
    await reporter.flush()
    assert (slow.arrived[0], slow.arrived[1], len(slow.arrived)) == ("… 1,500 lines dropped", "1500", MOST_LINES + 1)
    slow.arrived.clear()
    for letter in "abc":
        reporter.log(letter * (MOST_CHARS // 2))
    await reporter.flush()
    assert [line[:30] for line in slow.arrived] == ["… 1 line dropped", "b" * 30, "c" * 30]


async def test_no_error_of_a_store_costs_more_than_the_words(store: Store) -> None:
    reporter = StoreReporter(Broken(store), JobRef("work", "1"), asyncio.get_running_loop())
    reporter.log("one")
    await reporter.flush()
    assert not reporter.has_words
