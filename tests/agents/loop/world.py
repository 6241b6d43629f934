"""An agent with tools of every kind, and the world that its calls change: the world survives when a worker does not."""

import itertools
from collections import Counter
from collections.abc import AsyncIterator, Mapping
from contextlib import asynccontextmanager
from typing import Any

import msgspec
from sqlalchemy.ext.asyncio import AsyncConnection

from bullpen.agents.llm.models import ModelTable, table_of
from bullpen.agents.llm.scripted import CallTurn, ScriptedProvider, Turn
from bullpen.agents.llm.words import Message, Request, Role, Usage, user
from bullpen.agents.loop.loop import AgentLoop
from bullpen.agents.loop.options import LoopOptions
from bullpen.agents.loop.recorder import Recorder
from bullpen.agents.loop.words import LoopLimits, LoopResult
from bullpen.agents.tools.policy import Policy
from bullpen.agents.tools.tool import NOT_MADE, ToolContext, tool
from bullpen.agents.tools.toolbox import Toolbox
from bullpen.records.credits.credits import purse
from bullpen.records.database import Database
from bullpen.records.records import Records

MODEL = "parrot"
MODELS: ModelTable = table_of(
    {
        "version": "test",
        "credits_per_dollar": "1",
        "models": {
            MODEL: {
                "provider": "scripted", "context_window": 100_000, "max_output": 1_000, "input": "1", "output": "1",
            }
        },
    }
)  # fmt: skip
TENANT = "acme"
PRICE = 30
"""Of each call of the model: ten tokens in, twenty out, at a micro-credit each."""
LIMITS = LoopLimits(reply_tokens=100)
PROMPT = (user("go"),)


class Crash(Exception):
    """The worker is dead."""


class MortalDatabase(Database):
    """Kills its worker at a given write: before it, so that what was done is not on record, or just after."""

    def __init__(self, inner: Database, *, at: int | None = None, is_after: bool = False) -> None:
        super().__init__(inner.engine, inner.clock)
        self._at = at
        self._is_after = is_after
        self._numbers = itertools.count()
        self._is_dead = False
        self.writes = 0

    @asynccontextmanager
    async def writing(self, *, brief: bool = False, begun: bool = True) -> AsyncIterator[AsyncConnection]:
        number = next(self._numbers)
        self.writes = number + 1
        if self._is_dead or (number == self._at and not self._is_after):
            self._die()
        async with super().writing(brief=brief, begun=begun) as connection:
            yield connection
        if number == self._at:
            self._die()

    def _die(self) -> None:
        self._is_dead = True
        raise Crash


class World:
    """What the tools have done, by the key of the call."""

    def __init__(self) -> None:
        self.looked: Counter[str] = Counter()
        self.noted: dict[str, int] = {}
        self.paid: Counter[str] = Counter()
        self.mailed: Counter[str] = Counter()
        self.asked = 0
        """How often the model was asked."""

    def tools(self) -> Toolbox:
        @tool(policy=Policy.READ_ONLY)
        async def look(ctx: ToolContext, n: int) -> str:
            """Look at something."""
            self.looked[ctx.key] += 1
            return f"seen {n}"

        @tool(policy=Policy.IDEMPOTENT)
        async def note(ctx: ToolContext, n: int) -> int:
            """Write it down once for each key."""
            return self.noted.setdefault(ctx.key, n)

        async def what_was_paid(ctx: ToolContext, _: Mapping[str, Any]) -> Any:
            return "paid" if self.paid[ctx.key] else NOT_MADE

        @tool(policy=Policy.RECONCILE, reconcile=what_was_paid)
        async def pay(ctx: ToolContext, n: int) -> str:
            """Pay."""
            self.paid[ctx.key] += 1
            return "paid"

        @tool(policy=Policy.ONCE)
        async def mail(ctx: ToolContext, n: int) -> str:
            """Send a mail."""
            self.mailed[ctx.key] += 1
            return "sent"

        return Toolbox([look, note, pay, mail])

    def provider(self, turns: int) -> ScriptedProvider:
        """So many turns with one or two tools each, and then an answer."""
        names = ("mail", "note", "pay", "look")

        def answer(request: Request) -> Turn:
            self.asked += 1
            n = sum(message.role == Role.ASSISTANT for message in request.messages)
            usage = Usage(10, 20)
            if n == turns:
                return Turn(text=f"done after {_told(request.messages)}", usage=usage)
            picked = (names[n % 4], names[(n // 2) % 4])[: 1 + n % 2]
            calls = tuple(CallTurn(name, {"n": n}, id=f"call-{n}-{k}") for k, name in enumerate(picked))
            return Turn(calls=calls, usage=usage)

        return ScriptedProvider(answer)


def _told(messages: tuple[Message, ...]) -> str:
    return ", ".join(result.text for message in messages for result in message.results)


async def activate(
    records: Records,
    world: World,
    turns: int,
    epoch: int,
    database: Database | None = None,
    limits: LoopLimits = LIMITS,
) -> LoopResult:
    """One activation of the run, to its end or to the death of its worker."""
    recorder = Recorder(database or records.database, "r1", epoch, [purse(TENANT)])
    if (ended := await recorder.begin()) is not None:
        return msgspec.json.decode(ended, type=LoopResult)
    loop = AgentLoop(recorder, world.provider(turns), MODELS, world.tools(), LoopOptions(limits=limits))
    result = await loop.run(MODEL, PROMPT)
    await recorder.end(lambda _: msgspec.json.encode(result))
    return result
