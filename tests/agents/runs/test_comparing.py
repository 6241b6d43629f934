"""Two runs beside each other: where they part, and what makes no difference."""

import pytest

from bullpen.agents.forking import Edit
from bullpen.agents.llm.scripted import CallTurn, Turn
from bullpen.agents.llm.words import Request, Role, Usage
from bullpen.agents.tools.policy import Policy
from bullpen.agents.tools.tool import tool
from bullpen.errors import BadOption, RecordMissing
from tests.agents.runs.conftest import TENANT, Making, working

_PATIENCE_S = 60


@tool(policy=Policy.READ_ONLY)
async def look(n: int, where: str = "here") -> str:
    """Look at something."""
    return f"seen {n} {where}"


class _Model:
    """Calls a tool, under another id and in another spelling each time, and says what it answered."""

    def __init__(self) -> None:
        self.asked = 0

    def __call__(self, request: Request) -> Turn:
        last = request.messages[-1]
        if last.role is Role.TOOL:
            return Turn(text=f"it said: {last.results[0].text}", usage=Usage(10, 20))
        self.asked += 1
        given = {"n": 1, "where": "there"} if self.asked % 2 else {"where": "there", "n": 1}
        return Turn(calls=(CallTurn("look", given, id=f"c{self.asked}"),), usage=Usage(10, 20))


async def test_a_fork_parts_from_its_run_at_what_was_edited(agents_with: Making) -> None:
    async with agents_with(_Model(), [look]) as agents, working(agents):
        sent = await agents.submit("go", tenant=TENANT)
        first = await agents.result(sent.run_id, timeout=_PATIENCE_S)
        fork = await agents.fork(first.task_id, at=3, edits=[Edit(1, "seen 8")])
        await agents.result(fork.run_id, timeout=_PATIENCE_S)
        found = await agents.compare(sent.run_id, fork.run_id, tenant=TENANT)
    assert found.parts_at == 1
    differing = {pair.place: pair.differs for pair in found.pairs if pair.differs}
    assert list(differing.values()) == [("text",)] * 3, "the result, the answer, the end"
    assert (found.one.steps, found.other.steps, found.differs) == (3, 3, ())
    assert found.other.forked_from == sent.task_id
    assert found.one.spent == 2 * found.other.spent > 0
    assert found.one.result is not None
    assert found.other.result is not None
    assert (found.one.result.output, found.other.result.output) == ("it said: seen 1 there", "it said: seen 8")


async def test_ids_of_calls_their_spelling_and_times_make_no_difference(agents_with: Making) -> None:
    async with agents_with(_Model(), [look]) as agents, working(agents):
        one, other = [await agents.submit("go", tenant=TENANT) for _ in range(2)]
        for sent in (one, other):
            await agents.result(sent.run_id, timeout=_PATIENCE_S)
        found = await agents.compare(one.run_id, other.run_id)
    assert (found.parts_at, found.differs) == (None, ())
    assert [pair.differs for pair in found.pairs] == [()] * 4


async def test_a_run_that_has_not_begun_has_no_steps(agents_with: Making) -> None:
    async with agents_with(_Model(), [look]) as agents:
        waits = await agents.submit("otherwise", tenant=TENANT, system="be brief")
        async with working(agents):
            done = await agents.submit("go", tenant=TENANT)
            await agents.result(done.run_id, timeout=_PATIENCE_S)
            await agents.result(waits.run_id, timeout=_PATIENCE_S)
        late = await agents.submit("go", tenant=TENANT)
        found = await agents.compare(done.run_id, late.run_id)
        assert (found.parts_at, {pair.differs for pair in found.pairs}) == (0, {("missing",)})
        assert (found.other.result, found.other.steps) == (None, 0)
        assert (await agents.compare(done.run_id, waits.run_id)).differs == ("prompt", "system")


async def test_runs_of_two_tenants_are_not_compared(agents_with: Making) -> None:
    async with agents_with(_Model(), [look]) as agents:
        await agents.deposit("other", 100)
        mine = await agents.submit("go", tenant=TENANT)
        theirs = await agents.submit("go", tenant="other")
        with pytest.raises(BadOption, match=r"^with: "):
            await agents.compare(mine.run_id, theirs.run_id)
        for pair in ((mine.run_id, theirs.run_id), (theirs.run_id, mine.run_id), (mine.run_id, "run_0")):
            with pytest.raises(RecordMissing):
                await agents.compare(*pair, tenant=TENANT)
