"""What the tools of an activation stand in: a sandbox with the task's workspace, and a place for what they make."""

import asyncio
import functools
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import AbstractAsyncContextManager, asynccontextmanager
from dataclasses import dataclass
from typing import Protocol

import msgspec

from bullpen.agents.checkpoints import Workspace
from bullpen.agents.harvesting import Harvest, harvest
from bullpen.agents.loop.options import Saves
from bullpen.agents.sandbox.asking import spec_for, usual_spec
from bullpen.agents.sandbox.base import Level
from bullpen.agents.sandbox.limits import SandboxSpec
from bullpen.agents.sandbox.pool import SandboxPool
from bullpen.agents.sandbox.settings import driver_from, driver_name, pool_options_from
from bullpen.agents.sandbox.telling import PoolTelling
from bullpen.agents.tools.tool import ToolContext
from bullpen.agents.words import TaskTerms
from bullpen.observing import Observers
from bullpen.records.records import Records
from bullpen.records.runs.words import Task
from bullpen.records.sandboxes import SandboxPools
from bullpen.worker.supervised import process_name

Keeps = Callable[[], Awaitable[object]]
"""Makes artifacts of what a run leaves in its workspace, which need not be lent any more."""


@dataclass(frozen=True, slots=True)
class Around:
    """What one activation works with."""

    context: ToolContext
    saves: Saves | None = None
    """Saves the workspace after a step."""
    keeps: Keeps | None = None
    level: Level = Level.NONE
    """How strong the walls of its sandbox are; no tool that asks for stronger ones is run."""


class Surroundings(Protocol):
    """Makes them, for each activation."""

    def around(self, records: Records, task: Task, *, epoch: int) -> AbstractAsyncContextManager[Around]:
        """From the first step of an activation to its last."""

    async def close(self) -> None:
        """Safe to call twice."""


class Sandboxed:
    """A sandbox for each activation, lent when a tool first asks for it, with the files of the last one.

    Without a pool, which whoever gives it starts and closes, one is made with the first use, by `BULLPEN_SANDBOX`.
    """

    def __init__(
        self,
        pool: SandboxPool | None = None,
        spec: SandboxSpec | None = None,
        *,
        minimum: Level = Level.NAMESPACE,
        harvest: Harvest | None = None,
    ) -> None:
        self._given = pool
        self.spec = spec or (usual_spec() if pool is None else pool.usual)
        """The most that a task may ask for, and what it gets if it asks for nothing."""
        self._minimum = minimum
        self._harvest = harvest or Harvest()
        self._own: SandboxPool | None = None
        self._observers = Observers()
        self._telling: PoolTelling | None = None
        self._opening = asyncio.Lock()

    @property
    def type(self) -> str:
        """Of its sandboxes."""
        return driver_name() if self._given is None else self._given.driver.name

    @property
    def pool(self) -> SandboxPool | None:
        """What it lends from; None before the first use."""
        return self._given or self._own

    def told_in(self, pools: SandboxPools) -> None:
        """Let `tell` tell of the pool there."""
        self._telling = PoolTelling(pools, process_name(), lambda: self.pool)

    async def tell(self) -> None:
        """How the pool stands; one whose restart was asked for is restarted."""
        if self._telling is not None:
            await self._telling.tell()

    def watched_by(self, observers: Observers) -> None:
        """Tell these of the pool, a given one too unless it has observers of its own."""
        self._observers = observers
        if self._given is not None and not self._given.observers:
            self._given.observers = observers

    @asynccontextmanager
    async def around(self, records: Records, task: Task, *, epoch: int) -> AsyncIterator[Around]:
        terms = msgspec.json.decode(task.terms, type=TaskTerms)
        pool = self._given or await self._usual_pool()
        workspace = Workspace(
            records.files,
            pool,
            task.id,
            spec_for(terms.sandbox, self.spec),
            epoch=epoch,
            minimum=self._minimum,
        )
        context = ToolContext(
            task_id=task.id,
            key=task.id,
            tenant=task.tenant,
            sandbox=workspace.sandbox,
            files=workspace.keep_file,
        )
        try:
            keeps = functools.partial(harvest, records.files, task, self._harvest, epoch=epoch)
            yield Around(context, workspace.stage, keeps, pool.driver.level)
        finally:
            await workspace.close()

    async def _usual_pool(self) -> SandboxPool:
        async with self._opening:
            if self._own is None:
                self._own = SandboxPool(
                    driver_from(), [self.spec], pool_options_from(), owner=process_name(), observers=self._observers
                )
                await self._own.start()
            return self._own

    async def close(self) -> None:
        async with self._opening:
            own, self._own = self._own, None
        if own is not None:
            await own.close()
        if self._telling is not None:
            await self._telling.leave()
