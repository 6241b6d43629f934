"""Several worker processes under one roof: started, watched, replaced.

supervisor ──▶ process 1: python -m bullpen.worker.process module:make_worker
├─▶ process 2 …
└── on a death: how? killed, out of memory, told to be replaced ──▶ its jobs are
handed back with that reason, another process takes its place
"""

import asyncio
import logging
import os
import secrets
import signal
import socket
import sys

from bullpen.errors import BadHandler, BullpenError
from bullpen.job.checks import check_at_least
from bullpen.job.record import CrashKind
from bullpen.scheduling.pauses import Pauses
from bullpen.worker.handlers import find_function
from bullpen.worker.oom import OomWatch
from bullpen.worker.options import seconds
from bullpen.worker.signals import listening, tell
from bullpen.worker.supervised import EXIT_REPLACE, KILL_AFTER_S, NAME, SUPERVISED
from bullpen.worker.worker import Worker

logger = logging.getLogger("bullpen.supervisor")

_FIRST_PAUSE_S = 0.1
_LONGEST_PAUSE_S = 30.0
_HEALTHY_AFTER_S = 10.0


def make_worker_from(path: str) -> Worker:
    """Call the function behind `module:name`, which must return a Worker."""
    worker = find_function(path)()  # type: ignore[call-arg]  # a factory, not a handler
    if not isinstance(worker, Worker):
        raise BadHandler(f"{path} returned {type(worker).__name__}, not a Worker")
    return worker


class Supervisor:
    """Keeps a number of worker processes running; each calls the factory for its own worker."""

    def __init__(self, factory: str, *, processes: int = 1) -> None:
        check_at_least("processes", processes, 1)
        self._factory = factory
        self._processes = processes
        # Made here only to know its store, its limits and its grace; it never runs in this process.
        self._sample = make_worker_from(factory)
        self._limits = self._sample.options.limits
        self._grace_s = seconds(self._sample.options.grace)
        self._store = self._sample.store.another()
        self._stopping = asyncio.Event()
        self._oom = OomWatch()
        self.running: dict[str, asyncio.subprocess.Process] = {}
        """The processes that live now, by worker name."""
        self.replaced = 0

    @property
    def queues(self) -> tuple[str, ...]:
        """Those that its processes serve."""
        return tuple(self._sample.info().queues)

    async def run(self, *, signals: bool = False) -> None:
        """Until told to stop and every process has ended."""
        await self._store.open()
        try:
            # A second signal is passed on as well: it hurries the workers.
            with listening(asyncio.get_running_loop(), self.stop if signals else None):
                async with asyncio.TaskGroup() as tasks:
                    for _ in range(self._processes):
                        tasks.create_task(self._keep_one())
        finally:
            await self._end_the_rest()
            await self._store.close()

    def stop(self) -> None:
        """Tell every process to stop as a worker does: finish, or hand back. Said twice, it hurries them."""
        self._stopping.set()
        for process in self.running.values():
            tell(process, signal.SIGTERM)

    async def _keep_one(self) -> None:
        """One place: a process in it at all times, with pauses if they die young."""
        pauses = Pauses(_FIRST_PAUSE_S, _LONGEST_PAUSE_S)
        loop = asyncio.get_running_loop()
        while not self._stopping.is_set():
            name = f"{socket.gethostname()}-{os.getpid()}-{secrets.token_hex(3)}"
            born = loop.time()
            try:
                code = await self._live_and_die(name)
            except OSError as error:
                # No process to be had now (EAGAIN, ENOMEM): those that live go on, and this place tries again.
                logger.warning("cannot start a worker, trying again: %s", error)
                await self._pause(pauses.next_s())
                continue
            # Told to stop before it could listen to signals, a process ends by ours; it had no job yet.
            asked = code in (0, EXIT_REPLACE) or (self._stopping.is_set() and code == -signal.SIGTERM)
            if not asked:
                await self._report(name, code)
            if self._stopping.is_set():
                return
            self.replaced += 1
            if code == EXIT_REPLACE or loop.time() - born > _HEALTHY_AFTER_S:
                pauses.begin_anew()
                continue
            await self._pause(pauses.next_s())

    async def _live_and_die(self, name: str) -> int:
        process = await asyncio.create_subprocess_exec(
            sys.executable,
            "-m",
            "bullpen.worker.process",
            self._factory,
            start_new_session=True,  # a terminal's Ctrl-C is ours to pass on
            env={
                **os.environ,
                SUPERVISED: "1",
                NAME: name,
                "PYTHONPATH": os.pathsep.join(path for path in sys.path if path),
            },
        )
        self.running[name] = process
        if self._stopping.is_set():
            tell(process, signal.SIGTERM)
        code = await self._wait(process)
        del self.running[name]
        return code

    async def _wait(self, process: asyncio.subprocess.Process) -> int:
        """Its exit code; a process that outlasts its own grace period after a stop is killed."""
        ended = asyncio.create_task(process.wait())
        stopping = asyncio.create_task(self._stopping.wait())
        try:
            await asyncio.wait([ended, stopping], return_when=asyncio.FIRST_COMPLETED)
            done, _ = await asyncio.wait([ended], timeout=self._grace_s + KILL_AFTER_S)
            if not done:
                tell(process, signal.SIGKILL)
            return await ended
        finally:
            stopping.cancel()
            ended.cancel()

    async def _end_the_rest(self) -> None:
        """Those that live though nobody keeps them any more, since `run` was cancelled: as on a stop."""
        if self.running:
            self.stop()
            await asyncio.gather(*(self._wait(process) for process in self.running.values()))
            self.running.clear()

    async def _report(self, name: str, code: int) -> None:
        """A process died unasked: its jobs are handed back now, with the reason."""
        kind = CrashKind.OUT_OF_MEMORY if code == -signal.SIGKILL and self._oom.happened() else CrashKind.KILLED
        logger.error("worker %s ended unasked (code %s): %s", name, code, kind)
        try:
            rescued = await self._store.report_crash(name, kind, limits=self._limits)
            self._sample.options.observers.process_died(kind, rescued)
            for ref in rescued.failed:
                self._sample.on_failed_unrun(await self._store.job(ref))
        except BullpenError as error:
            logger.warning("could not report that; its leases will run out: %s", error)

    async def _pause(self, pause_s: float) -> None:
        try:
            async with asyncio.timeout(pause_s):
                await self._stopping.wait()
        except TimeoutError:
            pass
