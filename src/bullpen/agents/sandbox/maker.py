"""Making and ending sandboxes, so that none is left behind by a worker that dies in between."""

import asyncio
import logging
import secrets

from bullpen.agents.sandbox.base import Driver, Sandbox
from bullpen.agents.sandbox.limits import SandboxSpec
from bullpen.agents.sandbox.registry import Entry, Registry
from bullpen.errors import SandboxError

_LOG = logging.getLogger("bullpen.agents.sandbox")


class Maker:
    def __init__(self, driver: Driver, registry: Registry, owner: str) -> None:
        self._driver = driver
        self._registry = registry
        self._owner = owner
        self._endings: set[asyncio.Task[None]] = set()
        self._unended: dict[str, Sandbox] = {}
        """Those that could not be closed."""

    async def reap(self) -> list[Entry]:
        """End what dead workers left; what was ended."""
        return await self._registry.reap(self._driver)

    async def all_ended(self) -> None:
        await asyncio.gather(*self._endings)
        await self.end_again()

    async def end_again(self) -> None:
        """Close those that could not be closed before: as long as this process lives, nobody else does."""
        await asyncio.gather(*(self.end(sandbox) for sandbox in list(self._unended.values())))

    async def make(self, spec: SandboxSpec) -> Sandbox:
        """In the registry before it is there: a worker may die in the middle of making one."""
        sandbox_id = secrets.token_hex(8)
        self._registry.enter(sandbox_id, self._driver.name, self._owner, {})
        try:
            sandbox = await self._driver.create(spec, id=sandbox_id)
        except BaseException:
            self._registry.leave(sandbox_id)
            raise
        self._registry.enter(sandbox_id, self._driver.name, self._owner, self._driver.token(sandbox))
        return sandbox

    async def end(self, sandbox: Sandbox) -> None:
        """Close it; one that cannot be closed now is left to `end_again`, or to whoever reaps."""
        # A caller who is cancelled must not leave half of one behind; `all_ended` waits for it.
        ending = asyncio.create_task(self._close(sandbox))
        self._endings.add(ending)
        ending.add_done_callback(self._endings.discard)
        await asyncio.shield(ending)

    async def _close(self, sandbox: Sandbox) -> None:
        try:
            await sandbox.close()
        except (SandboxError, OSError):
            self._unended[sandbox.id] = sandbox
            _LOG.warning("sandbox %s could not be closed; that is tried again", sandbox.id, exc_info=True)
        else:
            self._unended.pop(sandbox.id, None)
            self._registry.leave(sandbox.id)
