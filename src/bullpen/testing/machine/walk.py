"""A walk: one store and one model, how both are asked, and what was seen and answered on the way."""

import asyncio
import contextlib
import dataclasses
from collections.abc import Awaitable, Callable, Coroutine, Sequence
from typing import Any, TypeVar

from hypothesis.stateful import RuleBasedStateMachine

from bullpen.clock import SYSTEM_CLOCK
from bullpen.errors import JobError
from bullpen.job.events import Event
from bullpen.job.limits import GroupPage, QueueStanding
from bullpen.job.names import is_generated_id
from bullpen.job.record import JobRecord, JobRef, Lease
from bullpen.job.schedule import ScheduleRecord
from bullpen.job.spec import Dedup
from bullpen.job.state import State
from bullpen.stores.base import Added, Child, ChildState, Counts, Exchanged
from bullpen.testing.harness import Harness
from bullpen.testing.machine import drawing
from bullpen.testing.machine.model import Model

T = TypeVar("T")
Place = Callable[[], contextlib.AbstractContextManager[Harness]]
"""Makes a new, empty place where jobs are kept, and does away with it."""

PAGE = 6


@dataclasses.dataclass
class Asked:
    """A request and its first answer."""

    request: str
    again: Callable[[], Coroutine[Any, Any, object]]
    answer: Sequence[Added] | Exchanged
    at_ms: int


@dataclasses.dataclass
class Sight:
    """All that the store shows, after a step; no page of a state in which it counts no job."""

    jobs: dict[tuple[str, State], list[JobRecord]] = dataclasses.field(default_factory=dict)
    counts: dict[str, Counts] = dataclasses.field(default_factory=dict)
    groups: dict[str, GroupPage] = dataclasses.field(default_factory=dict)
    limits: dict[str, QueueStanding] = dataclasses.field(default_factory=dict)
    oldest_ms: dict[str, int | None] = dataclasses.field(default_factory=dict)
    schedules: list[ScheduleRecord] = dataclasses.field(default_factory=list)


class Walk(RuleBasedStateMachine):
    place: Place

    def __init__(self) -> None:
        super().__init__()
        self._exit = contextlib.ExitStack()
        self._harness = self._exit.enter_context(self.place())
        self._loop = self._exit.enter_context(asyncio.Runner()).get_loop()
        self._store = self._run(self._harness.open())
        self._began_ms = SYSTEM_CLOCK.mono_ms()
        facts = self._store.facts
        self._model = Model(self._harness.clock, detects_dead_processes=facts.detects_dead_processes)
        self._dedup = Dedup("")
        self._numbers = 0
        self._asked: list[Asked] = []
        self._leases: list[Lease] = []
        self._sight = Sight()
        self._families: dict[JobRef, set[tuple[JobRef, ChildState, bytes | None]]] = {}
        """The children of each parent, as they were when last compared."""
        self._compared = False
        self._cursors = {queue: self._end_of_log(queue) for queue in ("a", "b")}
        self._starts = dict(self._cursors)
        self._told: dict[str, list[Event]] = {"a": [], "b": []}

    def _crash(self) -> None:
        self._model.dead.add(self._model.process)
        self._run(self._harness.crash(self._store))
        self._run(self._harness.check())
        self._open()

    def _open(self) -> None:
        self._store = self._run(self._harness.open())
        self._model.process += 1

    # ── asking ───────────────────────────────────────────────────────────────────────────

    def _run(self, call: Coroutine[Any, Any, T]) -> T:
        return self._loop.run_until_complete(call)

    def _tick(self) -> None:
        """What ends or starts now does not do so in the same millisecond as what did before."""
        self._run(self._harness.advance(drawing.TICK_MS))

    def _is_about(self, found_ms: int | None, expected_ms: int | None) -> bool:
        """A server that counts a window down by itself does so while a walk takes its time."""
        if found_ms is None or expected_ms is None:
            return found_ms == expected_ms
        passed_ms = SYSTEM_CLOCK.mono_ms() - self._began_ms
        return -passed_ms <= found_ms - expected_ms <= 0

    def _fresh(self, word: str) -> str:
        self._numbers += 1
        return f"{word}-{self._numbers}"

    def _both(self, verb: str, *arguments: object, **options: object) -> None:
        """Ask both the same: they say the same, or refuse it in the same way."""
        answer = self._run(or_refusal(getattr(self._store, verb)(*arguments, **options)))
        self._look()
        assert answer == self._of_model(verb, *arguments, **options)

    def _of_model(self, verb: str, *arguments: object, **options: object) -> object:
        return do(lambda: getattr(self._model, verb)(*arguments, **options))

    def _running_first(self) -> list[Lease]:
        """Leases that are held, more often than any that ever was given."""
        held = [lease for lease in self._leases if self._model.held(lease) is not None]
        return [*held[::-1] * 3, *self._leases]

    def _ask(
        self, request: str, call: Callable[[], Coroutine[Any, Any, T]], *, lost: bool = False
    ) -> T | type[JobError]:
        """Ask, and keep the answer; if it is lost, ask again. A refusal is not remembered."""
        if lost:
            self._run(lose_answer(call))
        answer = self._run(or_refusal(call()))
        if not isinstance(answer, type):
            self._asked.append(Asked(request, call, answer, self._model.now_ms))  # type: ignore[arg-type]
        self._look()
        return answer

    # ── looking ──────────────────────────────────────────────────────────────────────────

    def _look(self) -> None:
        """Read all that the store shows; tell the model what is the store's own choice."""
        self._compared = False
        self._sight = self._run(self._read_all())
        records = [record for page in self._sight.jobs.values() for record in page]
        self._model.seen = {record.ref: n for n, record in enumerate(records)}
        self._model.given_ids |= {record.name: record.id for record in records if is_generated_id(record.id)}

    async def _read_all(self) -> Sight:
        """Nothing changes meanwhile, so all is asked for at once: a walk is mostly waiting for answers."""
        sight = Sight()
        queues = await self._store.queues()
        schedules = await asyncio.gather(*(self._read_queue(queue, sight) for queue in queues))
        sight.schedules = [one for of_queue in schedules for one in of_queue]
        await asyncio.gather(*map(self._hear, self._told))
        pages = [(queue, state) for queue in queues for state in drawing.STATES if _has(sight.counts[queue], state)]
        found = await asyncio.gather(*(self._read_jobs(queue, state) for queue, state in pages))
        sight.jobs = dict(zip(pages, found, strict=True))
        return sight

    async def _read_queue(self, queue: str, sight: Sight) -> Sequence[ScheduleRecord]:
        store = self._store
        counts, groups, limits, oldest_ms, schedules = await asyncio.gather(
            store.counts(queue),
            store.groups(queue, limit=100),
            store.limits(queue),
            store.oldest_waiting_ms(queue),
            store.schedules(queue),
        )
        sight.counts[queue], sight.groups[queue], sight.limits[queue] = counts, groups, limits
        sight.oldest_ms[queue] = oldest_ms
        return schedules

    async def _hear(self, queue: str) -> None:
        told = self._told[queue]
        told.extend(await self._read_log(queue, self._cursors[queue], limit=1_000))
        self._cursors[queue] = told[-1].cursor if told else self._cursors[queue]

    async def _read_children(self, parents: Sequence[JobRef]) -> list[Sequence[Child]]:
        pages = await asyncio.gather(*(self._store.children(parent) for parent in parents))
        return [page.children for page in pages]

    async def _read_jobs(self, queue: str, state: State, *, newest_first: bool = False) -> list[JobRecord]:
        found: list[JobRecord] = []
        cursor = None
        while True:
            page = await self._store.jobs(queue, state, limit=PAGE, cursor=cursor, newest_first=newest_first)
            found += page.jobs
            cursor = page.next_cursor
            if cursor is None:
                return found

    async def _read_log(self, queue: str, after: str, *, limit: int) -> list[Event]:
        page = await self._store.events(queue, after=after, limit=limit, timeout_ms=0)
        assert not page.gap
        assert not page.events or page.cursor == page.events[-1].cursor
        return list(page.events)

    def _end_of_log(self, queue: str) -> str:
        return self._run(self._store.events(queue, after=None, limit=1, timeout_ms=0)).cursor


def _has(counts: Counts, state: State) -> bool:
    return bool(getattr(counts, state.replace("-", "_")))


async def or_refusal(call: Awaitable[T]) -> T | type[JobError]:
    try:
        return await call
    except JobError as refusal:
        return type(refusal)


def do(call: Callable[[], T]) -> T | type[JobError]:
    try:
        return call()
    except JobError as refusal:
        return type(refusal)


async def lose_answer(call: Callable[[], Coroutine[Any, Any, object]]) -> None:
    """Ask, and go away before the answer comes."""
    asking = asyncio.create_task(call())
    await asyncio.sleep(0)
    asking.cancel()
    await asyncio.gather(asking, return_exceptions=True)
