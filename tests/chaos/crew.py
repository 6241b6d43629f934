"""Workers as processes of their own, of which one is killed now and then and replaced at once."""

import asyncio
import random
import signal
import sys

from bullpen import Store
from bullpen.stores.base import WorkerState
from bullpen.worker.signals import tell

_AT_WORK = (WorkerState.READY, WorkerState.PROCESSING)


class Crew:
    """Each runs this module with these arguments, and works on this store."""

    def __init__(self, store: Store, module: str, *arguments: str) -> None:
        self._store = store
        self._command = (sys.executable, "-m", module, *arguments)
        self._living: list[asyncio.subprocess.Process] = []
        self.kills = 0

    async def enter(self) -> None:
        self._living.append(await asyncio.create_subprocess_exec(*self._command))

    async def kill_one(self) -> None:
        victim = self._living.pop(random.randrange(len(self._living)))
        victim.kill()
        assert await victim.wait() == -signal.SIGKILL
        self.kills += 1
        await self.enter()

    async def missing(self) -> int:
        """How many of those that were started are not at work yet."""
        at_work = {info.pid for info in await self._store.workers() if info.state in _AT_WORK}
        return len({process.pid for process in self._living} - at_work)

    async def leave(self) -> None:
        """They finish what they do, and end."""
        for process in self._living:
            tell(process, signal.SIGTERM)
        for process in self._living:
            await process.wait()
