"""What counts against a run's time: work, once, whatever goes on side by side, and no waiting."""

import asyncio

import msgspec
import pytest

from bullpen.agents.llm.scripted import CallTurn, Script, ScriptedProvider, Turn
from bullpen.agents.llm.words import Usage
from bullpen.agents.loop.loop import AgentLoop
from bullpen.agents.loop.options import LoopOptions
from bullpen.agents.loop.recorder import Recorder
from bullpen.agents.loop.tally import tally
from bullpen.agents.loop.words import Answer, LoopLimits, NeedsAnswer, Stop
from bullpen.agents.tools.policy import Policy
from bullpen.agents.tools.tool import Tool, tool
from bullpen.agents.tools.toolbox import Toolbox
from bullpen.records.credits.credits import purse
from bullpen.records.journal import JournalOn
from bullpen.records.records import Records
from bullpen.testing.clock import ManualClock
from tests.agents.loop.world import MODEL, MODELS, PROMPT, TENANT, Crash, MortalDatabase

_USAGE = Usage(10, 20)
_SIDE_BY_SIDE = 4
_CALL_MS = 40_000
_LIMITS = LoopLimits(reply_tokens=100, seconds=100)


@pytest.fixture(autouse=True)
async def rich(records: Records) -> None:
    await records.credits.deposit(TENANT, 10_000_000, key="first")


async def _act(
    records: Records, tool_: Tool, calls: int, *, epoch: int, dies_at: int | None = None
) -> tuple[Stop, int]:
    """An activation of a run with one step of so many calls: why it stopped, and how long was worked in all."""
    recorder = Recorder(MortalDatabase(records.database, at=dies_at), "r1", epoch, [purse(TENANT)])
    await recorder.begin()
    step = Turn(calls=tuple(CallTurn(tool_.name, {}, id=f"c{n}") for n in range(calls)), usage=_USAGE)
    script = ScriptedProvider(Script((step, Turn(text="done", usage=_USAGE))))
    loop = AgentLoop(recorder, script, MODELS, Toolbox([tool_]), LoopOptions(limits=_LIMITS))
    stop = (await loop.run(MODEL, PROMPT)).stop
    return stop, tally(recorder.entries).worked_ms


async def test_calls_side_by_side_count_once(records: Records, clock: ManualClock) -> None:
    under_way = 0
    all_are_there = asyncio.Event()

    @tool(policy=Policy.READ_ONLY)
    async def look() -> str:
        """Look."""
        nonlocal under_way
        under_way += 1
        if under_way == _SIDE_BY_SIDE:
            clock.advance(_CALL_MS)
            all_are_there.set()
        await all_are_there.wait()
        return "seen"

    assert _SIDE_BY_SIDE * _CALL_MS > _LIMITS.seconds * 1000 > _CALL_MS
    assert await _act(records, look, _SIDE_BY_SIDE, epoch=1) == (Stop.ANSWER, _CALL_MS)
    assert await _act(records, look, _SIDE_BY_SIDE, epoch=2) == (Stop.ANSWER, _CALL_MS), "read from the record"


async def test_what_is_made_again_after_a_crash_counts_without_the_time_between(
    records: Records, clock: ManualClock
) -> None:
    made = 0

    @tool(policy=Policy.READ_ONLY)
    async def look() -> str:
        """Look."""
        nonlocal made
        made += 1
        clock.advance(_CALL_MS)
        return "seen"

    with pytest.raises(Crash):
        await _act(records, look, 2, epoch=1, dies_at=5)  # one of the two is on record
    clock.advance(86_400_000)
    stop, worked_ms = await _act(records, look, 2, epoch=2)
    assert made == 3
    assert (stop, worked_ms) == (Stop.ANSWER, 2 * _CALL_MS)


async def test_the_time_that_a_person_takes_to_answer_does_not_count(records: Records, clock: ManualClock) -> None:
    @tool(policy=Policy.ONCE)
    async def mail() -> str:
        """Send it."""
        return "sent"

    with pytest.raises(Crash):
        await _act(records, mail, 1, epoch=1, dies_at=3)  # it is on record that it will be made
    with pytest.raises(NeedsAnswer) as question:
        await _act(records, mail, 1, epoch=2)
    clock.advance(86_400_000)
    async with records.database.writing() as connection:
        answer = msgspec.json.encode(Answer(result="sent"))
        await JournalOn(connection, records.database).signal("r1", question.value.signal, answer)
    assert await _act(records, mail, 1, epoch=3) == (Stop.ANSWER, 0)
    assert await _act(records, mail, 1, epoch=4) == (Stop.ANSWER, 0)
