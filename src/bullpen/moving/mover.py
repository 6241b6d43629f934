"""The mover: carries queues over, portion by portion, until the source has nothing left.

It keeps nothing itself. Killed at any moment and started again with the same two stores it goes
on: the target knows what arrived, the source what has not departed.
"""

import asyncio
import uuid
from collections.abc import Iterator, Sequence

import msgspec

from bullpen.errors import BadOption, MoveRefused
from bullpen.job.limits import NO_GROUP_LIMITS, NO_LIMITS
from bullpen.job.record import CrashLimits
from bullpen.job.state import State
from bullpen.queue.groups import Groups
from bullpen.stores.base import Store
from bullpen.stores.moving import Cargo, Move, SavedJob

_STATES = (State.WAITING, State.PRIORITIZED, State.DELAYED, State.FAILED, State.COMPLETED)
"""What is still to run goes first: it stands still until it has arrived."""
_PAGE = 200
_PORTION_BYTES = 1_000_000
"""A step holds the target up for its time, so that of large jobs few go at once."""
_MEMORIES = 1_000
_LOOK_AGAIN_MS = 1_000
_LOOK_FOR_QUEUES_S = 5.0
_NEVER = 1_000_000_000
_NO_LIMITS = CrashLimits(killed=_NEVER, out_of_memory=_NEVER, lost_heartbeat=_NEVER, total=_NEVER)
"""Whether a job crashed too often is for the workers to judge, where it goes."""


class Progress(msgspec.Struct):
    """How far a queue is."""

    queue: str
    moved: int = 0
    active: int = 0
    """Running on the source; they come when they have ended."""
    is_caught_up: bool = False
    """Nothing else is left there."""


class Watcher:
    """Told of each step; does nothing by itself."""

    def moved(self, jobs: int) -> None:
        """So many jobs are on the target and no longer on the source."""

    def caught_up(self, progress: Progress) -> None:
        """All but the running jobs is on the target, for the first time."""


class Mover:
    def __init__(self, source: Store, target: Store, watcher: Watcher | None = None) -> None:
        if source.place == target.place:
            raise BadOption(f"both stores are the same place, {source.place}: name two")
        self._source = source
        self._target = target
        self._watcher = watcher or Watcher()
        self._run = uuid.uuid4().hex
        self._departed: dict[str, tuple[str, ...]] = {}
        """By queue: what the source let go since the target was last told."""
        self.queues: dict[str, Progress] = {}

    async def move(self, names: Sequence[str] = (), *, follow: bool = False) -> None:
        """Move these queues, or all; done when the source has nothing left in them, and with `follow` never.

        Raises MoveRefused before anything of a queue has left the source if it cannot move there.
        """
        fresh = list(names) or list(await self._source.queues())
        while fresh:
            # All are asked for first, so that a refusal finds the source as it was.
            for name in fresh:
                await self._begin(name)
            async with asyncio.TaskGroup() as tasks:
                for name in fresh:
                    tasks.create_task(self._carry(name, follow=follow), name=f"move {name}")
                if follow and not names:
                    tasks.create_task(self._watch_for_queues(tasks), name="look for queues")
            fresh = [] if names else await self._new_queues()

    async def _new_queues(self) -> list[str]:
        return [name for name in await self._source.queues() if name not in self.queues]

    async def _watch_for_queues(self, tasks: asyncio.TaskGroup) -> None:
        """Late producers may also add to queues that were not there before."""
        while True:
            await asyncio.sleep(_LOOK_FOR_QUEUES_S)
            for name in await self._new_queues():
                await self._begin(name)
                tasks.create_task(self._carry(name, follow=True), name=f"move {name}")

    async def _begin(self, name: str) -> None:
        counts = await self._source.counts(name)
        if counts.waiting_children:
            raise MoveRefused(f"queue {name!r} has jobs that wait for their children: let them end first")
        memory = await self._source.export_memory(name, limit=_MEMORIES)
        # Before the source is paused: the target keeps in mind how it was, also if we end in between.
        move = Move(origin=self._source.place, run=self._run, last_id=memory.last_id, paused=counts.paused)
        await self._target.begin_move(name, move)
        await self._carry_limits(name)
        self.queues[name] = Progress(name)

    async def _carry_limits(self, name: str) -> None:
        """What the target says already stands: it may have been changed since an earlier try."""
        source, target = self._source, self._target
        limits = (await source.limits(name)).limits
        if (await target.limits(name)).limits == NO_LIMITS != limits:
            await target.set_limits(name, limits)
        known = {group.name async for group in Groups(target, name)}
        page = await source.groups(name, limit=1)
        if (await target.groups(name, limit=1)).default == NO_GROUP_LIMITS != page.default:
            await target.set_group_default(name, page.default)
        async for group in Groups(source, name):
            if group.name not in known and group.limits != NO_GROUP_LIMITS:
                await target.set_group(name, group.name, group.limits)
            if group.name not in known and group.paused:
                await target.pause_group(name, group.name)

    # ── one queue ────────────────────────────────────────────────────────────────────────

    async def _carry(self, name: str, *, follow: bool) -> None:
        source, progress = self._source, self.queues[name]
        await source.pause(name)
        had_active = (await source.counts(name)).active > 0
        await self._carry_memory(name)
        while True:
            # Taken before the look: what happens in between ends the wait at once.
            cursor = (await source.events(name, after=None, limit=1, timeout_ms=0)).cursor
            await source.pause(name)  # someone may have resumed it
            await source.rescue([name], limits=_NO_LIMITS)
            await self._carry_jobs(name)
            counts = await source.counts(name)
            progress.active = counts.active
            had_active = had_active or counts.active > 0
            if had_active and not counts.active:
                # What ended there may have left an id or a subject behind, and no job.
                had_active = False
                await self._carry_memory(name)
            await self._confirm(name)
            if counts.unfinished == counts.active and not counts.completed and not counts.failed:
                self._note_caught_up(progress)
                if not counts.active and not follow:
                    return
            await source.events(name, after=cursor, limit=1, timeout_ms=_LOOK_AGAIN_MS)

    def _note_caught_up(self, progress: Progress) -> None:
        if not progress.is_caught_up:
            progress.is_caught_up = True
            self._watcher.caught_up(progress)

    async def _carry_memory(self, name: str) -> None:
        cursor: str | None = None
        while True:
            page = await self._source.export_memory(name, limit=_MEMORIES, cursor=cursor)
            if page.ids or page.subjects:
                await self._target.restore(name, Cargo(ids=page.ids, subjects=page.subjects), run=self._run)
            cursor = page.next_cursor
            if cursor is None:
                return

    async def _carry_jobs(self, name: str) -> None:
        for state in _STATES:
            while jobs := await self._source.export_jobs(name, state, limit=_PAGE):
                gone = 0
                for portion in _portions(jobs):
                    gone += await self._carry_portion(name, portion)
                if not gone:
                    break  # each was signalled just now, or runs again since someone resumed the queue

    async def _carry_portion(self, name: str, jobs: tuple[SavedJob, ...]) -> int:
        departed = self._departed.pop(name, ())
        await self._target.restore(name, Cargo(jobs=jobs, departed=departed), run=self._run)
        signals = {job.id: len(job.signals) for job in jobs if job.signals}
        gone = await self._source.depart(name, [job.id for job in jobs], signals=signals)
        self._departed[name] = tuple(gone)
        self.queues[name].moved += len(gone)
        self._watcher.moved(len(gone))
        return len(gone)

    async def _confirm(self, name: str) -> None:
        # Also without any: who was taken over hears of it here, though the other took all that came since.
        await self._target.restore(name, Cargo(departed=self._departed.pop(name, ())), run=self._run)


def _portions(jobs: Sequence[SavedJob]) -> Iterator[tuple[SavedJob, ...]]:
    portion: list[SavedJob] = []
    size = 0
    for job in jobs:
        size += _size(job)
        if portion and size > _PORTION_BYTES:
            yield tuple(portion)
            portion, size = [], _size(job)
        portion.append(job)
    yield tuple(portion)


def _size(job: SavedJob) -> int:
    record = job.record
    texts = sum(map(len, job.logs)) + sum(map(len, record.stacks))
    steps = sum(len(entry.value or b"") for entry in job.journal) + sum(len(signal.payload) for signal in job.signals)
    return len(record.data) + len(record.result or b"") + len(record.progress or b"") + texts + steps
