"""The runs that are underway on a worker: their deadlines, their ends, and the wait until none is left."""

import asyncio
from collections.abc import Callable

from bullpen.clock import Clock
from bullpen.worker.running import Run, Stop, StopCause

_LOOK_EVERY_S = 0.05


class Underway:
    """Kept by the worker's event loop, and by it alone."""

    def __init__(self, clock: Clock) -> None:
        self._clock = clock
        self._runs: set[Run] = set()
        self._all_quiet: asyncio.Event | None = None
        """There while somebody waits for it."""

    def __len__(self) -> int:
        return len(self._runs)

    def begin(self, run: Run, now_ms: int) -> None:
        run.deadline_ms = now_ms + run.timeout_ms
        self._runs.add(run)

    def end(self, run: Run) -> None:
        self._runs.discard(run)
        self.look_if_quiet()

    def look_if_quiet(self) -> None:
        """After a run has ended, or was settled without its handler."""
        if self._all_quiet is not None and not self.unfinished():
            self._all_quiet.set()

    def unfinished(self) -> list[Run]:
        """Those that nobody has settled."""
        return [run for run in self._runs if not run.over]

    def ask_to_stop(self, stop: Stop) -> None:
        for run in self.unfinished():
            run.ask_to_stop(stop)

    def cancel(self) -> None:
        """End them where they are; what they held is handed back by whoever calls this."""
        runs, self._runs = self._runs, set()
        for run in runs:
            if run.task is not None:
                run.task.cancel()

    async def watch(self, on_silent_end: Callable[[Run, BaseException], None]) -> None:
        """Stop what has outlasted its time, and tell of what ended without a word, with the error that it ended by.

        One look at all runs now and then: a timer and a callback for each job would cost more than most jobs.
        """
        while True:
            await asyncio.sleep(_LOOK_EVERY_S)
            now_ms = self._clock.mono_ms()
            for run in tuple(self._runs):
                if (error := run.ended_by) is not None:
                    on_silent_end(run, error)
                elif now_ms >= run.deadline_ms:
                    run.ask_to_stop(Stop(StopCause.TIMED_OUT))

    async def quiet_within(self, limit_s: float, unless: asyncio.Event | None = None) -> None:
        """Wait until nothing runs, but no longer than that."""
        if not self.unfinished():
            return
        self._all_quiet = asyncio.Event()
        waits = [asyncio.create_task(event.wait()) for event in (self._all_quiet, unless) if event is not None]
        await asyncio.wait(waits, timeout=limit_s, return_when=asyncio.FIRST_COMPLETED)
        for wait in waits:
            wait.cancel()
