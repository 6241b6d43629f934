"""A conversation that outgrows the window goes on in short, the same in every activation."""

import pytest

from bullpen.agents.llm.models import ModelTable, table_of
from bullpen.agents.llm.scripted import CallTurn, ScriptedProvider, Turn
from bullpen.agents.llm.words import NONE, Message, Request, Role, Usage, user
from bullpen.agents.loop.loop import AgentLoop
from bullpen.agents.loop.options import LoopOptions
from bullpen.agents.loop.recorder import Recorder
from bullpen.agents.loop.steps import StepsDiffer
from bullpen.agents.loop.words import LoopLimits, LoopResult, Stop
from bullpen.agents.tools.policy import Policy
from bullpen.agents.tools.tool import tool
from bullpen.agents.tools.toolbox import Toolbox
from bullpen.records.records import Records

_WINDOW = 10_000


def _models(window: int) -> ModelTable:
    small = {"provider": "scripted", "context_window": window, "max_output": 500, "input": "1", "output": "1"}
    return table_of({"version": "test", "models": {"small": small}})


_MODELS = _models(_WINDOW)
_TURNS = 40


@tool(policy=Policy.READ_ONLY)
async def read(n: int) -> str:
    """Read a page."""
    return f"page {n} " + "x" * 3_000


class Reader:
    """A model that reads page after page, and notes what it was sent."""

    def __init__(self) -> None:
        self.requests: list[Request] = []
        self.pages = 0

    def answer(self, request: Request) -> Turn:
        self.requests.append(request)
        tokens = Usage(sum(len(m.text) + sum(len(r.text) for r in m.results) for m in request.messages) // 4, 20)
        if request.tool_choice == NONE:
            return Turn(text=f"read {self.pages} pages", usage=tokens)
        if self.pages == _TURNS:
            return Turn(text="done", usage=tokens)
        self.pages += 1
        return Turn(calls=(CallTurn("read", {"n": self.pages}, id=f"c{self.pages}"),), usage=tokens)


async def _run(
    records: Records, reader: Reader, epoch: int, *, models: ModelTable = _MODELS, steps: int = 200
) -> LoopResult:
    recorder = Recorder(records.database, "r1", epoch)
    await recorder.begin()
    limits = LoopLimits(reply_tokens=500, steps=steps)
    loop = AgentLoop(recorder, ScriptedProvider(reader.answer), models, Toolbox([read]), LoopOptions(limits=limits))
    return await loop.run("small", [user("read all of it")])


def _tokens(messages: tuple[Message, ...]) -> int:
    return sum(len(m.text) + sum(len(r.text) for r in m.results) for m in messages) // 4


async def test_it_stays_within_the_window_and_keeps_what_was_asked(records: Records) -> None:
    reader = Reader()
    result = await _run(records, reader, 1)
    assert (result.stop, result.text) == (Stop.ANSWER, "done")
    assert result.tool_calls == _TURNS
    in_short = [request for request in reader.requests if request.tool_choice == NONE]
    assert in_short, "it was compacted"
    assert max(_tokens(request.messages) for request in reader.requests) < _WINDOW
    for request in reader.requests:
        if request.tool_choice != NONE:
            assert request.messages[0] == user("read all of it")
    after = reader.requests[reader.requests.index(in_short[0]) + 1]
    assert after.messages[1].role is Role.USER
    assert after.messages[1].text.rpartition("\n\n")[2].startswith("read ")


async def test_the_next_activation_finds_all_of_it_on_record(records: Records) -> None:
    first = await _run(records, Reader(), 1)
    again = Reader()
    assert await _run(records, again, 2) == first
    assert again.requests == []


@pytest.mark.parametrize("before, after", [(40_000, 10_000), (10_000, 40_000), (10_000, 6_000)])
async def test_a_run_goes_on_where_its_window_is_taken_for_another(records: Records, before: int, after: int) -> None:
    """What is on record stands: what was told in short there, and what was asked as it is."""
    reader = Reader()
    first = await _run(records, reader, 1, models=_models(before), steps=15)
    assert first.stop == Stop.MAX_STEPS
    pages, asked = reader.pages, len(reader.requests)
    result = await _run(records, reader, 2, models=_models(after))
    assert (result.stop, result.text, result.tool_calls) == (Stop.ANSWER, "done", _TURNS)
    assert result.steps == len(reader.requests), "none was asked twice"
    went_on = reader.requests[asked:]
    assert went_on[0].tool_choice == NONE or f"page {pages} " in went_on[0].messages[-1].results[0].text
    assert max(_tokens(request.messages) for request in went_on) < after
    again = Reader()
    assert await _run(records, again, 3, models=_models(before)) == result
    assert again.requests == []


async def test_what_was_told_in_short_is_as_much_as_it_was(records: Records) -> None:
    """In a larger window less would have been, and in a smaller one the pages in between would be nowhere."""
    reader = Reader()
    await _run(records, reader, 1, steps=15)
    at = next(n for n, one in enumerate(reader.requests) if one.tool_choice == NONE)
    kept = reader.requests[at + 1].messages
    asked = len(reader.requests)
    await _run(records, reader, 2, models=_models(100_000), steps=16)
    assert reader.requests[asked].messages[: len(kept)] == kept


async def test_another_step_on_record_is_not_taken_for_this_one(records: Records) -> None:
    recorder = Recorder(records.database, "r1", 1)
    await recorder.begin()
    await recorder.note(0, "read", b"{}")
    with pytest.raises(StepsDiffer, match="step 0 was 'read', and the task comes to 'llm:small' there"):
        await _run(records, Reader(), 2)


@pytest.mark.parametrize("before", [0, 2], ids=["at once", "later"])
async def test_results_that_alone_are_too_much_are_shortened(records: Records, before: int) -> None:
    """The last messages stay, but not whole: else no telling in short would help."""
    requests: list[Request] = []

    @tool(policy=Policy.READ_ONLY)
    async def dump(n: int) -> str:
        """Read a whole book."""
        return f"book {n} " + "y" * 15_000

    def answer(request: Request) -> Turn:
        requests.append(request)
        if request.tool_choice == NONE:
            return Turn(text="in short", usage=Usage(_tokens(request.messages), 20))
        done = sum(one.tool_choice != NONE for one in requests) - 1
        usage = Usage(_tokens(request.messages), 20)
        if done < before:
            return Turn(calls=(CallTurn("read", {"n": done}, id=f"r{done}"),), usage=usage)
        if done < before + 2:
            return Turn(calls=tuple(CallTurn("dump", {"n": n}, id=f"d{done}-{n}") for n in range(4)), usage=usage)
        return Turn(text="done", usage=usage)

    async def run(epoch: int) -> LoopResult:
        recorder = Recorder(records.database, "r1", epoch)
        await recorder.begin()
        options = LoopOptions(limits=LoopLimits(reply_tokens=500, steps=200))
        loop = AgentLoop(recorder, ScriptedProvider(answer), _MODELS, Toolbox([read, dump]), options)
        return await loop.run("small", [user("read all of it")])

    result = await run(1)
    assert (result.stop, result.text) == (Stop.ANSWER, "done")
    assert max(_tokens(request.messages) for request in requests) < _WINDOW
    last = [one.text for one in requests[-1].messages[-1].results]
    assert [text[:6] for text in last] == ["book 0", "book 1", "book 2", "book 3"]
    assert all(text.endswith("the rest of it is left out") for text in last)
    asked = len(requests)
    assert await run(2) == result
    assert len(requests) == asked
