"""Runs from a step of another: with an edit, with another prompt, and dry."""

from collections.abc import Sequence

import pytest

from bullpen.agents.agents import Agents
from bullpen.agents.forking import Edit
from bullpen.agents.llm.scripted import CallTurn, Turn
from bullpen.agents.llm.words import Request, Role, StopReason, Usage
from bullpen.agents.tools.policy import Policy
from bullpen.agents.tools.tool import Tool, ToolContext, tool
from bullpen.agents.words import Submitted, TaskResult
from bullpen.errors import BadOption, RecordMissing
from bullpen.records.journal import SqlJournal, read_all
from tests.agents.runs.conftest import TENANT, Making, working

_PATIENCE_S = 60


class Desk:
    """A tool that counts its calls, and a model that repeats what it and the prompt say."""

    def __init__(self) -> None:
        self.calls = 0

    def tool(self) -> Tool:
        @tool(policy=Policy.IDEMPOTENT)
        async def stamp(n: int) -> str:
            """Stamp a paper."""
            self.calls += 1
            return f"stamp {n}, the {self.calls}. of all"

        return stamp

    def answer(self, request: Request) -> Turn:
        last = request.messages[-1]
        if last.role is Role.TOOL:
            prompt = next(message.text for message in request.messages if message.role is Role.USER)
            return Turn(text=f"{prompt}: {last.results[0].text}", usage=Usage(10, 20))
        return Turn(text="so be it", calls=(CallTurn("stamp", {"n": 1}, id="c1"),), usage=Usage(10, 20))


async def _first(agents: Agents) -> TaskResult:
    sent = await agents.submit("stamp it", tenant=TENANT)
    return await agents.result(sent.run_id, timeout=_PATIENCE_S)


async def test_a_fork_has_the_steps_before_it_and_does_those_after(agents_with: Making) -> None:
    desk = Desk()
    async with agents_with(desk.answer, [desk.tool()]) as agents, working(agents):
        first = await _first(agents)
        assert first.output == "stamp it: stamp 1, the 1. of all"
        fork = await agents.fork(first.task_id, at=3, edits=[Edit(1, "no stamp")])
        result = await agents.result(fork.run_id, timeout=_PATIENCE_S)
        assert result.output == "stamp it: no stamp"
        assert desk.calls == 1
        assert result.credits_charged == first.credits_charged // 2
        kept = await read_all(SqlJournal((await agents.records()).database), first.task_id)
        assert b"1. of all" in (kept[1].value or b""), "the first run stays as it was"


@pytest.mark.parametrize("stop", [StopReason.REFUSED, StopReason.MAX_TOKENS])
async def test_an_answer_that_is_edited_is_whole(agents_with: Making, stop: StopReason) -> None:
    def answer(_: Request) -> Turn:
        return Turn(text="I can", stop=stop, usage=Usage(10, 20))

    async with agents_with(answer) as agents, working(agents):
        first = await _first(agents)
        assert first.stop_reason != "answer"
        fork = await agents.fork(first.task_id, at=1, edits=[Edit(0, "I can do it")])
        result = await agents.result(fork.run_id, timeout=_PATIENCE_S)
        assert (result.stop_reason, result.output) == ("answer", "I can do it")


async def test_another_prompt_begins_at_the_beginning(agents_with: Making) -> None:
    desk = Desk()
    async with agents_with(desk.answer, [desk.tool()]) as agents, working(agents):
        first = await _first(agents)
        fork = await agents.fork(first.task_id, at=0, prompt="stamp that")
        result = await agents.result(fork.run_id, timeout=_PATIENCE_S)
        assert result.output == "stamp that: stamp 1, the 2. of all"
        with pytest.raises(BadOption, match=r"^at"):
            await agents.fork(first.task_id, at=1, prompt="stamp that")


async def test_a_dry_run_calls_no_tool_and_gets_what_is_on_record(agents_with: Making) -> None:
    desk = Desk()
    async with agents_with(desk.answer, [desk.tool()]) as agents, working(agents):
        first = await _first(agents)
        fork = await agents.fork(first.task_id, at=0, dry=True)
        result = await agents.result(fork.run_id, timeout=_PATIENCE_S)
        assert result.output == first.output
        assert desk.calls == 1


async def test_a_dry_run_goes_past_a_call_whose_arguments_are_no_json(agents_with: Making) -> None:
    desk = Desk()

    def stutters(request: Request) -> Turn:
        if len(request.messages) == 1:
            return Turn(calls=(CallTurn("stamp", "{no json", id="c0"),), usage=Usage(10, 20))
        is_first = len(request.messages) == 3
        return (
            desk.answer(Request(model=request.model, messages=request.messages[:1]))
            if is_first
            else desk.answer(request)
        )

    async with agents_with(stutters, [desk.tool()]) as agents, working(agents):
        first = await _first(agents)
        fork = await agents.fork(first.task_id, at=0, dry=True)
        result = await agents.result(fork.run_id, timeout=_PATIENCE_S)
        assert (result.status, result.output) == ("completed", first.output)
        assert first.output == "stamp it: stamp 1, the 1. of all"
        assert desk.calls == 1


async def test_what_is_not_there_cannot_be_forked_or_edited(agents_with: Making) -> None:
    desk = Desk()
    async with agents_with(desk.answer, [desk.tool()]) as agents, working(agents):
        first = await _first(agents)
        with pytest.raises(BadOption, match=r"^at"):
            await agents.fork(first.task_id, at=99)
        with pytest.raises(BadOption, match=r"^edits\[0\]"):
            await agents.fork(first.task_id, at=1, edits=[Edit(1, "later")])
        with pytest.raises(BadOption, match=r"^prompt"):
            await agents.fork(first.task_id, at=0, prompt=" ")
        with pytest.raises(RecordMissing):
            await agents.fork(first.task_id, at=0, tenant="globex")


_AFTER_THE_LAMP, _AFTER_THE_VASE = 3, 6
"""Places of its journal: a model's call has one, a tool's two."""


class Shelf:
    """Tools on files, and a model that puts a thing on the shelf, then another, then reads the first."""

    def __init__(self) -> None:
        self.read: list[str] = []

    def tools(self) -> list[Tool]:
        @tool(policy=Policy.IDEMPOTENT)
        async def put(ctx: ToolContext, name: str) -> str:
            """Put a thing on the shelf."""
            await (await ctx.needs_sandbox()).write(name, name.encode())
            return "put"

        @tool(policy=Policy.READ_ONLY)
        async def take(ctx: ToolContext, name: str) -> str:
            """What is on the shelf."""
            found = (await (await ctx.needs_sandbox()).read(name)).data.decode()
            self.read.append(found)
            return found

        return [put, take]

    def answer(self, request: Request) -> Turn:
        turns: Sequence[tuple[str, dict[str, str]]]
        turns = (
            ("put", {"name": "lamp"}),
            ("put", {"name": "vase"}),
            ("take", {"name": "lamp"}),
        )
        said = sum(message.role is Role.ASSISTANT for message in request.messages)
        if said == len(turns):
            return Turn(text="done", usage=Usage(10, 20))
        name, arguments = turns[said]
        return Turn(calls=(CallTurn(name, arguments, id=f"c{said}"),), usage=Usage(10, 20))


async def test_a_fork_has_the_files_of_the_steps_before_it(agents_with: Making) -> None:
    shelf = Shelf()
    async with agents_with(shelf.answer, shelf.tools()) as agents, working(agents):
        sent = await _shelved(agents)
        fork = await agents.fork(sent.task_id, at=_AFTER_THE_VASE)
        assert fork.note is None
        assert (await agents.result(fork.run_id, timeout=_PATIENCE_S)).status == "completed"
    assert shelf.read == ["lamp", "lamp"]


async def test_a_fork_from_before_the_first_file_lacks_nothing(agents_with: Making) -> None:
    shelf = Shelf()
    async with agents_with(shelf.answer, shelf.tools()) as agents, working(agents):
        sent = await _shelved(agents)
        fork = await agents.fork(sent.task_id, at=0)
        assert fork.note is None
        assert (await agents.result(fork.run_id, timeout=_PATIENCE_S)).status == "completed"
        assert not await _notes(agents, fork)
    assert shelf.read == ["lamp", "lamp"]


async def test_a_fork_has_the_files_as_they_were_at_its_step(agents_with: Making) -> None:
    """Not as later steps left them."""
    shelf = Shelf()
    async with agents_with(shelf.answer, shelf.tools()) as agents, working(agents):
        sent = await _shelved(agents)
        fork = await agents.fork(sent.task_id, at=_AFTER_THE_LAMP)
        assert fork.note is None
        files = (await agents.records()).files
        as_it_was, newest = await files.checkpoint(fork.task_id), await files.checkpoint(sent.task_id)
        assert as_it_was is not None
        assert newest is not None
        assert (as_it_was.size, newest.size) == (len("lamp"), len("lampvase"))
        assert (await agents.result(fork.run_id, timeout=_PATIENCE_S)).status == "completed"
        assert not await _notes(agents, fork)
    assert shelf.read == ["lamp", "lamp"]


async def test_a_fork_whose_files_have_expired_says_that_they_are_gone(agents_with: Making) -> None:
    shelf = Shelf()
    async with agents_with(shelf.answer, shelf.tools()) as agents, working(agents):
        sent = await _shelved(agents)
        files = (await agents.records()).files
        await files.expire(now_ms=files.database.clock.now_ms() + 365 * 86_400_000)
        fork = await agents.fork(sent.task_id, at=_AFTER_THE_VASE)
        assert fork.note is not None
        assert "empty workspace" in fork.note
        await agents.result(fork.run_id, timeout=_PATIENCE_S)
        assert await _notes(agents, fork) == [fork.note]


async def _shelved(agents: Agents) -> Submitted:
    sent = await agents.submit("go", tenant=TENANT)
    assert (await agents.result(sent.run_id, timeout=_PATIENCE_S)).status == "completed"
    return sent


async def _notes(agents: Agents, fork: Submitted) -> list[str]:
    told = [event.data async for event in agents.follow(fork.run_id)]
    return [data["message"] for data in told if "workspace" in data.get("message", "")]
