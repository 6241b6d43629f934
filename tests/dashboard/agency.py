"""Agents that the pages of runs are shown with: a model that says what its prompt asks for, and tools with gates.

A gate is a file in the folder that the worker runs in; what waits there goes on when it is there.
"""

import asyncio
from collections.abc import AsyncGenerator
from pathlib import Path

from bullpen.agents.agents import Agents
from bullpen.agents.llm.deltas import Delta, TextDelta
from bullpen.agents.llm.models import ModelTable, table_of
from bullpen.agents.llm.scripted import CallTurn, Fault, ScriptedProvider, Turn
from bullpen.agents.llm.words import Request, Role, Usage
from bullpen.agents.tools.policy import Policy
from bullpen.agents.tools.tool import ToolContext
from bullpen.app import Bullpen

MODEL = "parrot"
TABLE = """
version = "test"
[models.parrot]
provider = "scripted"
context_window = 100000
max_output = 4096
input = "1"
output = "5"
"""
"""Of the server's, by BULLPEN_MODELS; the workers have the same."""
MODELS: ModelTable = table_of(
    {
        "version": "test",
        "models": {
            MODEL: {
                "provider": "scripted", "context_window": 100_000, "max_output": 4_096, "input": "1", "output": "5",
            }
        },
    }
)  # fmt: skip
PAUSE = "…"
"""A model that has said this waits at the gate `words`."""
DRAWING = b'<svg xmlns="http://www.w3.org/2000/svg" width="8" height="8"><circle cx="4" cy="4" r="3"/></svg>'
_CHUNK = 6


class Agency:
    def __init__(self, store: str | None = None, records: str | None = None) -> None:
        self.pen = Bullpen(store)
        self.agents = Agents(self.pen, records, providers=[_Gated(answer)], models=MODELS)
        self.agents.tool(policy=Policy.READ_ONLY)(look_up)
        self.agents.tool(policy=Policy.READ_ONLY)(wait_at)
        self.agents.tool(policy=Policy.ONCE)(charge)
        self.agents.tool(policy=Policy.READ_ONLY)(draw)


class _Gated(ScriptedProvider):
    async def stream(self, request: Request) -> AsyncGenerator[Delta, None]:
        if _prompt(request).startswith("stars"):
            await _gate("sky")
        async for delta in super().stream(request):
            yield delta
            if isinstance(delta, TextDelta) and PAUSE in delta.text:
                await _gate("words")


async def _gate(name: str) -> None:
    while not Path(name).exists():  # a file is all that the test and its worker share
        await asyncio.sleep(0.02)


def answer(request: Request) -> Turn:
    """By the first word of the prompt; how many tools have answered says where it is."""
    prompt = _prompt(request)
    if any(tool.name == "research" for tool in request.tools):
        return _says("I split it up.", CallTurn("research", {"questions": ["sun", "moon", "stars"]}))
    if "# What was found" in prompt:
        return _says("Joined: the sky is large.")
    results = [result for message in request.messages for result in message.results]
    word = prompt.split()[0].lower()
    if word == "weather" and not results:
        places = [CallTurn("look_up", {"city": city}) for city in ("Bern", "Atlantis")]
        return _says("I look it up for both.", *places)
    if word == "wait" and not results:
        return _says("I wait at the gate.", CallTurn("wait_at", {"gate": prompt.split()[1]}))
    if word == "charge" and not results:
        return _says("I charge the card.", CallTurn("charge", {"cents": 1250}))
    if word == "draw" and not results:
        return _says("I draw it.", CallTurn("draw", {}))
    if word == "stumble" and (request.idempotency_key or "").endswith("/1"):
        return Turn(text="I begin, and", error=Fault("answer-broken", after=5))
    if word == "moon":
        return Turn(error=Fault("content-refused"))
    if word == "talk":
        return _says(f"I begin {PAUSE} and I come to an end.")
    return _says(f"Done: {'; '.join(result.text for result in results) or prompt}")


def _prompt(request: Request) -> str:
    return next(message.text for message in request.messages if message.role is Role.USER)


def _says(text: str, *calls: CallTurn) -> Turn:
    return Turn(text=text, calls=calls, chunk=_CHUNK, usage=Usage(1_000, 200))


async def look_up(city: str) -> str:
    """The weather in a city."""
    if city == "Atlantis":
        raise ValueError("there is no such city")
    return f"12 degrees and rain in {city}"


async def wait_at(gate: str) -> str:
    """Waits until a gate is open."""
    await _gate(gate)
    return f"the gate {gate} is open"


async def charge(cents: int) -> str:
    """Charges a card, which must not happen twice."""
    await _gate("bank")
    return f"charged {cents} cents"


async def draw(ctx: ToolContext) -> str:
    """A picture and a table."""
    await ctx.keep_file("sales.svg", DRAWING, mime="image/svg+xml")
    return await ctx.keep_file("sales ü.csv", b"may,7\n", mime="text/csv")


pen = Agency().pen
"""What `bullpen worker` runs, on the store and the records that its environment names."""
