"""Runs that are listened to: one look for all of them, a few times a second, however many listen.

What a look finds is kept for a while, and all listeners of the run take it from there. Whoever is further back reads
the log, at its own pace: nobody waits for a slow reader, and no reader misses anything.
"""

import asyncio
import logging
from collections import deque
from collections.abc import AsyncGenerator, AsyncIterator, Sequence
from contextlib import asynccontextmanager
from itertools import islice

import msgspec

from bullpen.errors import BullpenError, RecordMissing
from bullpen.records.runs.runs import Runs
from bullpen.records.runs.words import HowFar, ProgressEvent, TaskState

logger = logging.getLogger("bullpen.server")

LOOK_EVERY_S = 0.15
BEAT_S = 15.0
KEPT = 1_000
"""Events of a run that wait for its listeners."""
_PAGE = 500
_AT_ONCE = 500
"""Runs in one question."""


class Heard(msgspec.Struct, frozen=True, kw_only=True):
    """What a listener is given; nothing at all when nothing happened for a while."""

    events: Sequence[ProgressEvent] = ()
    behind: int | None = None
    """The run has told so many more than its listener took: they follow, from the log."""
    ended: TaskState | None = None
    """How the run ended, after the last of its events."""


class Watched:
    """A run, as far as the last look has seen."""

    def __init__(self, far: HowFar) -> None:
        self.far = far
        self.listeners = 0
        self.is_gone = False
        self.changed = asyncio.Event()
        """Set with the next change, for whoever waits now; then there is another."""
        self._kept: deque[ProgressEvent] = deque(maxlen=KEPT)

    def tell(self, far: HowFar, events: Sequence[ProgressEvent] = ()) -> None:
        if events and events[0].number != self.far.told + 1:
            self._kept.clear()  # too many came at once for all to be kept
        self._kept.extend(events)
        self.far = far
        self.wake()

    def wake(self) -> None:
        self.changed.set()
        self.changed = asyncio.Event()

    def since(self, after: int) -> list[ProgressEvent] | None:
        """What is kept of what came after this number; None where that is not all of it."""
        missing = self.far.told - after
        if missing > len(self._kept):
            return None
        return list(islice(self._kept, len(self._kept) - missing, None))


class Lookout:
    """Looks for all listeners of a server, as long as there are any."""

    def __init__(self, runs: Runs) -> None:
        self._runs = runs
        self._watched: dict[str, Watched] = {}
        self._looking: asyncio.Task[None] | None = None
        self._has_stopped = False

    @property
    def watched(self) -> int:
        """How many runs are listened to."""
        return len(self._watched)

    async def stop(self) -> None:
        """Listeners hear no more. Safe to call twice."""
        self._has_stopped = True
        for watched in self._watched.values():
            watched.wake()
        if self._looking is not None:
            self._looking.cancel()
            await asyncio.gather(self._looking, return_exceptions=True)

    async def heard(self, run_id: str, after: int, *, beat_s: float = BEAT_S) -> AsyncGenerator[Heard, None]:
        """What the run told after this number, as it comes, until it is over or the server stops."""
        is_with_it = False
        """Whether it had all that there was when it was last given something: who only comes back is not slow."""
        async with self._listening(run_id) as watched:
            while not (self._has_stopped or watched.is_gone):
                changed = watched.changed
                if after < watched.far.told:
                    events = watched.since(after)
                    if events is None:
                        if is_with_it:
                            yield Heard(behind=watched.far.told - after)
                        events = await self._runs.events(run_id, after=after, limit=_PAGE)
                    if not events:
                        return  # the run was removed under us
                    after = events[-1].number
                    is_with_it = after >= watched.far.told
                    yield Heard(events=events)
                    continue
                is_with_it = True
                if watched.far.state.is_final:
                    yield Heard(ended=watched.far.state)
                    return
                try:
                    async with asyncio.timeout(beat_s):
                        await changed.wait()
                except TimeoutError:
                    yield Heard()

    @asynccontextmanager
    async def _listening(self, run_id: str) -> AsyncIterator[Watched]:
        watched = self._watched.get(run_id)
        if watched is None:
            far = (await self._runs.told([run_id])).get(run_id)
            if far is None:
                raise RecordMissing(f"no run {run_id!r}")
            watched = self._watched.setdefault(run_id, Watched(far))
        watched.listeners += 1
        if self._looking is None or self._looking.done():
            # Ended by `stop`, or by itself when nobody listens.
            self._looking = asyncio.create_task(self._look(), name="looks at runs")
        try:
            yield watched
        finally:
            watched.listeners -= 1
            if watched.listeners == 0 and self._watched.get(run_id) is watched:
                del self._watched[run_id]

    async def _look(self) -> None:
        while self._watched and not self._has_stopped:
            await asyncio.sleep(LOOK_EVERY_S)
            try:
                await self._look_once()
            except BullpenError:
                logger.warning("the records cannot be asked what runs tell; trying again", exc_info=True)

    async def _look_once(self) -> None:
        run_ids = list(self._watched)
        for start in range(0, len(run_ids), _AT_ONCE):
            asked = run_ids[start : start + _AT_ONCE]
            found = await self._runs.told(asked)
            for run_id in asked:
                watched = self._watched.get(run_id)
                if watched is not None:
                    await self._follow(run_id, watched, found.get(run_id))

    async def _follow(self, run_id: str, watched: Watched, far: HowFar | None) -> None:
        if far is None:
            watched.is_gone = True
            watched.wake()
        elif far.told > watched.far.told:
            after = max(watched.far.told, far.told - KEPT)
            events = await self._runs.events(run_id, after=after, limit=KEPT)
            if events:
                # More may have come since the question. Its state is that of before: none is missed by that.
                watched.tell(HowFar(events[-1].number, far.state), events)
        elif far.state is not watched.far.state:
            watched.tell(HowFar(watched.far.told, far.state))
