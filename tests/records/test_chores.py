"""Chores: done by whoever has the records open, or by one of them at a time."""

from bullpen.records.chores import Chore
from bullpen.records.records import Records
from bullpen.records.turn_lease import TurnLease
from bullpen.testing.clock import ManualClock


async def test_of_many_processes_one_does_a_chore_with_a_lease(records: Records, clock: ManualClock) -> None:
    done: list[str] = []

    def chore(who: str) -> Chore:
        async def do() -> None:
            done.append(who)

        return Chore("tidy", 60, do, lease=TurnLease(records.database, "tidy", hold_ms=60_000))

    first, second = chore("first"), chore("second")
    for one in (first, second, first, second):
        await one.do()
    assert done == ["first", "first"]
    clock.advance(60_000)
    await second.do()
    await first.do()
    assert done == ["first", "first", "second"], "one that is gone is not waited for"
