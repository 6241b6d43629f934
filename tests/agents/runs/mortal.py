"""An agent with tools of every policy whose worker dies by its own hand, and a world of files that outlives it.

python -m tests.agents.runs.mortal <store> <records> <folder>

`DIE_AT` is the number of the write of the records, from 0, at which the process sends itself SIGKILL: before it, so
that what was done is not on record, or after its commit (`DIE_AFTER=1`). Without it the process lives.
"""

import asyncio
import os
import signal
import sys
from collections import Counter
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from bullpen import Bullpen, WorkerOptions
from bullpen.agents.agents import Agents
from bullpen.agents.llm.scripted import CallTurn, ScriptedProvider, Turn
from bullpen.agents.llm.words import Request, Role, Usage
from bullpen.agents.tools.policy import Policy
from bullpen.agents.tools.tool import NOT_MADE, Tool, ToolContext, tool
from bullpen.records.records import Records
from bullpen.settings import store_from
from tests.agents.loop.world import MortalDatabase
from tests.agents.runs.models import MODELS

TURNS = 16
STEPS = 41
"""Calls of the model, and of tools: every second turn has two of these."""
USAGE = Usage(10, 20)
_NAMES = ("mail", "note", "pay", "look")
LIVES = WorkerOptions(lease=1.5, max_stalled=10_000, grace=5)
"""A dead worker's task is taken up soon, and however often."""


class MortalProcess(MortalDatabase):
    """The same, but that it kills this very process."""

    def _die(self) -> None:
        os.kill(os.getpid(), signal.SIGKILL)


class World:
    """What happened outside, a line for each effect: `<what> <key> <n>`."""

    def __init__(self, folder: Path) -> None:
        self._path = folder / "effects"

    def happen(self, what: str, key: str, n: int) -> None:
        file = os.open(self._path, os.O_WRONLY | os.O_APPEND | os.O_CREAT, 0o600)
        try:
            os.write(file, f"{what} {key} {n}\n".encode())
        finally:
            os.close(file)

    def effects(self, what: str) -> Counter[str]:
        """How often, by key."""
        return Counter(key for found, key, _ in self._lines() if found == what)

    def keys_by_number(self, what: str) -> set[tuple[str, str]]:
        return {(n, key) for found, key, n in self._lines() if found == what}

    def _lines(self) -> list[tuple[str, str, str]]:
        if not self._path.exists():
            return []
        return [(words[0], words[1], words[2]) for words in map(str.split, self._path.read_text().splitlines())]

    def tools(self) -> list[Tool]:
        @tool(policy=Policy.READ_ONLY)
        async def look(ctx: ToolContext, n: int) -> str:
            """Look at something."""
            self.happen("look", ctx.key, n)
            return f"seen {n}"

        @tool(policy=Policy.IDEMPOTENT)
        async def note(ctx: ToolContext, n: int) -> str:
            """Write it down: whoever keeps the notes has one for each key."""
            self.happen("note", ctx.key, n)
            return f"noted {n}"

        async def what_was_paid(ctx: ToolContext, _: Mapping[str, Any]) -> Any:
            return "paid" if self.effects("pay")[ctx.key] else NOT_MADE

        @tool(policy=Policy.RECONCILE, reconcile=what_was_paid)
        async def pay(ctx: ToolContext, n: int) -> str:
            """Pay."""
            self.happen("pay", ctx.key, n)
            return "paid"

        @tool(policy=Policy.ONCE)
        async def mail(ctx: ToolContext, n: int) -> str:
            """Send a mail."""
            self.happen("mail", ctx.key, n)
            return "sent"

        return [look, note, pay, mail]

    def answer(self, request: Request) -> Turn:
        """So many turns with one or two tools each, and then an answer that has all that they said."""
        n = sum(message.role == Role.ASSISTANT for message in request.messages)
        self.happen("ask", f"turn-{n}", n)
        if n == TURNS:
            said = ", ".join(result.text for message in request.messages for result in message.results)
            return Turn(text=f"done after {said}", usage=USAGE)
        picked = (_NAMES[n % 4], _NAMES[(n // 2) % 4])[: 1 + n % 2]
        calls = tuple(CallTurn(name, {"n": n}, id=f"call-{n}-{k}") for k, name in enumerate(picked))
        return Turn(calls=calls, usage=USAGE)


def agents_of(pen: Bullpen, records: Records, world: World) -> Agents:
    return Agents(pen, records, providers=[ScriptedProvider(world.answer)], models=MODELS, tools=world.tools())


async def main(store: str, records_address: str, folder: str) -> None:
    at = os.environ.get("DIE_AT")
    opened = await Records.open(records_address)
    is_after = bool(os.environ.get("DIE_AFTER"))
    mortal = MortalProcess(opened.database, at=None if at is None else int(at), is_after=is_after)
    async with Bullpen(store_from(store)) as pen, agents_of(pen, Records(mortal), World(Path(folder))) as agents:
        await agents.pen.worker(options=LIVES).run(signals=True)
    await opened.close()


if __name__ == "__main__":
    asyncio.run(main(*sys.argv[1:]))
