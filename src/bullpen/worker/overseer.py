"""Who looks after a worker's loop, from the lease thread: sees who blocks it, and ends what outlasts its timeout."""

import logging
from collections.abc import Iterator
from typing import Protocol

from bullpen.clock import Clock
from bullpen.errors import BullpenError, StoreError
from bullpen.job.options import to_ms
from bullpen.job.record import JobRecord, JobRef
from bullpen.job.verdicts import Cancelled, Failed, Released, Settlement, Verdict
from bullpen.stores.base import WorkerInfo
from bullpen.stores.workplace import Workplace
from bullpen.worker.judging import timed_out, verdict_on_failure
from bullpen.worker.memory import resident_mb
from bullpen.worker.options import WorkerOptions
from bullpen.worker.running import Cancel, LeaseBook, Run, Stop, StopCause
from bullpen.worker.supervised import is_supervised
from bullpen.worker.watchdog import Block, Pulse, who_blocks

logger = logging.getLogger("bullpen.worker")

_LATE_MS = 100
"""A loop that is silent for longer may be blocked, or have one long step behind it."""
_BLOCKED_MS = 1_000
"""A loop that is silent for that long is blocked, however late a handler is to be warned of."""
_AGAIN_MS = 1_000
"""A store that refused to end a job is asked again that much later."""


class Overseen(Protocol):
    """What the lease thread asks of the worker; each is safe from any thread."""

    def info(self) -> WorkerInfo: ...

    def ask_to_stop(self, token: str, stop: Stop) -> None: ...

    def recycle(self, why: str) -> None: ...

    def gave_up(self, run: Run) -> None:
        """This run's handler goes on after its time: it was settled without it, if the store was there."""

    def failed_unrun(self, job: JobRecord) -> None:
        """This job failed for good and no handler was there to say so."""

    def replace_process(self) -> bool:
        """End this process at once if someone will start another; False if nobody will."""


class Overseer:
    def __init__(
        self,
        store: Workplace,
        options: WorkerOptions,
        clock: Clock,
        book: LeaseBook,
        pulse: Pulse,
        overseen: Overseen,
    ) -> None:
        self._store = store
        self._options = options
        self._clock = clock
        self._book = book
        self._pulse = pulse
        self._overseen = overseen
        self._block: Block | None = None
        self._end_again_ms = 0
        self._is_large_from_the_start = False
        self._grace_ms = to_ms("timeout_grace", options.timeout_grace)
        self._warning_ms = to_ms("block_warning", options.block_warning)
        self._blocked_ms = min(self._warning_ms, _BLOCKED_MS)

    def watch_memory(self) -> None:
        limit = self._options.max_memory_mb
        if limit is None or (size := resident_mb()) <= limit:
            return
        if self._overseen.info().jobs_done:
            self._overseen.recycle(f"memory is {size} MB, the limit is {limit}")
        elif not self._is_large_from_the_start:
            # The next process would be as large: they would follow on each other without end.
            self._is_large_from_the_start = True
            logger.warning("max_memory_mb is %s, and before its first job a worker has %s MB", limit, size)

    async def watch_the_loop(self) -> None:
        silent_ms = self._pulse.silent_ms()
        if silent_ms < self._warning_ms:
            if self._block is not None:
                block, self._block = self._block, None
                await self._tell(
                    block.run.job.ref, f"event loop blocked {block.longest_ms / 1000:.1f} s in {block.place}"
                )
        elif self._block is not None:
            self._block.longest_ms = silent_ms
        elif (found := who_blocks(self._pulse, self._book.runs())) is not None:
            run, place = found
            self._block = Block(run, place, silent_ms)
            await self._tell(run.job.ref, f"event loop is blocked, for {silent_ms / 1000:.1f} s so far, in {place}")

    def cancel(self, token: str, reason: str) -> None:
        """Tell the handler of this run; it may be what keeps the loop from hearing of it."""
        if (run := self._book.find(token)) is not None:
            run.cancel = Cancel(reason, self._clock.mono_ms())
        self._overseen.ask_to_stop(token, Stop(StopCause.CANCELLED, reason))

    def overdue(self) -> Iterator[Run]:
        """Those that were to stop at their timeout or by a cancel, and did not in the time that they had for it."""
        now_ms = self._clock.mono_ms()
        # Who is silent for a moment is asked again soon: a process is not ended for that.
        if now_ms < self._end_again_ms or _LATE_MS < self._pulse.silent_ms() < self._blocked_ms:
            return
        for run in self._book.runs():
            # One with a verdict has ended; only the store is awaited, which may be away for long.
            if not run.over and run.verdict is None and now_ms > self._has_to_stop_ms(run) + self._grace_ms:
                yield run

    def _has_to_stop_ms(self, run: Run) -> int:
        """A cancel counts where it can help: whoever blocks the loop goes with its process, if another one follows."""
        blocks = self._block is not None and self._block.run is run
        return run.cancel.heard_ms if run.cancel is not None and blocks and is_supervised() else run.deadline_ms

    async def end_overdue(self, run: Run) -> None:
        """Settle it though its handler goes on, and have the process replaced.

        The process is replaced also while the store is away; what it holds then comes back as its leases run out.
        """
        try:
            await self._settle_overdue(run)
        except StoreError as error:
            self._end_again_ms = self._clock.mono_ms() + _AGAIN_MS
            logger.warning("cannot end job %s, which does not give way, trying again: %s", run.job.ref, error)
        self._overseen.gave_up(run)
        if self._pulse.silent_ms() >= self._blocked_ms:
            await self._leave_at_once()

    async def _settle_overdue(self, run: Run) -> None:
        verdict, why = self._verdict_on_overdue(run)
        # The same request each time that this is tried: it takes effect once.
        await self._store.settle([Settlement(run.lease, verdict)], request=f"overdue {run.lease.token}")
        run.over = True
        await self._tell(run.job.ref, f"{why} and did not give way: ended without its handler")
        logger.error("job %s %s and its handler goes on", run.job.ref, why)
        if isinstance(verdict, Failed):
            await self.tell_failed(run.job.ref)
        else:
            self._options.observers.settled(run.job, verdict)

    def _verdict_on_overdue(self, run: Run) -> tuple[Verdict, str]:
        if run.cancel is not None:
            return Cancelled(run.cancel.reason), "was cancelled"
        return verdict_on_failure(timed_out(run.timeout_ms), run.job, self._options), "outlasted its timeout"

    async def _leave_at_once(self) -> None:
        """The loop can carry nothing more: settle what is done, hand back what else it holds, and end the process."""
        held = [Settlement(run.lease, run.verdict or Released()) for run in self._book.runs() if not run.over]
        try:
            await self._store.settle(held, request=f"leave {self._overseen.info().name}")
        except StoreError as error:
            logger.warning("%s jobs could not be handed back; their leases will run out: %s", len(held), error)
        if not self._overseen.replace_process():
            logger.error("the event loop is blocked and no supervisor is there to replace this process")

    async def tell_failed(self, ref: JobRef) -> None:
        """Pass on a job that failed under no handler's eyes."""
        try:
            self._overseen.failed_unrun(await self._store.job(ref))
        except BullpenError as error:
            logger.warning("job %s failed and cannot be looked at: %s", ref, error)

    async def _tell(self, ref: JobRef, line: str) -> None:
        logger.warning("job %s: %s", ref, line)
        try:
            await self._store.add_log(ref, [line])
        except BullpenError as error:
            logger.warning("could not note that in the job's log: %s", error)
