"""What a call of a tool is lent, and whether it took it.

One call at a time has the run's sandbox, from when it asks until what came of it is on record: the workspace that is
saved for a call has what that call did, and no half of what another does. What a dead worker's call had begun would
be done twice else, in a workspace that has it already.
"""

import asyncio
import contextlib
from types import TracebackType
from typing import Self

from bullpen.agents.sandbox.base import Sandbox
from bullpen.agents.sandbox.turns import Turns
from bullpen.agents.tools.tool import ToolContext
from bullpen.errors import AgentError, SandboxTimeout, ToolError


class SandboxSpoiled(BaseException):
    """A call before this one ended the activation: what it did in the sandbox is not on record.

    Not an Exception: a tool must not take it for an error of its own.
    """


class SandboxLine:
    """The calls of one activation that want its sandbox."""

    def __init__(self) -> None:
        self.turns = Turns()
        self.is_spoiled = False


class Lent:
    """The run's sandbox for one call of a tool, until the end of a block: whether it asked is known when it ends."""

    def __init__(self, context: ToolContext, line: SandboxLine) -> None:
        self._lend = context.sandbox
        self._line = line
        self._turn = contextlib.AsyncExitStack()
        self._taking = asyncio.Lock()
        self._has_turn = self._is_over = False
        self.is_used = False
        self.sandbox = None if self._lend is None else self._use

    async def __aenter__(self) -> Self:
        return self

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self._is_over = True
        self._line.is_spoiled |= self.is_used and error is not None
        await self._turn.aclose()

    async def before(self) -> None:
        """For a call that must not begin in vain. SandboxTimeout; whatever else is wrong the call meets itself."""
        if self._lend is not None:
            try:
                await self._lent()
            except SandboxTimeout:
                raise
            except AgentError:
                pass

    async def _use(self) -> Sandbox:
        sandbox = await self._lent()
        self.is_used = True
        return sandbox

    async def _lent(self) -> Sandbox:
        assert self._lend is not None
        async with self._taking:  # a call may do several things at once
            if not self._has_turn:
                await self._turn.enter_async_context(self._line.turns.turn())
                self._has_turn = True
        if self._is_over:
            await self._turn.aclose()  # nobody would give it back
            raise ToolError("the call is over: it has no sandbox any more")
        if self._line.is_spoiled:
            raise SandboxSpoiled
        return await self._lend()
