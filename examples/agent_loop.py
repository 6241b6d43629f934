"""An agent that goes on where it was, whenever its process is killed.

A scripted model chooses one of three tools, forty times. Each thought and each call of a tool is a
durable step, so that none is repeated once it is on record. A call that was interrupted is made
again, with the same key: the world keeps each key once, and so each effect happens once.

    python examples/agent_loop.py                       all in one process
    python examples/agent_loop.py start                 add the job …
    python examples/agent_loop.py work                  … and work on it: kill this as often as you like
    python examples/agent_loop.py look                  what the world has seen
"""

import asyncio
import contextlib
import os
import sqlite3
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

from bullpen import Bullpen, Context, WorkerOptions

STEPS = 40
WORLD = Path(os.environ.get("AGENT_WORLD", "agent-world.db"))

pen = Bullpen(os.environ.get("AGENT_STORE", "sqlite:agent-queue.db"))


class World:
    """The destination of all tools: a place that knows idempotency keys, as payment services do."""

    def __init__(self, path: Path) -> None:
        self._path = path
        with self._opened() as db:
            db.execute("CREATE TABLE IF NOT EXISTS effect(key TEXT PRIMARY KEY, tool TEXT, what TEXT)")

    def apply(self, key: str, tool: str, what: str) -> None:
        """Do it, unless it was done under this key before."""
        with self._opened() as db:
            db.execute("INSERT OR IGNORE INTO effect VALUES(?, ?, ?)", (key, tool, what))

    def effects(self) -> list[tuple[str, str]]:
        with self._opened() as db:
            return list(db.execute("SELECT tool, what FROM effect ORDER BY rowid"))

    @contextlib.contextmanager
    def _opened(self) -> Any:
        with contextlib.closing(sqlite3.connect(self._path, timeout=30)) as db, db:
            yield db


world = World(WORLD)


# ── three tools ──────────────────────────────────────────────────────────────────────────


def search(key: str, topic: str) -> str:
    world.apply(key, "search", topic)
    return f"all about {topic}"


def write_note(key: str, text: str) -> str:
    world.apply(key, "write_note", text)
    return f"noted: {text}"


def send_mail(key: str, to: str) -> str:
    world.apply(key, "send_mail", to)
    return f"sent to {to}"


TOOLS: dict[str, Callable[..., str]] = {"search": search, "write_note": write_note, "send_mail": send_mail}


# ── the model and the loop ───────────────────────────────────────────────────────────────


def think(goal: str, history: list[str]) -> dict[str, Any]:
    """A scripted model: what to do next, from what has been done."""
    turn = len(history)
    if turn == STEPS:
        return {"answer": f"{goal}: done in {turn} calls, the last one {history[-1]}"}
    match turn % 3:
        case 0:
            return {"tool": "search", "arguments": {"topic": f"topic {turn}"}}
        case 1:
            return {"tool": "write_note", "arguments": {"text": f"note {turn} on {history[-1]}"}}
        case _:
            return {"tool": "send_mail", "arguments": {"to": f"reader-{turn}@example.com"}}


def use_tool(ctx: Context, tool: str, arguments: dict[str, str]) -> str:
    return TOOLS[tool](ctx.step_key, **arguments)


@pen.job(queue="agents", timeout=3_600)
async def agent(ctx: Context, goal: str) -> str:
    history: list[str] = []
    while True:
        decision = await ctx.step("think", think, goal, history)
        if "answer" in decision:
            return str(decision["answer"])
        result = await ctx.step(decision["tool"], use_tool, ctx, decision["tool"], decision["arguments"])
        history.append(result)
        ctx.progress(len(history))


# ── the commands ─────────────────────────────────────────────────────────────────────────


async def start() -> None:
    async with pen:
        await agent.options(id="the-agent").add(goal="read up")


async def work(*, until_done: bool = False) -> None:
    """Kills are the point here, so however many there are they do not fail the job."""
    worker = pen.worker(options=WorkerOptions(max_stalled=1_000, lease=5))
    working = asyncio.create_task(worker.run(signals=not until_done))
    if until_done:
        async with pen:
            print(await agent.job("the-agent").result(timeout=50))
        worker.stop()
    await working


def look() -> None:
    effects = world.effects()
    print(f"{len(effects)} effects, {len(set(effects))} different ones")


def main() -> None:
    match sys.argv[1:]:
        case ["start"]:
            asyncio.run(start())
        case ["work"]:
            asyncio.run(work())
        case ["look"]:
            look()
        case _:
            asyncio.run(start())
            asyncio.run(work(until_done=True))
            look()


if __name__ == "__main__":
    main()
