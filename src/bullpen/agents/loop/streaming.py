"""A model's words as they come, told several at a time: each telling is a transaction."""

import asyncio
import contextlib
from typing import Self

from bullpen.agents.llm.deltas import Delta, Restarted, Started, TextDelta
from bullpen.agents.loop.recorder import Recorder
from bullpen.errors import BullpenError
from bullpen.records.runs.words import NewProgress, ProgressKind

_EVERY_S = 0.15


class Streaming:
    """Gathers what a model says and tells it a few times a second, for as long as a block lasts."""

    def __init__(self, recorder: Recorder, *, is_on: bool = True) -> None:
        self._recorder = recorder
        self._is_on = is_on
        self._model = ""
        self._words: list[str] = []
        self._is_void = False
        self._wake = asyncio.Event()
        self._telling = asyncio.Lock()
        self._teller: asyncio.Task[None] | None = None

    async def __aenter__(self) -> Self:
        if self._is_on:
            # Owned here; ended when the block ends.
            self._teller = asyncio.create_task(self._tell(), name="streams a model's words")
        return self

    async def __aexit__(self, *_: object) -> None:
        if self._teller is not None:
            self._teller.cancel()
            with contextlib.suppress(asyncio.CancelledError, BullpenError):
                await self._teller

    def take(self, delta: Delta) -> None:
        match delta:
            case Started():
                self._model = delta.model
            case Restarted():
                self._words.clear()
                self._is_void = True
                self._wake.set()
            case TextDelta():
                self._words.append(delta.text)
                self._wake.set()

    async def flush(self) -> list[NewProgress]:
        """What was not told yet, for whoever puts the whole answer on record; what is being told comes before."""
        async with self._telling:
            return self._gathered(is_whole=True)

    def _gathered(self, *, is_whole: bool = False) -> list[NewProgress]:
        text = "".join(self._words)
        # A secret that comes in pieces is known only when it is whole: what may be one is told with what comes next.
        ready = text if is_whole else text[: self._recorder.redactor.settled(text)]
        if not self._is_on or not (ready or self._is_void):
            return []
        data = {"model": self._model, "content_delta": ready, "status": "streaming"}
        if self._is_void:
            data["restarted"] = "true"
        self._words = [text[len(ready) :]]
        self._is_void = False
        return [NewProgress(ProgressKind.LLM_STREAMING, data)]

    async def _tell(self) -> None:
        while True:
            await self._wake.wait()
            self._wake.clear()
            await asyncio.sleep(_EVERY_S)
            async with self._telling:
                await self._recorder.tell(*self._gathered())
