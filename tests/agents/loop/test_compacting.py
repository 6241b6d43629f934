"""A conversation that outgrows the window goes on in short, the same in every activation."""

from bullpen.agents.llm.models import ModelTable, table_of
from bullpen.agents.llm.scripted import CallTurn, ScriptedProvider, Turn
from bullpen.agents.llm.words import NONE, Message, Request, Role, Usage, user
from bullpen.agents.loop.loop import AgentLoop
from bullpen.agents.loop.options import LoopOptions
from bullpen.agents.loop.recorder import Recorder
from bullpen.agents.loop.words import LoopLimits, LoopResult, Stop
from bullpen.agents.tools.policy import Policy
from bullpen.agents.tools.tool import tool
from bullpen.agents.tools.toolbox import Toolbox
from bullpen.records.records import Records

_WINDOW = 10_000
_MODELS: ModelTable = table_of(
    {
        "version": "test",
        "models": {
            "small": {
                "provider": "scripted", "context_window": _WINDOW, "max_output": 500, "input": "1", "output": "1",
            }
        },
    }
)  # fmt: skip
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


async def _run(records: Records, reader: Reader, epoch: int) -> LoopResult:
    recorder = Recorder(records.database, "r1", epoch)
    await recorder.begin()
    limits = LoopLimits(reply_tokens=500, steps=200)
    loop = AgentLoop(recorder, ScriptedProvider(reader.answer), _MODELS, Toolbox([read]), LoopOptions(limits=limits))
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
