"""What dashboards show of all queues: which changed and how they stand now, a few times a second."""

import asyncio
from collections.abc import AsyncGenerator, Callable, Collection, Mapping, Sequence
from typing import Any

import msgspec

from bullpen.job.events import EventKind
from bullpen.server.queue_status import Standing
from bullpen.server.streams.hub import Hub
from bullpen.server.streams.listening import Listener
from bullpen.server.streams.telling import StreamEvent, Wanted

EVERY_S = 0.25
_BEAT_S = 15.0
_IDS = 100
_LOOKS = 4
"""The read model follows a moment later: a queue that changed is looked at again that often."""
_AGAIN_S = 0.5
_STEERING = frozenset({EventKind.PAUSED, EventKind.RESUMED})


class Changes(Listener):
    """Keeps which jobs changed instead of what happened to them, so that no load can make it grow."""

    def __init__(self, wanted: Wanted, on_steered: Callable[[str], None], own: Collection[str] | None = None) -> None:
        super().__init__(wanted, limit=1, own=own)
        self._on_steered = on_steered
        self._ids: dict[str, dict[str, None]] = {}

    def put(self, told: Sequence[StreamEvent]) -> None:
        queue = told[0].queue
        ids = self._ids.setdefault(queue, {})
        for one in told:
            event = one.event
            if event is None:
                continue
            if event.kind in _STEERING:
                self._on_steered(queue)
            if event.job_id is not None and len(ids) < _IDS:
                ids[event.job_id] = None

    def take_ids(self) -> dict[str, list[str]]:
        """The jobs that changed since, some of each queue."""
        self.take()
        found, self._ids = self._ids, {}
        return {queue: list(ids) for queue, ids in found.items()}


class LiveView:
    """The updates of one dashboard."""

    def __init__(self, hub: Hub, standing: Standing, wanted: Wanted, own: Collection[str] | None = None) -> None:
        self._hub = hub
        self._standing = standing
        self._changes = Changes(wanted, standing.forget, own)
        self._shown: dict[str, dict[str, Any]] = {}
        self._looks: dict[str, int] = {}
        """How often a queue is still to be looked at."""

    async def updates(self) -> AsyncGenerator[bytes | None, None]:
        """Each as JSON, not more than four a second; None at its start, and when nothing changed for a while."""
        async with self._hub.listening(self._changes):
            yield None
            while not self._changes.has_ended:
                came = await self._changes.wait(_AGAIN_S if self._looks else _BEAT_S)
                update = await self._update(self._changes.take_ids())
                if update is not None:
                    yield msgspec.json.encode(update)
                elif not came:
                    yield None
                await asyncio.sleep(EVERY_S)

    async def _update(self, ids: Mapping[str, list[str]]) -> dict[str, Any] | None:
        for queue in ids:
            self._looks[queue] = _LOOKS
        queues = await self._changed(list(self._looks))
        for queue, left in list(self._looks.items()):
            if left <= 1:
                del self._looks[queue]
            else:
                self._looks[queue] = left - 1
        jobs = {queue: some for queue, some in ids.items() if some}
        return {"queues": queues, "jobs_changed": jobs} if queues or jobs else None

    async def _changed(self, names: list[str]) -> dict[str, dict[str, Any]]:
        """Those that stand otherwise than was last told."""
        if not names:
            return {}
        found = await self._standing.brief(names, tenant=self._changes.wanted.tenant)
        changed = {queue: stand for queue, stand in found.items() if self._shown.get(queue) != stand}
        self._shown |= changed
        return changed
