"""One activation of an agent's loop: it goes through what is on record, and then on.

Places of the journal: a call of a model has one, a call of a tool two, the second for the answer of a person
who is asked what became of it. So the same conversation has the same places in every activation.
"""

from collections.abc import Callable, Sequence

import msgspec

from bullpen.agents.llm.models import Model, ModelTable
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
from bullpen.agents.loop.compacting import compacted, cut_for, is_full, request_for
from bullpen.agents.loop.options import LoopOptions
from bullpen.agents.loop.recorder import Recorder
from bullpen.agents.loop.steps import ASKED, check_fits, cut_of, in_short
from bullpen.agents.loop.tally import worked_ms
from bullpen.agents.loop.telling import Telling
from bullpen.agents.loop.tool_calls import PLACES_OF_A_CALL, ToolCalls
from bullpen.agents.loop.words import LoopResult, Stop
from bullpen.agents.tools.toolbox import Toolbox
from bullpen.errors import ContentRefused, CreditsShort, ModelError

_encode = msgspec.json.Encoder().encode
_decode_reply = msgspec.json.Decoder(Reply).decode
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
        self._telling = Telling(options.limits, recorder.redactor.text)
        self._calls = ToolCalls(recorder, tools, options, self._telling)
        self._next_place = 0
        self._steps = 0
        self._tool_calls = 0
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
        try:
            while (stop := self._limit_reached()) is None:
                conversation = await self._fitted(model, conversation)
                reply = await self.ask(self._request(model, conversation), may_wait=True)
                self._counted, self._counted_at = reply.usage, len(conversation)
                text = reply.text
                stop = stop_of(reply)
                if not reply.calls:
                    return self._result(stop, text)
                answers = await self._use_tools(reply.calls)
                conversation = conversation.then(reply.message(), results(*answers))
            if stop is Stop.MAX_TOOL_CALLS:
                text = await self._last_words(model, conversation) or text
        except CreditsShort as short:
            self.short = short
            stop = Stop.CREDITS
        return self._result(stop, text)

    async def _last_words(self, model: str, conversation: Conversation) -> str:
        """What it makes of its last calls, with no more of them: what they found is paid, and would not be read."""
        conversation = await self._fitted(model, conversation)
        request = msgspec.structs.replace(self._request(model, conversation), tool_choice=NONE)
        reply = await self.ask(request, may_wait=True, is_last=True)
        stop_of(reply)
        return reply.text

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
        known, limit = self._models.model(model), self._limits.reply_tokens
        entry = self._recorder.at(self._next_place)
        is_on_record = entry is not None and entry.value is not None
        cut = cut_of(entry) if entry is not None and is_on_record else None
        if cut is None:
            if not is_full(known, conversation, self._counted, self._counted_at, limit):
                return conversation
            cut = cut_for(known, conversation, limit)
            if cut is not None and is_on_record:
                return conversation  # in a larger window it was asked as it is
        summary = "" if cut is None else await self._in_short(model, known, conversation, cut)
        short = compacted(known, conversation, cut, summary, limit)
        if short is not conversation:
            self._counted = None
        return short

    async def _in_short(self, model: str, known: Model, conversation: Conversation, cut: int) -> str:
        request = request_for(model, known, conversation, cut, self._limits.reply_tokens)
        return (await self.ask(request, may_wait=True, name=in_short(model, cut), is_last=False)).text

    # ── limits ───────────────────────────────────────────────────────────────────────────

    def _limit_reached(self) -> Stop | None:
        limits = self._limits
        if self._steps >= limits.steps:
            return Stop.MAX_STEPS
        if sum(usage.total_tokens for usage in self._usage.values()) >= limits.tokens:
            return Stop.MAX_TOKENS
        if self._worked_ms >= limits.seconds * 1000:
            return Stop.TIMEOUT
        # The last, as one more call of the model comes after it.
        return Stop.MAX_TOOL_CALLS if 0 < limits.tool_calls <= self._tool_calls else None

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

    async def ask(
        self,
        request: Request,
        *,
        may_wait: bool = False,
        name: str = "",
        is_last: bool | None = None,
        check: Callable[[Reply], object] = lambda _: None,
    ) -> Reply:
        """What the model says: from the record, or asked now, with the most that it can cost held before.

        `may_wait`: the next step is put on record, or `flush` is called, before anything else is waited for.
        `name` on record, if it is no usual one; `is_last`: whether something comes after it, if that is not its to say.
        StepsDiffer if another step is on record. `check` raises BadAnswer for a reply that is not to be on record.
        """
        place = self.take_places(1)
        entry = self._recorder.at(place)
        name = name or f"{ASKED}{request.model}"
        check_fits(entry, name)
        if entry is None or entry.value is None:
            most = self._models.most(request)
            told = self._telling.asking(self._steps + 1, request.model)
            entry = await self._recorder.intend(place, name, most=most, told=told)
            memo = f"{entry.name} at prices {self._models.version}"
            keyed = msgspec.structs.replace(request, idempotency_key=f"{self._recorder.key(place)}/{entry.attempts}")
            try:
                reply = await complete(self._provider, keyed, self._options.on_delta)
                check(reply)
            except ModelError as error:
                await self._recorder.give_up(entry, price=self._models.cost_of(error), memo=memo)
                raise
            price = self._price_of(reply, most)
            is_last = not reply.calls if is_last is None else is_last
            told = self._telling.answered(self._steps + 1, reply, spent=self._price + price, is_last=is_last)
            if self._options.before_finish is not None:
                told = await self._options.before_finish() + told
            value = _encode(reply)
            entry = await self._recorder.finish(entry, value, price=price, told=told, may_wait=may_wait, memo=memo)
        assert entry.value is not None
        reply = _decode_reply(entry.value)
        self._steps += 1
        self._worked_ms += worked_ms([entry])
        self._usage[reply.model] = self._usage.get(reply.model, Usage()) + (reply.usage or Usage())
        self._price += self._models.most(request) if reply.usage is None else self._price_of(reply, 0)
        return reply

    def _price_of(self, reply: Reply, most: int) -> int:
        # A provider that does not tell what was used is taken to have used all that it might.
        return most if reply.usage is None else self._models.price(reply.model, reply.usage)

    # ── calls of tools ───────────────────────────────────────────────────────────────────

    async def _use_tools(self, calls: Sequence[ToolCall]) -> list[ToolResult]:
        """Of all of them, or the first error; those beyond the limit are refused."""
        place = self.take_places(PLACES_OF_A_CALL * len(calls))
        left = max(0, self._limits.tool_calls - self._tool_calls)
        answers = await self._calls.make(calls, place, at_most=left)
        self._tool_calls += min(left, len(calls))
        self._worked_ms += self._calls.worked_ms(calls[:left], place)
        return answers


def stop_of(reply: Reply) -> Stop:
    """Why a loop ends with this answer. ContentRefused if it is none."""
    if reply.stop is StopReason.REFUSED:
        raise ContentRefused(f"{reply.model} refused to answer", provider=reply.provider, model=reply.model)
    return Stop.MAX_TOKENS if reply.stop is StopReason.MAX_TOKENS else Stop.ANSWER
