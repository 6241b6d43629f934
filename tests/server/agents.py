"""Agents behind a server: a model that says what a test tells it to, and a worker that does the tasks."""

import asyncio
import contextlib
from collections.abc import AsyncIterator, Sequence
from pathlib import Path
from typing import Any

import pytest

from bullpen import Bullpen
from bullpen.agents.agents import Agents
from bullpen.agents.llm.scripted import CallTurn, ScriptedProvider, Turn
from bullpen.agents.llm.words import Request, Role, Usage
from bullpen.agents.surroundings import Surroundings
from bullpen.agents.tools.policy import Policy
from bullpen.agents.tools.tool import Tool, tool
from bullpen.records.records import Records
from bullpen.server.site import Site
from tests.agents.runs.conftest import Answers, working
from tests.agents.runs.models import MODEL, MODELS
from tests.server.calling import Client
from tests.support.places import Place

__all__ = ["MODEL", "MODELS"]


@tool(policy=Policy.READ_ONLY)
async def look(n: int) -> str:
    """Look at something."""
    return f"seen {n}"


def looks_and_answers(request: Request) -> Turn:
    """One call of a tool, and then what it said."""
    last = request.messages[-1]
    if last.role is Role.TOOL:
        return Turn(text=f"it said: {last.results[0].text}", usage=Usage(10, 20))
    return Turn(text="let me look", calls=(CallTurn("look", {"n": 7}, id="c1"),), usage=Usage(10, 20))


@contextlib.asynccontextmanager
async def agents_at(
    place: Place, records: Records, answers: Answers, tools: Sequence[Tool], surroundings: Surroundings | None = None
) -> AsyncIterator[Agents]:
    """Agents on a store of their own at the same place, as a worker's process has them."""
    async with Bullpen(place.store()) as pen:
        agents = Agents(
            pen,
            records,
            providers=[ScriptedProvider(answers)],
            models=MODELS,
            tools=tools,
            surroundings=surroundings,
        )
        async with agents:
            yield agents


@contextlib.asynccontextmanager
async def working_on(
    site: Site,
    place: Place,
    answers: Answers = looks_and_answers,
    tools: Sequence[Tool] = (look,),
    *,
    grace: float = 5,
    surroundings: Surroundings | None = None,
) -> AsyncIterator[Agents]:
    """A worker beside the server, for the length of a block."""
    opening = agents_at(place, site.records, answers, tools, surroundings)
    async with opening as agents, working(agents, grace=grace):
        yield agents


TABLE = f"""
version = "test"
credits_per_dollar = 100

[models.{MODEL}]
provider = "scripted"
context_window = 100_000
max_output = 4_096
input = 1
output = 1
"""
"""The same models as a file, which a server is told of by its environment."""


@pytest.fixture
def models_known(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """The server knows the model, as its environment says, and has no provider for it."""
    path = tmp_path / "models.toml"
    path.write_text(TABLE)
    monkeypatch.setenv("BULLPEN_MODELS", str(path))
    monkeypatch.setenv("BULLPEN_MODEL", MODEL)
    for name in ("OPENAI_API_KEY", "OPENAI_BASE_URL", "ANTHROPIC_API_KEY", "ANTHROPIC_BASE_URL"):
        monkeypatch.delenv(name, raising=False)


async def paid(client: Client, tenant: str = "default", credits_: int = 1_000) -> None:
    await client.post("/v1/credits/deposits", {"tenant": tenant, "credits": credits_}, status=201)


async def over(client: Client, run_id: str) -> dict[str, Any]:
    """The run, when it is over: asked by long poll."""
    after, is_over = 0, False
    async with asyncio.timeout(60):
        while not is_over:
            page = await client.get(f"/v1/runs/{run_id}/events", after=after, wait_s=10)
            after, is_over = page["cursor"], page["is_over"]
    found: dict[str, Any] = await client.get(f"/v1/runs/{run_id}")
    return found
