"""A worker dies at every single write of a run: nothing is done twice that must not be, and the end is the same."""

import msgspec
import pytest

from bullpen.agents.llm.words import Request
from bullpen.agents.loop.words import Answer, LoopResult, NeedsAnswer, Stop
from bullpen.errors import LeaseLost
from bullpen.records.journal import SqlJournal
from bullpen.records.records import Records
from bullpen.records.tables.credits import account, entry, hold
from bullpen.records.tables.journal import journal
from tests.agents.loop.world import LIMITS, MODEL, MODELS, PRICE, PROMPT, TENANT, Crash, MortalDatabase, World, activate

_RICH = 10_000_000


async def _undisturbed(records: Records, turns: int) -> tuple[LoopResult, int]:
    """What the run comes to, and how many writes it takes."""
    database = MortalDatabase(records.database)
    result = await activate(records, World(), turns, 1, database)
    return result, database.writes


async def _to_the_end(records: Records, world: World, turns: int, run_first: MortalDatabase) -> tuple[LoopResult, int]:
    """Activations until it ends; a person answers what they are asked. How many were needed."""
    database: MortalDatabase | None = run_first
    epoch = 0
    while True:
        epoch += 1
        try:
            return await activate(records, world, turns, epoch, database), epoch
        except Crash:
            pass
        except NeedsAnswer as asked:
            place = asked.signal.split("/")[1]
            was_sent = world.mailed[f"r1/{place}"] > 0
            answer = Answer(result="sent") if was_sent else Answer(again=True)
            async with SqlJournal(records.database).writing() as on:
                await on.signal("r1", asked.signal, msgspec.json.encode(answer))
        database = None


async def _forget(records: Records) -> None:
    async with records.database.writing() as connection:
        for table in (entry, hold, account, journal):
            await connection.execute(table.delete())


async def _every_crash(records: Records, turns: int) -> None:
    await records.credits.deposit(TENANT, _RICH, key="first")
    expected, writes = await _undisturbed(records, turns)
    assert expected.stop == Stop.ANSWER
    spent = (await records.credits.balance(TENANT)).spent
    assert spent == expected.price == PRICE * (turns + 1)
    most = MODELS.most(Request(model=MODEL, messages=PROMPT * 200, max_tokens=LIMITS.reply_tokens))
    for at in range(writes):
        for is_after in (False, True):
            await _forget(records)
            await records.credits.deposit(TENANT, _RICH, key="first")
            world = World()
            dying = MortalDatabase(records.database, at=at, is_after=is_after)
            result, activations = await _to_the_end(records, world, turns, dying)
            where = f"write {at} of {writes}, {'after' if is_after else 'before'}"
            assert msgspec.structs.replace(result, price=0) == msgspec.structs.replace(expected, price=0), where
            assert max(world.mailed.values(), default=0) <= 1, where
            assert max(world.paid.values(), default=0) <= 1, where
            assert max(world.looked.values(), default=0) <= 2, where
            assert world.asked <= turns + 2, where
            assert activations <= 4, where
            purse = await records.credits.balance(TENANT)
            assert purse.held == 0, where
            assert spent <= purse.spent <= spent + most, where
            assert await records.credits.unbalanced() == [], where


@pytest.mark.timeout(600)
async def test_a_run_of_forty_steps_ends_the_same_wherever_its_worker_dies(records: Records) -> None:
    await _every_crash(records, 15)


async def test_who_was_overtaken_does_nothing_more(records: Records) -> None:
    """A later activation has begun: the earlier one's next write is refused, and its call is not made."""
    await records.credits.deposit(TENANT, _RICH, key="first")
    world = World()
    with pytest.raises(Crash):
        await activate(records, world, 2, 2, MortalDatabase(records.database, at=3, is_after=True))
    asked = world.asked
    with pytest.raises(LeaseLost):
        await activate(records, world, 2, 1)
    assert world.asked == asked
