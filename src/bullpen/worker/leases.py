"""The lease thread: a loop and a store of its own, so that no handler can starve it.

It renews leases, brings cancellations, beats for the worker, rescues what others lost, sees
who blocks the worker's loop, and ends what outlasts its timeout and does not give way.
"""

import asyncio
import logging
import threading
from collections.abc import Awaitable, Callable, Coroutine, Sequence
from typing import Protocol

from bullpen.clock import Clock
from bullpen.errors import BullpenError, StoreError
from bullpen.job.options import to_ms
from bullpen.job.record import JobRecord, JobRef
from bullpen.job.verdicts import Failed, Released, Settlement
from bullpen.scheduling.pauses import Pauses
from bullpen.settings import may_advance_schedules
from bullpen.stores.base import Renewal, Store, WorkerInfo
from bullpen.upkeep.advancer import keep_advancing
from bullpen.upkeep.rescuer import keep_rescuing
from bullpen.worker.judging import timed_out, verdict_on_failure
from bullpen.worker.memory import resident_mb
from bullpen.worker.options import WorkerOptions
from bullpen.worker.running import LeaseBook, Run, Stop, StopCause
from bullpen.worker.watchdog import Block, Pulse, who_blocks

logger = logging.getLogger("bullpen.worker")

_LOOK_S = 0.1
_BEAT_MS = 5_000
_NOTICE_MS = 1_000


class Charge(Protocol):
    """What the lease thread asks of the worker; each is safe from any thread."""

    def info(self) -> WorkerInfo: ...

    def ask_to_stop(self, token: str, stop: Stop) -> None: ...

    def recycle(self, why: str) -> None: ...

    def gave_up(self, run: Run) -> None:
        """This run was settled though its handler goes on."""

    def failed_unrun(self, job: JobRecord) -> None:
        """This job failed for good and no handler was there to say so."""

    def replace_process(self) -> bool:
        """End this process at once if someone will start another; False if nobody will."""


class LeaseKeeper:
    def __init__(
        self,
        store: Store,
        queues: Sequence[str],
        options: WorkerOptions,
        clock: Clock,
        book: LeaseBook,
        pulse: Pulse,
        charge: Charge,
    ) -> None:
        self._store = store
        self._queues = queues
        self._options = options
        self._clock = clock
        self._book = book
        self._pulse = pulse
        self._charge = charge
        self._loop: asyncio.AbstractEventLoop | None = None
        self._stopping: asyncio.Event | None = None
        self._beat_now: asyncio.Event | None = None
        self._started = threading.Event()
        self._failure: Exception | None = None
        self._block: Block | None = None
        self._thread = threading.Thread(target=self._run, name="bullpen-leases", daemon=True)

    def start(self) -> None:
        """Blocks until the worker is registered, and raises if it cannot be: not for the event loop."""
        self._thread.start()
        self._started.wait()
        if self._failure is not None:
            raise self._failure

    def beat_soon(self) -> None:
        """Let the store know of a new state without waiting for the next beat."""
        if self._loop is not None and self._beat_now is not None:
            self._loop.call_soon_threadsafe(self._beat_now.set)

    def tell_failed(self, ref: JobRef) -> None:
        """Look at a job that failed under no handler's eyes, and pass it on."""
        if self._loop is not None:
            asyncio.run_coroutine_threadsafe(self._tell_failed(ref), self._loop)

    def stop(self) -> None:
        """End the thread, with a last beat. Blocks: not for the event loop."""
        if self._loop is not None and self._stopping is not None and self._thread.is_alive():
            self._loop.call_soon_threadsafe(self._stopping.set)
            self._thread.join()

    # ── in the lease thread ──────────────────────────────────────────────────────────────

    def _run(self) -> None:
        try:
            asyncio.run(self._live())
        except Exception as error:
            self._failure = error
            if self._started.is_set():
                # Without renewals every lease is lost in time; say so and let the worker end.
                logger.exception("the lease thread failed")
                self._charge.recycle("the lease thread failed")
        finally:
            self._started.set()

    async def _live(self) -> None:
        self._loop = asyncio.get_running_loop()
        self._stopping = asyncio.Event()
        self._beat_now = asyncio.Event()
        await self._store.open()
        try:
            await self._beat_once()
            self._started.set()
            async with asyncio.TaskGroup() as tasks:
                chores = [tasks.create_task(chore) for chore in self._chores()]
                await self._stopping.wait()
                for chore in chores:
                    chore.cancel()
            await self._try("say farewell", self._beat_once)
        finally:
            await self._store.close()

    def _chores(self) -> list[Coroutine[object, object, None]]:
        dead_show = self._store.facts.detects_dead_processes
        rescue_ms = min(1_000, self._options.lease_ms // 2) if dead_show else self._options.lease_ms // 2
        advancing = [keep_advancing(self._store, self._queues)] if may_advance_schedules() else []
        return [
            *advancing,
            self._renew(),
            self._bring_notices(),
            self._beat(),
            self._look_after(),
            keep_rescuing(
                self._store,
                self._queues,
                self._options.limits,
                every_ms=max(rescue_ms, 50),
                on_failed=self._tell_failed,
                on_rescued=self._options.observers.rescued,
            ),
        ]

    async def _renew(self) -> None:
        while True:
            await asyncio.sleep(self._options.lease_ms / 3000)
            runs = [run for run in self._book.runs() if not run.over]
            await self._try("renew leases", self._renew_once, runs)

    async def _renew_once(self, runs: list[Run]) -> None:
        renewals = await self._store.renew([run.lease for run in runs], lease_ms=self._options.lease_ms)
        for run, renewal in zip(runs, renewals, strict=True):
            if renewal == Renewal.LOST:
                self._charge.ask_to_stop(run.lease.token, Stop(StopCause.LEASE_LOST))

    async def _bring_notices(self) -> None:
        name = self._charge.info().name
        seen: set[str] = set()
        pauses = Pauses(_LOOK_S, _NOTICE_MS / 1000)
        while True:
            try:
                notices = await self._store.notices(name, timeout_ms=_NOTICE_MS)
            except StoreError:
                await asyncio.sleep(pauses.next_s())
                continue
            pauses.begin_anew()
            # A claim whose answer is still on its way is not in the book: its notice is brought once it is.
            known = {notice.lease.token: notice for notice in notices if self._book.find(notice.lease.token)}
            fresh = known.keys() - seen
            for token in fresh:
                self._charge.ask_to_stop(token, Stop(StopCause.CANCELLED, known[token].reason))
            seen = set(known)
            if notices and not fresh:
                # Known already and not yet over: `notices` would answer at once, again and again.
                await asyncio.sleep(_LOOK_S)

    async def _beat(self) -> None:
        assert self._beat_now is not None
        while True:
            try:
                async with asyncio.timeout(_BEAT_MS / 1000):
                    await self._beat_now.wait()
            except TimeoutError:
                pass
            self._beat_now.clear()
            await self._try("beat", self._beat_once)

    async def _beat_once(self) -> None:
        await self._store.beat(self._charge.info(), ttl_ms=3 * _BEAT_MS)

    async def _look_after(self) -> None:
        grace_ms = to_ms("timeout_grace", self._options.timeout_grace)
        while True:
            await asyncio.sleep(_LOOK_S)
            await self._watch_the_loop()
            for run in self._book.runs():
                if not run.over and self._clock.mono_ms() > run.deadline_ms + grace_ms:
                    await self._try("end an overdue job", self._end_overdue, run)
            self._watch_memory()

    def _watch_memory(self) -> None:
        limit = self._options.max_memory_mb
        if limit is not None and (size := resident_mb()) > limit:
            self._charge.recycle(f"memory is {size} MB, the limit is {limit}")

    # ── blocked loops and overdue jobs ───────────────────────────────────────────────────

    async def _watch_the_loop(self) -> None:
        silent_ms = self._pulse.silent_ms()
        if silent_ms < to_ms("block_warning", self._options.block_warning):
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

    async def _end_overdue(self, run: Run) -> None:
        """Settle it as timed out though its handler goes on, and have the process replaced."""
        run.over = True
        verdict = verdict_on_failure(timed_out(run.timeout_ms), run.job, self._options)
        await self._store.settle([Settlement(run.lease, verdict)], request=f"overdue {run.lease.token}")
        await self._tell(run.job.ref, "outlasted its timeout and did not give way: ended without its handler")
        logger.error("job %s outlasted its timeout and its handler goes on", run.job.ref)
        if isinstance(verdict, Failed):
            await self._tell_failed(run.job.ref)
        else:
            self._options.observers.settled(run.job, verdict)
        loop_is_blocked = self._pulse.silent_ms() > _LOOK_S * 1000
        self._charge.gave_up(run)
        if loop_is_blocked:
            await self._leave_at_once()

    async def _leave_at_once(self) -> None:
        """The loop can finish nothing more: hand back what else it holds and end the process."""
        others = [run for run in self._book.runs() if not run.over]
        await self._store.settle(
            [Settlement(run.lease, Released()) for run in others], request=f"leave {self._charge.info().name}"
        )
        if not self._charge.replace_process():
            logger.error("the event loop is blocked and no supervisor is there to replace this process")

    async def _tell_failed(self, ref: JobRef) -> None:
        """Pass on a job that failed under no handler's eyes."""
        try:
            self._charge.failed_unrun(await self._store.job(ref))
        except BullpenError as error:
            logger.warning("job %s failed and cannot be looked at: %s", ref, error)

    async def _tell(self, ref: JobRef, line: str) -> None:
        logger.warning("job %s: %s", ref, line)
        try:
            await self._store.add_log(ref, [line])
        except BullpenError as error:
            logger.warning("could not note that in the job's log: %s", error)

    async def _try(self, what: str, do: Callable[..., Awaitable[None]], *arguments: object) -> None:
        """A chore that the store refuses now is done the next time."""
        try:
            await do(*arguments)
        except StoreError as error:
            logger.warning("cannot %s: %s", what, error)
