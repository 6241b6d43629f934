"""The worker: claims jobs of its queues, runs them, settles them, and stops without losing any.

    run()  open ─▶ lease thread ─▶ exchanger ◀─▶ executor … told to stop ─▶ drain ─▶ close

Stop order: fetching, then jobs, then leases, then the store.
"""

import asyncio
import logging
import os
import socket
from collections.abc import Awaitable, Callable, Sequence

import msgspec

from bullpen.clock import SYSTEM_CLOCK, Clock
from bullpen.errors import StoreError
from bullpen.job.record import ClaimedJob, CrashKind, JobRecord, JobRef
from bullpen.job.verdicts import Failed, Released, Settlement, Verdict
from bullpen.stores.base import WorkerInfo, WorkerState
from bullpen.stores.workplace import Workplace
from bullpen.worker.appetite import Appetite
from bullpen.worker.declaring import declare_limits
from bullpen.worker.exchanger import Exchanger
from bullpen.worker.executor import Executor
from bullpen.worker.handlers import Handlers, Registry
from bullpen.worker.leases import LeaseKeeper
from bullpen.worker.options import WorkerOptions, seconds
from bullpen.worker.runner import first_of
from bullpen.worker.running import LeaseBook, Run, Stop, StopCause
from bullpen.worker.signals import listening
from bullpen.worker.supervised import EXIT_REPLACE, GIVE_WAY_S, LAST_TRIPS_S, Ended, is_supervised, own_name
from bullpen.worker.unanswered import Unanswered
from bullpen.worker.underway import Underway
from bullpen.worker.watchdog import Pulse

logger = logging.getLogger("bullpen.worker")


class Worker:
    """Runs the jobs of one or more queues in this process.

    worker = Worker(store, {"mail": send_mail}, WorkerOptions(concurrency=20))
    await worker.run()                    # until worker.stop(), or a signal if asked to listen
    """

    def __init__(
        self,
        store: Workplace,
        handlers: Handlers,
        options: WorkerOptions | None = None,
        *,
        clock: Clock = SYSTEM_CLOCK,
        on_failed_unrun: Callable[[JobRecord], None] | None = None,
        on_leave: Callable[[], Awaitable[None]] | None = None,
    ) -> None:
        self.options = options or WorkerOptions()
        self.store = store
        self.name = self.options.name or own_name()
        self._clock = clock
        self.on_failed_unrun = on_failed_unrun or (lambda _: None)
        self.on_leave = on_leave or _nothing
        """Called by whoever ran it in a process of its own, which ends: closes what its jobs were done with."""
        self._registry = Registry(handlers)
        self._slots = {queue: self.options.slots(queue) for queue in self._registry.queues}
        self._book = LeaseBook(Unanswered(clock, self.options.lease_ms))
        self._underway = Underway(clock)
        self._state = WorkerState.INITIALIZING
        self._started_ms = 0
        self._finished = 0
        self._ended = Ended.STOPPED
        self._grace_s = seconds(self.options.grace)
        self._store = store.another()
        self._executor = Executor(self._store, self._registry, self.options, self._clock)
        appetite = Appetite(self._slots, self.options, clock, trips=self._store.facts.exchanges_in_flight)
        self._exchanger = Exchanger(
            self._store, appetite, self.name, self.options, self._book, self._start, self._failed_on_a_trip
        )
        self._leases: LeaseKeeper | None = None
        self._loop: asyncio.AbstractEventLoop | None = None
        self._told_to_stop = asyncio.Event()
        self._in_a_hurry = asyncio.Event()

    @property
    def state(self) -> WorkerState:
        return WorkerState.PROCESSING if self._state == WorkerState.READY and self._underway else self._state

    # ── for its owner ────────────────────────────────────────────────────────────────────

    async def run(self, *, signals: bool = False) -> Ended:
        """Work until told to stop; with `signals`, SIGTERM and SIGINT say so, a second one hurries.

        Goes on through any outage of the store; raises StoreTooNew or StoreCorrupt, which pass not by waiting.
        """
        self._loop = asyncio.get_running_loop()
        self._started_ms = self._clock.now_ms()
        await self._store.open()
        try:
            await declare_limits(self._store, self.options.queue_limits)
        except BaseException:
            await self._store.close()
            raise
        pulse = Pulse(self._clock)
        self._leases = LeaseKeeper(
            self.store.another(), self._registry.queues, self.options, self._clock, self._book, pulse, self
        )
        with listening(self._loop, self._on_signal if signals else None):
            try:
                await asyncio.to_thread(self._leases.start)
                async with self.options.observers.serving(self):
                    await self._work()
            except ExceptionGroup as group:
                raise first_of(group) from group
            finally:
                self._state = WorkerState.STOPPED
                await self._hand_back_the_rest()
                await asyncio.to_thread(self._leases.stop)
                pulse.stop()
                await self._executor.close()
                await self._store.close()
        return self._ended

    def stop(self, *, grace: float | None = None) -> None:
        """Claim no more, finish what runs within the grace period, hand back the rest."""
        if grace is not None:
            self._grace_s = grace
        self._told_to_stop.set()

    def stop_now(self) -> None:
        """Hand back what runs, at once."""
        self._told_to_stop.set()
        self._in_a_hurry.set()

    def pause(self) -> None:
        """Claim no more for now; only this worker, unlike a queue's pause."""
        self._exchanger.stop_fetching()

    def resume(self) -> None:
        self._exchanger.resume_fetching()

    # ── the course of work ───────────────────────────────────────────────────────────────

    async def _work(self) -> None:
        async with asyncio.TaskGroup() as tasks:
            trips = tasks.create_task(self._exchanger.run(), name="exchanger")
            watch = tasks.create_task(self._underway.watch(self._on_silent_end), name="watch over runs")
            self._enter(WorkerState.READY)
            served = ", ".join(f"{queue} ({slots} at once)" for queue, slots in self._slots.items())
            logger.info("worker %s serves %s", self.name, served)
            await self._told_to_stop.wait()
            self._enter(WorkerState.DRAINING)
            self._exchanger.stop_fetching()
            await self._drain()
            self._exchanger.close()
            await asyncio.wait([trips], timeout=LAST_TRIPS_S)
            trips.cancel()
            watch.cancel()

    def _enter(self, state: WorkerState) -> None:
        self._state = state
        assert self._leases is not None
        self._leases.beat_soon()

    async def _drain(self) -> None:
        """Let jobs finish, then ask them to stop, then hand back what does not."""
        await self._underway.quiet_within(self._grace_s, unless=self._in_a_hurry)
        self._underway.ask_to_stop(Stop(StopCause.SHUTDOWN))
        await self._underway.quiet_within(GIVE_WAY_S)
        for run in self._underway.unfinished():
            run.over = True
            self._exchanger.send(run.claimed, Released(CrashKind.DEPLOY))

    async def _hand_back_the_rest(self) -> None:
        """What is still held when work ended otherwise than by a stop, or while the store was away."""
        self._underway.cancel()
        runs = [run for run in self._book.runs() if not run.over]
        held = [Settlement(run.lease, run.verdict or Released(CrashKind.DEPLOY)) for run in runs]
        try:
            if held:
                await self._store.settle(held, request=f"{self.name} ends {self._started_ms}")
            for request in self._book.unanswered.all():
                await self._store.abandon(request)
        except StoreError:
            logger.exception("what is held could not be handed back; its leases will run out")

    def _start(self, jobs: Sequence[ClaimedJob]) -> None:
        """These were claimed."""
        if self._told_to_stop.is_set():
            # They came with the last trip before the stop.
            for claimed in jobs:
                self._exchanger.finish(claimed, Released())
            return
        now_ms = self._clock.mono_ms()
        for claimed in jobs:
            self._start_one(claimed, now_ms)

    def _start_one(self, claimed: ClaimedJob, now_ms: int) -> None:
        """Run it, or say at once why not."""
        run = self._executor.prepare(claimed)
        if not isinstance(run, Run):
            self._exchanger.finish(claimed, run)
            if isinstance(run, Failed):
                self._tell_failed_unrun(msgspec.structs.replace(claimed.job, failure=run.failure))
            return
        self._book.enter(run)
        self._underway.begin(run, now_ms)
        # Owned by this worker through `_underway`, which sees whether it has reported to `_on_verdict`.
        assert self._loop is not None
        # With a name, or asyncio would make up one for each, which takes longer than all else about a task.
        run.task = asyncio.Task(self._executor.perform(run, self._on_verdict), loop=self._loop, name=claimed.job.name)

    def _on_silent_end(self, run: Run, error: BaseException) -> None:
        """Judged here, or its job would hang and its slot be lost; not where the worker itself is interrupted."""
        if not isinstance(error, KeyboardInterrupt):
            self._on_verdict(run, None if run.over else self._executor.judge(run, error))

    def _on_verdict(self, run: Run, verdict: Verdict | None) -> None:
        self._underway.end(run)
        run.verdict = verdict
        self._exchanger.finish(run.claimed, verdict)
        if verdict is None:
            self._book.strike(run.lease.token)
        self._finished += 1
        if self.options.max_jobs is not None and self._finished >= self.options.max_jobs:
            self._recycle(f"{self._finished} jobs done")

    def _failed_on_a_trip(self, ref: JobRef) -> None:
        assert self._leases is not None
        self._leases.tell_failed(ref)

    def _tell_failed_unrun(self, job: JobRecord) -> None:
        self.options.observers.failed_unrun(job)
        self.on_failed_unrun(job)

    def _recycle(self, why: str) -> None:
        if not self._told_to_stop.is_set():
            logger.info("worker %s is to be replaced: %s", self.name, why)
            self._ended = Ended.RECYCLED
            self.stop()

    def _stop_run(self, token: str, stop: Stop) -> None:
        run = self._book.find(token)
        if run is not None:
            run.ask_to_stop(stop)

    def _on_signal(self) -> None:
        if self._told_to_stop.is_set():
            self.stop_now()
        else:
            self.stop()

    # ── asked by the lease thread ────────────────────────────────────────────────────────

    def info(self) -> WorkerInfo:
        runs = tuple(self._book.runs())
        return WorkerInfo(
            name=self.name,
            state=self.state,
            queues=self._slots,
            host=socket.gethostname(),
            pid=os.getpid(),
            started_ms=self._started_ms,
            running=tuple(run.job.ref for run in runs if not run.over),
            stuck=tuple(run.job.ref for run in runs if run.over or run.ignores_stop),
            jobs_done=self._finished,
        )

    def ask_to_stop(self, token: str, stop: Stop) -> None:
        self._call(lambda: self._stop_run(token, stop))

    def recycle(self, why: str) -> None:
        self._call(lambda: self._recycle(why))

    def gave_up(self, run: Run) -> None:
        self._call(self._underway.look_if_quiet)
        if is_supervised():
            self.recycle(f"job {run.job.ref} does not give way")

    def failed_unrun(self, job: JobRecord) -> None:
        self._call(lambda: self._tell_failed_unrun(job))

    def replace_process(self) -> bool:
        if not is_supervised():
            return False
        logging.shutdown()
        os._exit(EXIT_REPLACE)

    def _call(self, action: Callable[[], None]) -> None:
        assert self._loop is not None
        try:
            self._loop.call_soon_threadsafe(action)
        except RuntimeError:
            pass  # the loop has ended, and every job with it


async def _nothing() -> None:
    """For a worker that belongs to no application."""
