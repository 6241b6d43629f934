"""Agents for the examples here: with a real model where a key is set, else with what a script says."""

import asyncio
import contextlib
import os
from collections.abc import AsyncIterator, Callable, Iterable
from pathlib import Path

from bullpen import Bullpen
from bullpen.agents import Agents, Tool
from bullpen.agents.llm import Request, Script, ScriptedProvider, Turn, models_from, providers_from, table_of

TENANT = "acme"
FOLDER = Path(os.environ.get("AGENT_FOLDER", ".bullpen"))
_MODEL = {"provider": "scripted", "context_window": 100_000, "max_output": 4_096, "input": "1", "output": "2"}


def agents_for(script: Script | Callable[[Request], Turn], tools: Iterable[Tool] = ()) -> Agents:
    """On files in a folder of their own, which the caller opens."""
    providers = providers_from()
    return Agents(
        Bullpen(f"sqlite:{FOLDER / 'example.db'}"),
        f"sqlite:{FOLDER / 'example-records.db'}",
        providers=providers or [ScriptedProvider(script)],
        models=models_from() if providers else table_of({"version": "example", "models": {"scripted": _MODEL}}),
        tools=tools,
    )


@contextlib.asynccontextmanager
async def at_work(agents: Agents) -> AsyncIterator[None]:
    """Credits to spend, and a worker that does the tasks, for the length of a block."""
    async with agents.pen:
        await agents.deposit(TENANT, 500)
        worker = agents.pen.worker()
        async with asyncio.TaskGroup() as tasks:
            tasks.create_task(worker.run())
            yield
            worker.stop()
