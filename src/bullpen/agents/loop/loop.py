"""One activation of an agent's loop: it goes through what is on record, and then on.

Places of the journal: a call of a model has one, a call of a tool two, the second for the answer of a person
who is asked what became of it. So the same conversation has the same places in every activation.
"""

import asyncio
import dataclasses
import time
from collections.abc import Sequence

import msgspec

from bullpen.agents.llm.models import ModelTable
from bullpen.agents.llm.provider import Provider, complete
from bullpen.agents.llm.words import (
    NONE,
    Conversation,
    Message,
    Reply,
    Request,
    StopReason,
    ToolCall,
    ToolResult,
    Usage,
    results,
)
from bullpen.agents.loop.calling import called
from bullpen.agents.loop.compacting import compacted, is_full, request_for
from bullpen.agents.loop.lending import Lent
from bullpen.agents.loop.options import LoopOptions
from bullpen.agents.loop.progress import ToolProgress
from bullpen.agents.loop.recorder import Recorder
from bullpen.agents.loop.resuming import AfterCrash
from bullpen.agents.loop.steps import ASKED, OVER_LIMIT, REFUSED
from bullpen.agents.loop.telling import Telling
from bullpen.agents.loop.words import LoopResult, Stop
from bullpen.agents.tools.policy import Policy
from bullpen.agents.tools.tool import ToolContext
from bullpen.agents.tools.toolbox import Toolbox
from bullpen.errors import AgentError, BadData, ContentRefused, CreditsShort, ModelError, SandboxError, ToolError
from bullpen.observing import ToolUse

_encode = msgspec.json.Encoder().encode
_decode_reply = msgspec.json.Decoder(Reply).decode
_decode_result = msgspec.json.Decoder(ToolResult).decode
_USUAL = LoopOptions()


class AgentLoop:
    """Asks a model and calls its tools until there is an answer, or no more may be used."""

    def __init__(
        self,
        recorder: Recorder,
        provider: Provider,
        models: ModelTable,
        tools: Toolbox,
        options: LoopOptions = _USUAL,
    ) -> None:
        self._recorder = recorder
        self._provider = provider
        self._models = models
        self._tools = tools
        self._options = options
        self._limits = options.limits
        self._context = options.context or ToolContext(run=recorder.run, key=recorder.run)
        self._telling = Telling(options.limits)
        self._after_crash = AfterCrash(recorder, most=options.limits.result_characters)
        self._next_place = 0
        self._steps = 0
        self._tool_calls = 0
        self._under_way = 0
        """Calls of tools that go on, or wait for their turn."""
        self._turns = asyncio.Semaphore(options.limits.parallel_calls)
        self._worked_ms = 0
        self._usage: dict[str, Usage] = {}
        self._counted: Usage | None = None
        """What the last call used, and where in the conversation its answer is."""
        self._counted_at = 0
        self._price = 0
        self.short: CreditsShort | None = None
        """What it stopped at, of credits."""

    async def run(self, model: str, messages: Sequence[Message]) -> LoopResult:
        """Go on until it ends. NeedsAnswer parks the run; a ModelError fails this activation, and nothing is lost."""
        try:
            return await self._run(model, Conversation(messages))
        finally:
            await self._recorder.flush()

    async def _run(self, model: str, conversation: Conversation) -> LoopResult:
        text = ""
        while (stop := self._limit_reached()) is None:
            try:
                conversation = await self._fitted(model, conversation)
                reply = await self.ask(self._request(model, conversation), may_wait=True)
                self._counted, self._counted_at = reply.usage, len(conversation)
                text = reply.text
                stop = stop_of(reply)
                if not reply.calls:
                    return self._result(stop, text)
                answers = await self._use_all(reply.calls)
                conversation = conversation.then(reply.message(), results(*answers))
            except CreditsShort as short:
                self.short = short
                return self._result(Stop.CREDITS, text)
        return self._result(stop, text)

    def _request(self, model: str, conversation: Conversation) -> Request:
        return Request(
            model=model,
            messages=conversation,
            tools=self._tools.specs() if self._limits.tool_calls else (),
            max_tokens=self._limits.reply_tokens,
            temperature=self._options.temperature,
        )

    async def _fitted(self, model: str, conversation: Conversation) -> Conversation:
        """The conversation, or what is left of it in short where it would outgrow the model's window."""
        limit = self._limits.reply_tokens
        if not is_full(self._models.model(model), conversation, self._counted, self._counted_at, limit):
            return conversation
        reply = await self.ask(request_for(model, conversation, limit), may_wait=True)
        self._counted = None
        return compacted(conversation, reply.text)

    # ── limits ───────────────────────────────────────────────────────────────────────────

    def _limit_reached(self) -> Stop | None:
        limits = self._limits
        if self._steps >= limits.steps:
            return Stop.MAX_STEPS
        if 0 < limits.tool_calls <= self._tool_calls:
            return Stop.MAX_TOOL_CALLS
        if sum(usage.total_tokens for usage in self._usage.values()) >= limits.tokens:
            return Stop.MAX_TOKENS
        return Stop.TIMEOUT if self._worked_ms >= limits.seconds * 1000 else None

    def _result(self, stop: Stop, text: str) -> LoopResult:
        return LoopResult(
            stop=stop,
            text=text,
            steps=self._steps,
            tool_calls=self._tool_calls,
            usage=self._usage,
            price=self._price,
        )

    def take_places(self, count: int) -> int:
        """The next ones of the journal; the first of them."""
        self._next_place += count
        return self._next_place - count

    # ── a call of a model ────────────────────────────────────────────────────────────────

    async def ask(self, request: Request, *, may_wait: bool = False) -> Reply:
        """What the model says: from the record, or asked now, with the most that it can cost held before.

        `may_wait`: the next step is put on record, or `flush` is called, before anything else is waited for.
        """
        place = self.take_places(1)
        entry = self._recorder.at(place)
        if entry is None or entry.value is None:
            most = self._models.most(request)
            told = self._telling.asking(self._steps + 1, request.model)
            entry = await self._recorder.intend(place, f"{ASKED}{request.model}", most=most, told=told)
            memo = f"{entry.name} at prices {self._models.version}"
            keyed = msgspec.structs.replace(request, idempotency_key=f"{self._recorder.key(place)}/{entry.attempts}")
            try:
                reply = await complete(self._provider, keyed, self._options.on_delta)
            except ModelError as error:
                await self._recorder.give_up(entry, price=self._models.cost_of(error), memo=memo)
                raise
            price = self._price_of(reply, most)
            is_last = not reply.calls and request.tool_choice != NONE
            told = self._telling.answered(self._steps + 1, reply, spent=self._price + price, is_last=is_last)
            if self._options.before_finish is not None:
                told = await self._options.before_finish() + told
            value = _encode(reply)
            entry = await self._recorder.finish(entry, value, price=price, told=told, may_wait=may_wait, memo=memo)
        assert entry.value is not None
        reply = _decode_reply(entry.value)
        self._steps += 1
        self._worked_ms += entry.ended_ms - entry.started_ms
        self._usage[reply.model] = self._usage.get(reply.model, Usage()) + (reply.usage or Usage())
        self._price += self._models.most(request) if reply.usage is None else self._price_of(reply, 0)
        return reply

    def _price_of(self, reply: Reply, most: int) -> int:
        # A provider that does not tell what was used is taken to have used all that it might.
        return most if reply.usage is None else self._models.price(reply.model, reply.usage)

    # ── calls of tools ───────────────────────────────────────────────────────────────────

    async def _use_all(self, calls: Sequence[ToolCall]) -> list[ToolResult]:
        """Side by side. All are waited for, so that what could be done is on record; then the first error is raised."""
        place = self.take_places(2 * len(calls))
        left = max(0, self._limits.tool_calls - self._tool_calls)
        made, beyond = calls[:left], calls[left:]
        self._under_way = len(made)
        working = (self._use_one(place + 2 * n, call) for n, call in enumerate(made))
        found = await asyncio.gather(*working, return_exceptions=True)
        for one in found:
            if isinstance(one, BaseException):
                raise one
        self._tool_calls += len(made)
        refused = [await self._refuse(place + 2 * n, call) for n, call in enumerate(beyond, len(made))]
        if refused:
            await self._recorder.flush()
        return [*(one for one in found if isinstance(one, ToolResult)), *refused]

    async def _refuse(self, place: int, call: ToolCall) -> ToolResult:
        """What the model is told of a call beyond those that it may make; on record with the next `flush`."""
        entry = self._recorder.at(place)
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

    async def _use_one(self, place: int, call: ToolCall) -> ToolResult:
        try:
            async with self._turns:
                return await self._use(place, call)
        finally:
            self._under_way -= 1

    async def _use(self, place: int, call: ToolCall) -> ToolResult:
        """What a tool answers: from the record, or called now. Whatever goes wrong in it is told to the model."""
        entry = self._recorder.at(place)
        if entry is not None and entry.value is not None:
            self._worked_ms += entry.ended_ms - entry.started_ms
            return _decode_result(entry.value)
        try:
            tool = self._tools.find(call.name)
            arguments = call.parsed()
            tool.check(arguments)
        except (AgentError, BadData) as error:
            return await self._refused(place, call, self._tools.known(call.name) or REFUSED, error)
        lent = Lent(self._context)
        context = dataclasses.replace(self._context, key=self._recorder.key(place), sandbox=lent.sandbox)
        used_up = None if entry is None or tool.policy is not Policy.ONCE else place + 1
        if entry is not None:
            found = await self._after_crash.found(entry, call, tool, context, arguments)
            if found is not None:
                told = self._telling.used(call, found, seconds=0)
                await self._recorder.finish(entry, _encode(found), price=tool.price, told=told)
                return found
        told = self._telling.using(call)
        # Of these two somebody has just said that it was not made.
        not_done = entry is not None and tool.policy in (Policy.RECONCILE, Policy.ONCE)
        entry = await self._recorder.intend(
            place, call.name, most=tool.price, told=told, used_up=used_up, not_done=not_done
        )
        began = time.monotonic()
        try:
            async with ToolProgress(self._recorder, call) as progress:
                context = progress.given_to(context)
                result, wrong = await called(call, tool, context, arguments, most=self._limits.result_characters)
        except asyncio.CancelledError:
            self._options.observers.tool_used(ToolUse(tool.name, "cancelled", time.monotonic() - began))
            raise
        took_s = time.monotonic() - began
        self._options.observers.tool_used(ToolUse(tool.name, "failed" if result.is_error else "completed", took_s))
        told = self._telling.used(call, result, seconds=took_s, error=wrong)
        # With a sandbox that broke went what the call did: the next tool finds what was saved before it.
        has_work = lent.is_used and not isinstance(wrong, SandboxError)
        saves = self._options.saves
        saved = await saves(place) if saves is not None and has_work else None
        # Beside others that go on it does not wait for what comes after them all.
        done = await self._recorder.finish(
            entry, _encode(result), price=tool.price, told=told, also=saved, may_wait=self._under_way == 1
        )
        self._worked_ms += done.ended_ms - done.started_ms
        return result


def stop_of(reply: Reply) -> Stop:
    """Why a loop ends with this answer. ContentRefused if it is none."""
    if reply.stop is StopReason.REFUSED:
        raise ContentRefused(f"{reply.model} refused to answer", provider=reply.provider, model=reply.model)
    return Stop.MAX_TOKENS if reply.stop is StopReason.MAX_TOKENS else Stop.ANSWER
