"""An agent whose tool never comes back: its code spins in a sandbox.

python -m tests.agents.runs.spinning <store> <records> <registry> says "spinning" once it does, and is killed then.
"""

import asyncio
import sys
from collections.abc import Callable
from pathlib import Path

from bullpen import Bullpen
from bullpen.agents.agents import Agents
from bullpen.agents.llm.scripted import CallTurn, ScriptedProvider, Turn
from bullpen.agents.llm.words import Request, Role, Usage
from bullpen.agents.sandbox import BubblewrapDriver, PoolOptions, Registry, SandboxPool, SandboxSpec
from bullpen.agents.surroundings import Sandboxed
from bullpen.agents.tools.policy import Policy
from bullpen.agents.tools.tool import Tool, ToolContext, tool
from bullpen.records.records import Records
from bullpen.settings import store_from
from tests.agents.runs.models import MODELS
from tests.agents.runs.mortal import LIVES
from tests.agents.sandbox.conftest import SMALL

_SPIN = "echo spinning; while :; do :; done"


def pool_of(folder: Path, owner: str) -> SandboxPool:
    options = PoolOptions(warm=0, most=2)
    return SandboxPool(
        BubblewrapDriver(), [SandboxSpec(limits=SMALL)], options, owner=owner, registry=Registry(folder)
    )  # fmt: skip


def spinning_tool(began: Callable[[], None], script: str = _SPIN) -> Tool:
    @tool(policy=Policy.READ_ONLY)
    async def spin(ctx: ToolContext) -> str:
        """Run code that never ends."""
        sandbox = await ctx.needs_sandbox()
        outcome = await sandbox.run(["sh", "-c", script], on_line=lambda *_: began())
        return outcome.stdout.decode()

    return spin


def asks_to_spin(request: Request) -> Turn:
    last = request.messages[-1]
    if last.role is Role.TOOL:
        return Turn(text=f"it said: {last.results[0].text}", usage=Usage(10, 20))
    return Turn(calls=(CallTurn("spin", {}, id="c1"),), usage=Usage(10, 20))


async def main(store: str, records_address: str, registry: str) -> None:
    async with (
        await Records.open(records_address) as records,
        pool_of(Path(registry), "doomed") as pool,
        Bullpen(store_from(store)) as pen,
    ):
        tools = [spinning_tool(lambda: print("spinning", flush=True))]
        provider = ScriptedProvider(asks_to_spin)
        agents = Agents(pen, records, providers=[provider], models=MODELS, tools=tools, surroundings=Sandboxed(pool))
        async with agents:
            await pen.worker(options=LIVES).run(signals=True)


if __name__ == "__main__":
    asyncio.run(main(*sys.argv[1:]))
