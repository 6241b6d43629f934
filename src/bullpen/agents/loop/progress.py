"""How far a tool is, told while it works: several lines at a time, since each telling is a transaction."""

import asyncio
import contextlib
import dataclasses
from typing import Self

from bullpen.agents.llm.words import ToolCall
from bullpen.agents.loop.recorder import Recorder
from bullpen.agents.tools.tool import ToolContext
from bullpen.errors import BullpenError
from bullpen.records.runs.words import NewProgress, ProgressKind

_EVERY_S = 0.5
_MOST_LINES, _MOST_CHARACTERS = 20, 500
_KEPT = 200
"""Lines that are looked through for secrets: one may begin long before those that are told."""


class ToolProgress:
    """Of one call, for as long as a block lasts. What is not told by its end is in what the tool answers."""

    def __init__(self, recorder: Recorder, call: ToolCall) -> None:
        self._recorder = recorder
        self._call = call
        self._loop = asyncio.get_running_loop()
        self._lines: list[str] = []
        self._wake = asyncio.Event()
        self._teller: asyncio.Task[None] | None = None
        self._is_over = False

    async def __aenter__(self) -> Self:
        return self

    async def __aexit__(self, *_: object) -> None:
        self._is_over = True
        if self._teller is not None:
            self._teller.cancel()
            # Whatever keeps it from telling keeps the call's result from the record too, and is raised there.
            with contextlib.suppress(asyncio.CancelledError, BullpenError):
                await self._teller

    def given_to(self, context: ToolContext) -> ToolContext:
        return dataclasses.replace(context, progress=self._take)

    def _take(self, line: str) -> None:
        """From whichever thread the tool runs in; one that a timeout left behind is heard no more."""
        if not self._is_over:
            self._loop.call_soon_threadsafe(self._add, line)

    def _add(self, line: str) -> None:
        self._lines = [*self._lines, line][-_KEPT:]
        self._wake.set()
        if self._teller is None and not self._is_over:
            # Owned here, and ended when the block ends. Most tools tell nothing.
            self._teller = asyncio.create_task(self._tell(), name="tells of a tool's progress")

    async def _tell(self) -> None:
        while True:
            await self._wake.wait()
            self._wake.clear()
            if not (message := self._message()):
                continue
            data = {"call_id": self._call.id, "tool_name": self._call.name, "message": message, "status": "progress"}
            await self._recorder.tell(NewProgress(ProgressKind.TOOL_PROGRESS, data))
            await asyncio.sleep(_EVERY_S)

    def _message(self) -> str:
        """The last of the lines that are whole, without secrets. What may yet become one is told with what comes."""
        redactor = self._recorder.redactor
        text = "\n".join(self._lines) + "\n"
        settled = text.rfind("\n", 0, redactor.settled(text)) + 1
        self._lines = text[settled:].splitlines()
        whole = redactor.text(text[:settled]).splitlines()
        return "\n".join(whole[-_MOST_LINES:])[-_MOST_CHARACTERS:]
