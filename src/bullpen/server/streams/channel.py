"""The event log of one queue, read once for all who listen to it."""

import asyncio
import logging
from collections import defaultdict, deque
from collections.abc import Iterable, Iterator, Mapping, Sequence

from bullpen.errors import BadOption, StoreError
from bullpen.queue.trips import new_pauses
from bullpen.server.streams.listening import Listener
from bullpen.server.streams.telling import StreamEvent
from bullpen.stores.base import EventPage, Store

logger = logging.getLogger("bullpen.server")

PAGE = 1_000
_RECENT = 2_000
_WAIT_MS = 10_000
_GATHER_S = 0.05
"""Between two reads: under load a read brings many events, instead of many reads a few each."""
_PATIENCE = 2
"""Reads after which the place of a newcomer must have been passed: one of them may have begun before it came."""


class Index:
    """Listeners by what they want, so that an event finds its own without asking all."""

    def __init__(self) -> None:
        self._by_job: dict[str, set[Listener]] = {}
        self._by_tenant: dict[str, set[Listener]] = {}
        self._others: set[Listener] = set()

    def __iter__(self) -> Iterator[Listener]:
        """Each once, though one may stand under two ids."""
        return iter(self._others.union(*self._by_job.values(), *self._by_tenant.values()))

    def __len__(self) -> int:
        return sum(1 for _ in self)

    def __contains__(self, listener: Listener) -> bool:
        return any(listener in some for some in self._places(listener))

    def add(self, listener: Listener) -> None:
        for some in self._places(listener):
            some.add(listener)

    def discard(self, listener: Listener) -> None:
        for some in self._places(listener):
            some.discard(listener)
        wanted = listener.wanted
        for job in wanted.jobs or ():
            if not self._by_job[job]:
                del self._by_job[job]
        if wanted.jobs is None and wanted.tenant is not None and not self._by_tenant[wanted.tenant]:
            del self._by_tenant[wanted.tenant]

    def hearing(self, told: list[StreamEvent]) -> Mapping[Listener, Sequence[StreamEvent]]:
        """What each of those who want to hear something of this will hear."""
        heard: defaultdict[Listener, list[StreamEvent]] = defaultdict(list)
        for one in told:
            event = one.event
            assert event is not None  # gaps are told apart
            for listener in self._by_job.get(event.job_id or "", ()):
                if listener.is_plain or listener.wanted.fits(event):
                    heard[listener].append(one)
            for listener in self._by_tenant.get(event.tenant or "", ()):
                if listener.is_plain or listener.wanted.fits(event):
                    heard[listener].append(one)
                else:
                    listener.learn(one.queue)
        for listener in self._others:
            some = told if listener.is_plain else [one for one in told if one.event and listener.wanted.fits(one.event)]
            if some:
                heard[listener] = some
        return heard

    def _places(self, listener: Listener) -> list[set[Listener]]:
        wanted = listener.wanted
        if wanted.jobs is not None:
            return [self._by_job.setdefault(job, set()) for job in wanted.jobs]
        if wanted.tenant is not None:
            return [self._by_tenant.setdefault(wanted.tenant, set())]
        return [self._others]


class _Newcomer:
    """A listener that heard up to a place that is not read here yet."""

    def __init__(self, listener: Listener) -> None:
        self.listener = listener
        self.patience = _PATIENCE


class Channel:
    """Reads and tells from `start` to `stop`."""

    def __init__(self, store: Store, queue: str) -> None:
        self.queue = queue
        self.position = ""
        """Up to where it has told."""
        self._store = store
        self._index = Index()
        self._recent: deque[StreamEvent] = deque()
        self._base = ""
        """The place before the first of the recent."""
        self._joining: dict[str, list[_Newcomer]] = {}
        self._expected: set[Listener] = set()
        """Those who will join: until then it may seem that nobody listens."""
        self._reading: asyncio.Task[None] | None = None
        self._is_stopped = False
        self._starting = asyncio.Lock()

    @property
    def is_unheard(self) -> bool:
        return len(self._index) == 0 and not self._joining and not self._expected

    async def start(self) -> None:
        async with self._starting:
            if self._reading is None:
                self.position = self._base = await self._end_of_log()
                if self._is_stopped:
                    return  # meanwhile
                # Owned by this channel; ended and awaited by `stop`.
                self._reading = asyncio.create_task(self._read(), name=f"events of {self.queue}")

    async def stop(self) -> None:
        self._is_stopped = True
        reading, self._reading = self._reading, None
        if reading is not None:
            reading.cancel()
            await asyncio.gather(reading, return_exceptions=True)

    def expect(self, listeners: Iterable[Listener]) -> None:
        """Stay open until they joined and left."""
        self._expected.update(listeners)

    def join(self, listener: Listener, after: str | None) -> None:
        """Let it hear all that comes after this place, the end of the log as it was just read; None: from now on."""
        self._expected.discard(listener)
        if after is None or after == self.position:
            self._index.add(listener)
            listener.places[self.queue] = self.position
            return
        listener.places[self.queue] = after
        missed = self._since(after)
        if missed is None:
            # Whoever read the log just now is ahead of us: let in as soon as we are there too.
            self._joining.setdefault(after, []).append(_Newcomer(listener))
            return
        self._index.add(listener)
        listener.learn_from(self.queue, missed)
        fitting = [told for told in missed if told.event is not None and listener.wanted.fits(told.event)]
        if fitting:
            listener.put(fitting)
            listener.wake()

    def is_heard_by(self, listener: Listener) -> bool:
        """Whether it was let in, and so has been told all up to here."""
        return listener in self._index

    def leave(self, listener: Listener) -> None:
        self._expected.discard(listener)
        self._index.discard(listener)
        for cursor, newcomers in list(self._joining.items()):
            self._joining[cursor] = [one for one in newcomers if one.listener is not listener]
            if not self._joining[cursor]:
                del self._joining[cursor]

    def _since(self, place: str) -> list[StreamEvent] | None:
        """What was told after a place; None if that is not known."""
        recent = list(self._recent)
        if place == self._base:
            return recent
        return next((recent[n + 1 :] for n, told in enumerate(recent) if told.cursor == place), None)

    # ── reading ──────────────────────────────────────────────────────────────────────────

    async def _end_of_log(self) -> str:
        return (await self._store.events(self.queue, after=None, limit=1, timeout_ms=0)).cursor

    async def _read(self) -> None:
        pauses = new_pauses()
        while True:
            page = await self._try_next_page()
            if page is None:
                await asyncio.sleep(pauses.next_s())
                continue
            pauses.begin_anew()
            self._take(page)
            await asyncio.sleep(0 if page.is_full else _GATHER_S)

    async def _try_next_page(self) -> EventPage | None:
        """None if it could not be read."""
        try:
            return await self._next_page()
        except StoreError as error:
            logger.warning("cannot follow the events of %s, trying again: %s", self.queue, error)
        except Exception:
            # Whatever it is, listeners who hear nothing for ever are worse.
            logger.exception("the reading of the events of %s met an error, trying again", self.queue)
        return None

    async def _next_page(self) -> EventPage:
        try:
            return await self._store.events(self.queue, after=self.position, limit=PAGE, timeout_ms=_WAIT_MS)
        except BadOption:
            # The queue was removed and begun anew: its log does not know our place.
            return EventPage((), await self._end_of_log(), gap=True)

    def _take(self, page: EventPage) -> None:
        woken: set[Listener] = set()
        if page.gap:
            woken.update(self._tell_gap(page.cursor if not page.events else page.events[0].cursor))
        told = [StreamEvent(self.queue, event, event.cursor) for event in page.events]
        self._remember(told)
        for part in self._parts(told):
            for listener, some in self._index.hearing(part).items():
                listener.learn(self.queue)
                listener.put(some)
                woken.add(listener)
        self.position = page.cursor
        if self._joining:
            self._let_in(page.cursor)
            woken.update(self._lose_patience())
        for listener in woken:
            listener.wake()

    def _parts(self, told: list[StreamEvent]) -> Iterator[list[StreamEvent]]:
        """The page, cut where newcomers come in: they hear only what follows."""
        begin = 0
        if self._joining:
            for n, one in enumerate(told, 1):
                if one.cursor in self._joining:
                    yield told[begin:n]
                    self._let_in(one.cursor)
                    begin = n
        if begin < len(told):
            yield told[begin:] if begin else told

    def _remember(self, told: Sequence[StreamEvent]) -> None:
        self._recent += told
        while len(self._recent) > _RECENT:
            self._base = self._recent.popleft().cursor

    def _tell_gap(self, cursor: str) -> Iterable[Listener]:
        """Everyone who may know has missed something, newcomers too."""
        self._recent.clear()
        self._base = cursor
        for newcomers in self._joining.values():
            for one in newcomers:
                self._index.add(one.listener)
        self._joining.clear()
        return [listener for listener in self._index if listener.miss(self.queue, cursor)]

    def _let_in(self, cursor: str) -> None:
        for one in self._joining.pop(cursor, ()):
            self._index.add(one.listener)

    def _lose_patience(self) -> Sequence[Listener]:
        """A place that was not passed by now is none of this log: say so rather than be silent for ever."""
        lost: list[Listener] = []
        for cursor, newcomers in list(self._joining.items()):
            for one in newcomers:
                one.patience -= 1
            if newcomers[0].patience <= 0:
                lost += [one.listener for one in self._joining.pop(cursor)]
        for listener in lost:
            self._index.add(listener)
        return [listener for listener in lost if listener.miss(self.queue, self.position)]
