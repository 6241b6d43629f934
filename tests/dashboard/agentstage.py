"""A stage whose workers do runs of agents, and a hand in their records."""

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Self

import hatch_build
from bullpen.agents.words import Submitted
from tests.dashboard.agency import MODEL, TABLE, Agency
from tests.dashboard.stage import ROOT, Stage

TENANT = "default"
"""Whom the open server takes runs to be for."""


class AgentStage(Stage):
    def __init__(self, folder: Path) -> None:
        super().__init__(folder, "tests.dashboard.agency:pen")
        models = folder / "models.toml"
        models.write_text(TABLE)
        self.environment = {"BULLPEN_MODELS": str(models), "BULLPEN_MODEL": MODEL}
        self.agents = Agency(self.store, self.records).agents

    async def __aenter__(self) -> Self:
        await super().__aenter__()
        await self.agents.pen.open()
        await self.agents.deposit(TENANT, 1_000, key="first")
        return self

    async def __aexit__(self, *_: object) -> None:
        if self._worker is not None:
            await self.hurry_worker()  # a run may still wait at a gate
        await super().__aexit__()
        await self.agents.close()
        await self.agents.pen.close()

    async def submit(self, prompt: str) -> Submitted:
        return await self.agents.submit(prompt, tenant=TENANT, created_by="ann")

    async def done(self, prompt: str) -> Submitted:
        """A run that is over."""
        submitted = await self.submit(prompt)
        await self.agents.result(submitted.run_id, timeout=60)
        return submitted


@asynccontextmanager
async def agent_stage(folder: Path) -> AsyncIterator[AgentStage]:
    """With a worker, and the page as its sources are now."""
    hatch_build.build(ROOT)
    async with AgentStage(folder) as stage:
        await stage.start_worker()
        yield stage
