"""The loop: tools until there is an answer, within its limits and its credits."""

import asyncio
import dataclasses
from collections.abc import Mapping
from typing import Any

import msgspec
import pytest

from bullpen.agents.llm.deltas import Delta, TextDelta
from bullpen.agents.llm.scripted import CallTurn, Fault, Script, ScriptedProvider, Turn
from bullpen.agents.llm.words import NONE, Message, Request, StopReason, Usage
from bullpen.agents.loop.loop import AgentLoop
from bullpen.agents.loop.options import LoopOptions
from bullpen.agents.loop.recorder import Recorder
from bullpen.agents.loop.steps import OVER_LIMIT
from bullpen.agents.loop.tally import tally
from bullpen.agents.loop.words import Answer, LoopLimits, LoopResult, NeedsAnswer, Stop
from bullpen.agents.tools.policy import Policy
from bullpen.agents.tools.tool import NOT_MADE, Tool, ToolContext, tool
from bullpen.agents.tools.toolbox import Toolbox
from bullpen.errors import BadAnswer, BadOption, ContentRefused, ModelError, ModelTimeout, ToolError
from bullpen.job.entries import EntryState
from bullpen.records.credits.credits import purse
from bullpen.records.journal import JournalOn, SqlJournal
from bullpen.records.records import Records
from tests.agents.loop.world import (
    LIMITS,
    MODEL,
    MODELS,
    PRICE,
    PROMPT,
    TENANT,
    Crash,
    MortalDatabase,
    World,
    activate,
)

_RICH = 10_000_000
_USAGE = Usage(10, 20)


@pytest.fixture(autouse=True)
async def rich(records: Records) -> None:
    await records.credits.deposit(TENANT, _RICH, key="first")


async def _scripted(
    records: Records, *turns: Turn, tools: Toolbox | None = None, heard: list[Delta] | None = None
) -> LoopResult:
    recorder = Recorder(records.database, "r1", 1, [purse(TENANT)])
    await recorder.begin()
    options = LoopOptions(limits=LIMITS, on_delta=None if heard is None else heard.append)
    loop = AgentLoop(recorder, ScriptedProvider(Script(turns)), MODELS, tools or Toolbox(), options)
    return await loop.run(MODEL, PROMPT)


async def test_it_ends_with_the_models_answer(records: Records) -> None:
    result = await activate(records, World(), 3, 1)
    assert (result.stop, result.text) == (Stop.ANSWER, "done after sent, 1, sent, paid")
    assert (result.steps, result.tool_calls) == (4, 4)
    assert result.usage == {MODEL: Usage(40, 80)}
    assert result.price == 4 * PRICE == (await records.credits.balance(TENANT)).spent


@pytest.mark.parametrize(
    "limits, stop",
    [
        ({"steps": 2}, Stop.MAX_STEPS),
        ({"tool_calls": 1}, Stop.MAX_TOOL_CALLS),
        ({"tokens": 31}, Stop.MAX_TOKENS),
    ],
)
async def test_it_stops_where_no_more_may_be_used(records: Records, limits: dict[str, int], stop: Stop) -> None:
    world = World()
    result = await activate(records, world, 9, 1, limits=dataclasses.replace(LIMITS, **limits))
    assert result.stop == stop
    assert world.asked == result.steps < 9


async def test_a_call_that_could_cost_more_than_there_is_is_not_made(records: Records) -> None:
    async with records.credits.ledger() as ledger:
        await ledger.hold("elsewhere", [purse(TENANT)], _RICH - 1)
    world = World()
    result = await activate(records, world, 3, 1)
    assert (result.stop, world.asked) == (Stop.CREDITS, 0)
    assert (await records.credits.balance(TENANT)).spent == 0


async def test_what_goes_wrong_in_a_tool_is_told_to_the_model(records: Records) -> None:
    @tool
    async def fail(n: int) -> None:
        """Fail."""
        raise LookupError(f"no {n}")

    calls = (
        CallTurn("fail", {"n": 1}), CallTurn("fail", {"n": "x"}), CallTurn("fly", {}), CallTurn("fail", "no json")
    )  # fmt: skip
    heard: list[str] = []

    def answer(request: object) -> Turn:
        last = request.messages[-1]  # type: ignore[attr-defined]
        heard.extend(result.text for result in last.results)
        return Turn(text="well") if last.results else Turn(calls=calls)

    recorder = Recorder(records.database, "r1", 1)
    await recorder.begin()
    loop = AgentLoop(recorder, ScriptedProvider(answer), MODELS, Toolbox([fail]))
    assert (await loop.run(MODEL, PROMPT)).text == "well"
    assert heard[0] == "fail: LookupError: no 1"
    assert "Expected `int`" in heard[1]
    assert heard[2] == "there is no tool 'fly' here; you may use: fail"
    assert "not JSON" in heard[3]


@pytest.mark.parametrize("is_refused", [False, True], ids=["result", "error"])
async def test_a_result_that_is_too_long_is_cut_and_the_whole_is_an_artifact(
    records: Records, *, is_refused: bool
) -> None:
    @tool
    async def shout() -> str:
        """Shout."""
        if is_refused:
            raise ToolError("a" * 15 + "b" * 15)
        return "a" * 15 + "b" * 15

    told: list[str] = []
    kept: dict[str, bytes] = {}

    async def keep(key: str, name: str, data: bytes, **_: object) -> str:
        kept[name] = data
        return "art_1"

    def answer(request: object) -> Turn:
        last = request.messages[-1]  # type: ignore[attr-defined]
        told.extend(result.text for result in last.results)
        return Turn(text="loud") if last.results else Turn(calls=(CallTurn("shout"),))

    recorder = Recorder(records.database, "r1", 1)
    await recorder.begin()
    context = ToolContext(task_id="r1", key="r1", files=keep)
    options = LoopOptions(limits=LoopLimits(result_characters=10), context=context)
    loop = AgentLoop(recorder, ScriptedProvider(answer), MODELS, Toolbox([shout]), options)
    await loop.run(MODEL, PROMPT)
    where = "(20 characters left out; all of it is the artifact art_1 (shout-output.txt, 30 bytes))"
    assert told == [f"aaaaa\n… 20 characters left out …\nbbbbb\n{where}"]
    assert kept == {"shout-output.txt": b"a" * 15 + b"b" * 15}


async def _looks(
    records: Records, how_many: int, limits: LoopLimits, look: Tool, *, epoch: int = 1
) -> tuple[LoopResult, list[Message]]:
    """A step with so many calls, and then an answer; what the model was told last."""
    heard: list[Message] = []

    def answer(request: Request) -> Turn:
        heard[:] = request.messages
        if request.messages[-1].results:
            return Turn(text="seen", usage=_USAGE)
        assert bool(request.tools) == (limits.tool_calls > 0)
        return Turn(calls=tuple(CallTurn("look", {}, id=f"c{n}") for n in range(how_many)), usage=_USAGE)

    recorder = Recorder(records.database, "r1", epoch, [purse(TENANT)])
    await recorder.begin()
    loop = AgentLoop(recorder, ScriptedProvider(answer), MODELS, Toolbox([look]), LoopOptions(limits=limits))
    result = await loop.run(MODEL, PROMPT)
    assert tally(recorder.entries).tool_calls == result.tool_calls
    return result, heard


async def test_calls_of_one_step_beyond_the_limit_are_refused(records: Records) -> None:
    made = 0

    @tool(policy=Policy.READ_ONLY)
    async def look() -> str:
        """Look."""
        nonlocal made
        made += 1
        return "seen"

    limits = dataclasses.replace(LIMITS, tool_calls=3)
    first, _ = await _looks(records, 30, limits, look)
    assert (first.stop, first.tool_calls, made) == (Stop.MAX_TOOL_CALLS, 3, 3)
    again, _ = await _looks(records, 30, limits, look, epoch=2)
    assert (again, made) == (first, 3)
    page = await SqlJournal(records.database).read("r1", start=0, limit=100)
    over = [entry for entry in page.entries if entry.name == OVER_LIMIT]
    assert len(over) == 27
    assert b"no more than 3 calls may be made" in (over[0].value or b"")


async def test_what_the_last_calls_found_is_read_once_more(records: Records) -> None:
    """With the last call that it may make the model has what it asked for, and is asked for its answer."""
    asked: list[Request] = []

    @tool(policy=Policy.READ_ONLY)
    async def look() -> str:
        """Look."""
        return "seen"

    def answer(request: Request) -> Turn:
        asked.append(request)
        if request.tool_choice == NONE:
            return Turn(text=f"found {request.messages[-1].results[0].text}", usage=_USAGE)
        return Turn(calls=(CallTurn("look", {}, id="c1"),), usage=_USAGE)

    async def run(epoch: int) -> LoopResult:
        recorder = Recorder(records.database, "r1", epoch, [purse(TENANT)])
        await recorder.begin()
        options = LoopOptions(limits=dataclasses.replace(LIMITS, tool_calls=1))
        return await AgentLoop(recorder, ScriptedProvider(answer), MODELS, Toolbox([look]), options).run(MODEL, PROMPT)

    result = await run(1)
    assert (result.stop, result.text) == (Stop.MAX_TOOL_CALLS, "found seen")
    assert [len(request.tools) for request in asked] == [1, 1]
    assert await run(2) == result
    assert len(asked) == 2


async def test_a_task_that_may_call_no_tool_is_told_of_none_and_each_call_is_refused(records: Records) -> None:
    @tool(policy=Policy.READ_ONLY)
    async def look() -> str:
        """Look."""
        raise AssertionError

    result, heard = await _looks(records, 1, dataclasses.replace(LIMITS, tool_calls=0), look)
    assert (result.stop, result.text, result.tool_calls) == (Stop.ANSWER, "seen", 0)
    assert [(one.call_id, one.is_error) for one in heard[-1].results] == [("c0", True)]


async def test_only_so_many_calls_of_a_step_are_made_at_once(records: Records) -> None:
    now = most = 0
    pairs = asyncio.Barrier(2)

    @tool(policy=Policy.READ_ONLY)
    async def look() -> str:
        """Look, together with another."""
        nonlocal now, most
        now += 1
        most = max(most, now)
        await pairs.wait()
        now -= 1
        return "seen"

    result, _ = await _looks(records, 6, dataclasses.replace(LIMITS, parallel_calls=2), look)
    assert (result.stop, result.tool_calls, most) == (Stop.ANSWER, 6, 2)


@pytest.mark.parametrize("text", ["half of", ""])
async def test_an_answer_that_was_cut_off_is_said_to_be(records: Records, text: str) -> None:
    result = await _scripted(records, Turn(text=text, stop=StopReason.MAX_TOKENS, usage=_USAGE))
    assert (result.stop, result.text) == (Stop.MAX_TOKENS, text)


async def test_a_refused_answer_is_none(records: Records) -> None:
    with pytest.raises(ContentRefused):
        await _scripted(records, Turn(text="I cannot", stop=StopReason.REFUSED, usage=_USAGE))
    page = await SqlJournal(records.database).read("r1", start=0, limit=9)
    assert [entry.state for entry in page.entries] == [EntryState.DONE], "it was paid, and is on record"


@pytest.mark.parametrize(
    "code, kind, costs", [("model-error", ModelError, False), ("model-timeout", ModelTimeout, True)]
)
async def test_a_model_that_fails_costs_only_if_it_may_have_worked(
    records: Records, code: str, kind: type[ModelError], *, costs: bool
) -> None:
    with pytest.raises(kind):
        await _scripted(records, Turn(error=Fault(code=code)))
    found = await records.credits.balance(TENANT)
    assert found.held == 0
    assert (found.spent > 0) == costs


async def test_words_are_heard_as_they_come(records: Records) -> None:
    heard: list[Delta] = []
    await _scripted(records, Turn(text="one two", chunk=4, usage=_USAGE), heard=heard)
    assert [delta.text for delta in heard if isinstance(delta, TextDelta)] == ["one ", "two"]


async def test_a_run_that_has_ended_gives_its_result_again_and_asks_nobody(records: Records) -> None:
    first = await activate(records, World(), 2, 1)
    again = World()
    assert await activate(records, again, 2, 2) == first
    assert again.asked == 0


def test_limits_are_more_than_nothing() -> None:
    with pytest.raises(BadOption, match="steps: more than 0, not 0"):
        LoopLimits(steps=0)


async def test_a_call_that_was_refused_takes_no_time_in_the_next_activation(records: Records) -> None:
    """A refusal is on record without an intent before it."""
    asks = Turn(calls=(CallTurn("fly", {}, id="c1"),), usage=_USAGE)
    first = await _scripted(records, asks, Turn(text="then not", usage=_USAGE))
    recorder = Recorder(records.database, "r1", 2, [purse(TENANT)])
    await recorder.begin()
    loop = AgentLoop(recorder, ScriptedProvider(Script(())), MODELS, Toolbox(), LoopOptions(limits=LIMITS))
    again = await loop.run(MODEL, PROMPT)
    assert (first.stop, again) == (Stop.ANSWER, first)


async def test_who_says_make_it_again_is_asked_once_more_about_that(records: Records) -> None:
    """Their answer is about one call; if the worker dies in the next, nobody knows what became of that one."""
    made = 0

    @tool
    async def mail() -> str:
        """Send it."""
        nonlocal made
        made += 1
        return "sent"

    async def act(epoch: int, *, dies_at: int | None = None, is_after: bool = False) -> LoopResult:
        database = MortalDatabase(records.database, at=dies_at, is_after=is_after)
        recorder = Recorder(database, "r1", epoch, [purse(TENANT)])
        await recorder.begin()
        script = Script((Turn(calls=(CallTurn("mail", {}, id="c1"),), usage=_USAGE), Turn(text="done", usage=_USAGE)))
        loop = AgentLoop(recorder, ScriptedProvider(script), MODELS, Toolbox([mail]), LoopOptions(limits=LIMITS))
        return await loop.run(MODEL, PROMPT)

    async def say(question: NeedsAnswer, answer: Answer) -> None:
        async with records.database.writing() as connection:
            await JournalOn(connection, records.database).signal("r1", question.signal, msgspec.json.encode(answer))

    with pytest.raises(Crash):
        await act(1, dies_at=2, is_after=True)  # it is on record that it will be made
    with pytest.raises(NeedsAnswer) as first:
        await act(2)
    await say(first.value, Answer(again=True))
    with pytest.raises(Crash):
        await act(3, dies_at=3)  # it was made, and that is not on record
    assert made == 1
    with pytest.raises(NeedsAnswer) as second:
        await act(4)
    assert second.value.signal != first.value.signal
    await say(second.value, Answer(result="sent"))
    assert (await act(5)).text == "done"
    assert made == 1


@pytest.mark.parametrize("policy", [Policy.RECONCILE, Policy.ONCE])
@pytest.mark.parametrize("was_made", [True, False])
async def test_a_call_whose_worker_died_is_paid_once_if_somebody_knows_what_became_of_it(
    records: Records, policy: Policy, was_made: bool
) -> None:
    """What was made costs its price; what was not costs nothing, and its price when it is made."""
    price = 500

    async def find_out(_: ToolContext, __: Mapping[str, Any]) -> Any:
        return "paid" if was_made else NOT_MADE

    @tool(policy=policy, price=price, reconcile=find_out if policy is Policy.RECONCILE else None)
    async def pay() -> str:
        """Pay."""
        return "paid"

    async def act(epoch: int, *, dies_at: int | None = None) -> LoopResult:
        recorder = Recorder(MortalDatabase(records.database, at=dies_at), "r1", epoch, [purse(TENANT)])
        await recorder.begin()
        script = Script((Turn(calls=(CallTurn("pay", {}, id="c1"),), usage=_USAGE), Turn(text="done", usage=_USAGE)))
        loop = AgentLoop(recorder, ScriptedProvider(script), MODELS, Toolbox([pay]), LoopOptions(limits=LIMITS))
        result = await loop.run(MODEL, PROMPT)
        await recorder.end(lambda _: b"{}")
        return result

    with pytest.raises(Crash):
        await act(1, dies_at=3)  # it is on record that it will be made, and not what came of it
    if policy is Policy.ONCE:
        with pytest.raises(NeedsAnswer) as question:
            await act(2)
        said = msgspec.json.encode(Answer(result="paid") if was_made else Answer(again=True))
        async with records.database.writing() as connection:
            await JournalOn(connection, records.database).signal("r1", question.value.signal, said)
    assert (await act(3)).text == "done"
    balance = await records.credits.balance(TENANT)
    assert (balance.spent, balance.held) == (2 * PRICE + price, 0)


async def test_an_empty_answer_costs_what_its_provider_says_that_it_used(records: Records) -> None:
    with pytest.raises(BadAnswer, match="empty answer"):
        await _scripted(records, Turn(text="", usage=_USAGE))
    balance = await records.credits.balance(TENANT)
    assert (balance.spent, balance.held) == (PRICE, 0)


async def test_a_tool_that_nobody_can_pay_ends_the_run_for_want_of_credits(records: Records) -> None:
    made = False

    @tool(policy=Policy.IDEMPOTENT, price=2 * _RICH)
    async def pay() -> str:
        """Pay."""
        nonlocal made
        made = True
        return "paid"

    asks = Turn(text="I shall pay", calls=(CallTurn("pay", {}, id="c1"),), usage=_USAGE)
    result = await _scripted(records, asks, Turn(text="done"), tools=Toolbox([pay]))
    assert (result.stop, result.text, made) == (Stop.CREDITS, "I shall pay", False)
    balance = await records.credits.balance(TENANT)
    assert (balance.spent, balance.held) == (PRICE, 0)
