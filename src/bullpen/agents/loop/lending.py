"""What a call of a tool is lent, and whether it took it."""

from bullpen.agents.sandbox.base import Sandbox
from bullpen.agents.tools.tool import ToolContext


class Lent:
    """The run's sandbox for one call of a tool: whether it asked is known when it ends."""

    def __init__(self, context: ToolContext) -> None:
        self._lend = context.sandbox
        self.is_used = False
        self.sandbox = None if self._lend is None else self._use

    async def _use(self) -> Sandbox:
        assert self._lend is not None
        self.is_used = True
        return await self._lend()
