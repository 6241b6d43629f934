"""The lease thread: a loop and a store of its own, so that no handler can starve it.

It renews leases, brings cancellations, beats for the worker, rescues what others lost; and
its overseer sees who blocks the worker's loop, and ends what outlasts its timeout.
"""

import asyncio
import contextlib
import logging
import threading
from collections.abc import Awaitable, Callable, Coroutine, Sequence

from bullpen.clock import Clock
from bullpen.errors import StoreError, StoreUnavailable
from bullpen.job.record import JobRef
from bullpen.scheduling.pauses import Pauses
from bullpen.settings import may_advance_schedules
from bullpen.stores.base import Renewal
from bullpen.stores.workplace import Workplace
from bullpen.upkeep.advancer import keep_advancing
from bullpen.upkeep.rescuer import keep_rescuing
from bullpen.worker.options import WorkerOptions
from bullpen.worker.overseer import Overseen, Overseer
from bullpen.worker.running import LeaseBook, Run, Stop, StopCause
from bullpen.worker.watchdog import Pulse

logger = logging.getLogger("bullpen.worker")

_CANCEL_AGAIN_S = 1.0
_LOOK_S = 0.1
_IDLE_LOOK_S = 0.5
"""With nothing under way there is little to see, and each look may be in the way of a job that comes just then."""
_BEAT_MS = 5_000
_NOTICE_MS = 1_000
_OPENINGS = 5


class LeaseKeeper:
    def __init__(
        self,
        store: Workplace,
        queues: Sequence[str],
        options: WorkerOptions,
        clock: Clock,
        book: LeaseBook,
        pulse: Pulse,
        overseen: Overseen,
    ) -> None:
        self._store = store
        self._queues = queues
        self._options = options
        self._book = book
        self._overseen = overseen
        self._overseer = Overseer(store, options, clock, book, pulse, overseen)
        self._loop: asyncio.AbstractEventLoop | None = None
        self._stopping: asyncio.Event | None = None
        self._beat_now: asyncio.Event | None = None
        self._tellings: set[asyncio.Future[None]] = set()
        self._started = threading.Event()
        self._failure: Exception | None = None
        self._thread = threading.Thread(target=self._run, name="bullpen-leases", daemon=True)

    def start(self) -> None:
        """Blocks until the worker is registered, and raises if it cannot be: not for the event loop."""
        self._thread.start()
        self._started.wait()
        if self._failure is not None:
            raise self._failure

    def beat_soon(self) -> None:
        """Let the store know of a new state without waiting for the next beat."""
        if self._beat_now is not None:
            self._call(self._beat_now.set)

    def tell_failed(self, ref: JobRef) -> None:
        """Look at a job that failed under no handler's eyes, and pass it on."""
        self._call(lambda: self._tell_soon(ref))

    def stop(self) -> None:
        """End the thread, with a last beat. Blocks: not for the event loop."""
        if self._loop is not None and self._stopping is not None and self._thread.is_alive():
            self._call(self._stopping.set)
            self._thread.join()

    def _call(self, action: Callable[[], object]) -> None:
        """In the lease thread, while it lives: the worker outlasts it, to finish what it has."""
        if self._loop is None:
            return
        with contextlib.suppress(RuntimeError):  # its loop is closed
            self._loop.call_soon_threadsafe(action)

    # ── in the lease thread ──────────────────────────────────────────────────────────────

    def _tell_soon(self, ref: JobRef) -> None:
        telling = asyncio.ensure_future(self._overseer.tell_failed(ref))
        self._tellings.add(telling)  # or nobody would hold it while it is under way
        telling.add_done_callback(self._tellings.discard)

    def _run(self) -> None:
        try:
            asyncio.run(self._live())
        except Exception as error:
            self._failure = error
            if self._started.is_set():
                # Without renewals every lease is lost in time; say so and let the worker end.
                logger.exception("the lease thread failed")
                self._overseen.recycle("the lease thread failed")
        finally:
            self._started.set()

    async def _open(self) -> None:
        """The worker's own store has just been opened: what breaks the way to this one is tried again."""
        pauses = Pauses(0.05, 1.0)
        for _ in range(_OPENINGS):
            try:
                return await self._store.open()
            except StoreUnavailable:
                await asyncio.sleep(pauses.next_s())
        return await self._store.open()

    async def _live(self) -> None:
        self._loop = asyncio.get_running_loop()
        self._stopping = asyncio.Event()
        self._beat_now = asyncio.Event()
        await self._open()
        try:
            await self._register()
            self._started.set()
            async with asyncio.TaskGroup() as tasks:
                chores = [tasks.create_task(chore) for chore in self._chores()]
                await self._stopping.wait()
                await _end(chores)
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
                lease_ms=self._options.lease_ms,
                every_ms=max(rescue_ms, 50),
                on_failed=self._overseer.tell_failed,
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
                self._overseen.ask_to_stop(run.lease.token, Stop(StopCause.LEASE_LOST))

    async def _hand_back_late(self) -> None:
        """Claims that the loop may not see before their leases run out, which would count as a crash."""
        if self._store.facts.only_works:
            return  # from afar nothing can be handed back by its request
        for request in self._book.unanswered.take_late():
            try:
                await self._store.abandon(request)
            except StoreError as error:
                self._book.unanswered.ask(request)
                logger.warning("cannot hand back a claim that is not answered: %s", error)

    async def _bring_notices(self) -> None:
        name = self._overseen.info().name
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
                self._overseer.cancel(token, known[token].reason)
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

    async def _register(self) -> None:
        """The first beat. A store that answered a moment ago and is away now is no reason not to begin."""
        assert self._beat_now is not None
        try:
            await self._beat_once()
        except StoreUnavailable as error:
            logger.warning("cannot register yet: %s", error)
            self._beat_now.set()

    async def _beat_once(self) -> None:
        await self._store.beat(self._overseen.info(), ttl_ms=3 * _BEAT_MS)

    async def _look_after(self) -> None:
        while True:
            await asyncio.sleep(_LOOK_S if self._book else _IDLE_LOOK_S)
            await self._hand_back_late()
            await self._overseer.watch_the_loop()
            for run in self._overseer.overdue():
                await self._overseer.end_overdue(run)
            self._overseer.watch_memory()

    async def _try(self, what: str, do: Callable[..., Awaitable[None]], *arguments: object) -> None:
        """A chore that the store refuses now is done the next time."""
        try:
            await do(*arguments)
        except StoreError as error:
            logger.warning("cannot %s: %s", what, error)


async def _end(chores: Sequence["asyncio.Task[None]"]) -> None:
    """Cancel until they have ended: a driver below may swallow a cancellation, and its chore would go on for ever."""
    while pending := [chore for chore in chores if not chore.done()]:
        for chore in pending:
            chore.cancel()
        await asyncio.wait(pending, timeout=_CANCEL_AGAIN_S)
