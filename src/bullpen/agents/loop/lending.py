"""What a call of a tool is lent, and whether it took it."""

from bullpen.agents.sandbox.base import Sandbox
from bullpen.agents.tools.tool import ToolContext
from bullpen.errors import AgentError, SandboxTimeout


class Lent:
    """The run's sandbox for one call of a tool: whether it asked is known when it ends."""

    def __init__(self, context: ToolContext) -> None:
        self._lend = context.sandbox
        self.is_used = False
        self.sandbox = None if self._lend is None else self._use

    async def before(self) -> None:
        """For a call that must not begin in vain. SandboxTimeout; whatever else is wrong the call meets itself."""
        if self._lend is not None:
            try:
                await self._lend()
            except SandboxTimeout:
                raise
            except AgentError:
                pass

    async def _use(self) -> Sandbox:
        assert self._lend is not None
        self.is_used = True
        return await self._lend()
