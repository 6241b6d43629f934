"""Our handler, which does with a job what the peers' handlers do: what its data says."""

import asyncio
from typing import Any

from bullpen import Context, Unrecoverable


class Handling:
    """One for each worker: what it holds is released together."""

    def __init__(self) -> None:
        self.holding: asyncio.Queue[str] = asyncio.Queue()
        """The ids of the jobs that are held, as they come."""
        self._released = asyncio.Event()

    def release(self) -> None:
        self._released.set()

    async def __call__(self, context: Context) -> Any:
        data = context.data
        for line in data.get("logs", ()):
            context.log(line)
        if "progress" in data:
            context.progress(data["progress"])
        if data.get("hold"):
            self.holding.put_nowait(context.id)
            await self._released.wait()
        if "unrecoverable" in data:
            raise Unrecoverable(data["unrecoverable"])
        if "fail" in data and context.attempt <= data.get("times", float("inf")):
            raise ValueError(data["fail"])
        return {"echo": data, "name": context.name, "attempt": context.attempt}
