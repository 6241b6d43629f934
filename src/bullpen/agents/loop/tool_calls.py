"""The calls of tools that one step of a loop makes, side by side: each from the record, or made now.

    intend ──▶ call ──▶ save its files ──▶ finish

Whatever goes wrong in a tool is told to the model. What is raised from here ends the activation.
"""

import asyncio
import dataclasses
import time
from collections.abc import Mapping, Sequence
from typing import Any

import msgspec

from bullpen.agents.llm.words import ToolCall, ToolResult
from bullpen.agents.loop.calling import called, unsaved
from bullpen.agents.loop.finishing import Also
from bullpen.agents.loop.lending import Lent, SandboxLine, SandboxSpoiled
from bullpen.agents.loop.options import LoopOptions
from bullpen.agents.loop.progress import ToolProgress
from bullpen.agents.loop.recorder import Recorder
from bullpen.agents.loop.resuming import AfterCrash
from bullpen.agents.loop.steps import OVER_LIMIT, REFUSED, check_fits
from bullpen.agents.loop.tally import worked_ms
from bullpen.agents.loop.telling import Telling
from bullpen.agents.sandbox.base import Level
from bullpen.agents.tools.policy import Policy
from bullpen.agents.tools.tool import Tool, ToolContext
from bullpen.agents.tools.toolbox import Toolbox
from bullpen.errors import AgentError, BadData, SandboxError, SandboxTimeout, ToolError, WorkspaceUnsaved
from bullpen.job.entries import JournalEntry
from bullpen.observing import ToolUse

PLACES_OF_A_CALL = 2
"""In the journal: its own, and one for the answer of a person who is asked what became of it."""

_encode = msgspec.json.Encoder().encode
_decode_result = msgspec.json.Decoder(ToolResult).decode


class ToolCalls:
    def __init__(self, recorder: Recorder, tools: Toolbox, options: LoopOptions, telling: Telling) -> None:
        self._recorder = recorder
        self._tools = tools
        self._options = options
        self._limits = options.limits
        self._context = options.context or ToolContext(task_id=recorder.task_id, key=recorder.task_id)
        self._telling = telling
        self._after_crash = AfterCrash(recorder, most=options.limits.result_characters)
        self._under_way = 0
        """Those that go on, or wait for their turn."""
        self._line = SandboxLine()
        self._turns = asyncio.Semaphore(options.limits.parallel_calls)

    async def make(self, calls: Sequence[ToolCall], place: int, *, at_most: int) -> list[ToolResult]:
        """The first so many of them; the rest is refused.

        All are waited for, so that what could be done is on record; then the first error is raised.
        """
        made, beyond = calls[:at_most], calls[at_most:]
        self._under_way = len(made)
        working = (self._make_in_turn(_place_of(n, place), call) for n, call in enumerate(made))
        found = await asyncio.gather(*working, return_exceptions=True)
        # Whoever was kept out by another's error says nothing of it.
        for one in sorted(found, key=lambda one: isinstance(one, SandboxSpoiled)):
            if isinstance(one, BaseException):
                raise one
        refused = [await self._refuse(_place_of(n, place), call) for n, call in enumerate(beyond, len(made))]
        if refused:
            await self._recorder.flush()
        return [*(one for one in found if isinstance(one, ToolResult)), *refused]

    def worked_ms(self, made: Sequence[ToolCall], place: int) -> int:
        """For how long these went on, as the record has it."""
        entries = (self._recorder.at(_place_of(n, place)) for n in range(len(made)))
        return worked_ms(entry for entry in entries if entry is not None)

    # ── refused ──────────────────────────────────────────────────────────────────────────

    async def _refuse(self, place: int, call: ToolCall) -> ToolResult:
        """What the model is told of a call beyond those that it may make; on record with the next `flush`."""
        entry = self._recorder.at(place)
        check_fits(entry, call.name, REFUSED, OVER_LIMIT)
        if entry is not None and entry.value is not None:
            return _decode_result(entry.value)
        error = ToolError(f"{call.name!r} was not called: no more than {self._limits.tool_calls} calls may be made")
        return await self._refused(place, call, OVER_LIMIT, error, may_wait=True)

    async def _refused(
        self, place: int, call: ToolCall, name: str, error: Exception, *, may_wait: bool = False
    ) -> ToolResult:
        refused = ToolResult(call.id, str(error), is_error=True)
        self._options.observers.tool_used(ToolUse(self._tools.known(call.name), "refused"))
        told = self._telling.used(call, refused, seconds=0, error=error)
        await self._recorder.note(place, name, _encode(refused), told=told, may_wait=may_wait)
        return refused

    # ── made ─────────────────────────────────────────────────────────────────────────────

    async def _make_in_turn(self, place: int, call: ToolCall) -> ToolResult:
        try:
            async with self._turns:
                return await self._make(place, call)
        finally:
            self._under_way -= 1

    async def _make(self, place: int, call: ToolCall) -> ToolResult:
        """What a tool answers: from the record, or called now."""
        entry = self._recorder.at(place)
        check_fits(entry, call.name, REFUSED, OVER_LIMIT)
        if entry is not None and entry.value is not None:
            return _decode_result(entry.value)
        try:
            tool = self._tools.find(call.name)
            arguments = call.parsed()
            tool.check(arguments)
        except (AgentError, BadData) as error:
            return await self._refused(place, call, self._tools.known(call.name) or REFUSED, error)
        async with Lent(self._context, self._line) as lent:
            return await self._make_with(lent, place, call, tool, arguments, entry)

    async def _make_with(
        self,
        lent: Lent,
        place: int,
        call: ToolCall,
        tool: Tool,
        arguments: dict[str, Any],
        entry: JournalEntry | None,
    ) -> ToolResult:
        """Its sandbox is its own until that is on record."""
        context = dataclasses.replace(self._context, key=self._recorder.key(place), sandbox=lent.sandbox)
        if entry is not None:
            found = await self._after_crash.found(entry, call, tool, context, arguments)
            if found is not None:
                told = self._telling.used(call, found, seconds=0)
                await self._recorder.finish(
                    entry, _encode(found), price=tool.price, told=told, was_done=True, memo=tool.memo
                )
                return found
        if tool.policy is Policy.ONCE and tool.isolation > Level.NONE:
            await lent.before()  # once it is on record as begun, a person would be asked what became of it
        intended = await self._intend(place, call, tool, before=entry)
        return await self._carry_out(intended, call, tool, context, arguments, lent)

    async def _intend(self, place: int, call: ToolCall, tool: Tool, before: JournalEntry | None) -> JournalEntry:
        used_up = None if before is None or tool.policy is not Policy.ONCE else place + 1
        # Of these two somebody has just said that it was not made.
        not_done = before is not None and tool.policy in (Policy.RECONCILE, Policy.ONCE)
        told = self._telling.using(call)
        return await self._recorder.intend(
            place, call.name, most=tool.price, told=told, used_up=used_up, not_done=not_done
        )

    async def _carry_out(
        self,
        entry: JournalEntry,
        call: ToolCall,
        tool: Tool,
        context: ToolContext,
        arguments: Mapping[str, Any],
        lent: Lent,
    ) -> ToolResult:
        """It is on record as begun: call it, save what it left, and put on record what came of it."""
        began = time.monotonic()
        try:
            async with ToolProgress(self._recorder, call) as progress:
                context = progress.given_to(context)
                result, wrong = await called(call, tool, context, arguments, most=self._limits.result_characters)
        except (SandboxTimeout, SandboxSpoiled):
            await self._recorder.give_up(entry, price=0)
            raise
        except asyncio.CancelledError:
            self._options.observers.tool_used(ToolUse(tool.name, "cancelled", time.monotonic() - began))
            raise
        took_s = time.monotonic() - began
        saved: Also | None = None
        # With a sandbox that broke went what the call did: the next tool finds what was saved before it.
        has_work = lent.is_used and not isinstance(wrong, SandboxError)
        if self._options.saves is not None and has_work:
            try:
                saved = await self._options.saves(entry.place)
            except WorkspaceUnsaved as error:
                result, wrong = unsaved(result, error), error
        self._options.observers.tool_used(ToolUse(tool.name, "failed" if result.is_error else "completed", took_s))
        told = self._telling.used(call, result, seconds=took_s, error=wrong)
        # Beside others that go on it does not wait for what comes after them all.
        is_last = self._under_way == 1
        await self._recorder.finish(
            entry, _encode(result), price=tool.price, told=told, also=saved, may_wait=is_last, memo=tool.memo
        )
        return result


def _place_of(n: int, first: int) -> int:
    return first + PLACES_OF_A_CALL * n
