"""How each queue stands: mostly from the read model, so that who looks on costs the store next to nothing."""

import asyncio
from collections.abc import Callable, Mapping, Sequence
from typing import Any

import msgspec

from bullpen.errors import QueueMissing
from bullpen.job.state import State
from bullpen.records.model.minutes import MINUTE_MS, percentile_ms
from bullpen.records.model.queries import Glance
from bullpen.records.model.reading import Minute, Period
from bullpen.records.records import Records
from bullpen.stores.base import Store, WorkerInfo

SPARK_MINUTES = 30
_TIMES_MS = 5 * MINUTE_MS
"""Of this time percentiles are told."""
_FRESH_MS = 1_000
_RECENT_MS = 200
_TENANTS = 1_000
_SHARES = {"p50": 0.5, "p95": 0.95, "p99": 0.99}

Sees = Callable[[str], bool]
"""Whether somebody sees the queue of this name."""


class Seen(msgspec.Struct, frozen=True):
    """What only the store knows of a queue."""

    at_mono_ms: int
    paused: bool
    oldest_ms: int | None
    """Since when the next job in line could have run."""


class QueueStand(msgspec.Struct, frozen=True, kw_only=True):
    """A queue as the lists show it."""

    name: str
    paused: bool
    counts: dict[str, int]
    oldest_waiting_ms: int | None
    rates: dict[str, float]
    wait_ms: dict[str, int | None]
    run_ms: dict[str, int | None]
    spark: tuple[dict[str, int], ...]
    behind_ms: int | None
    is_scanning: bool


class Standing:
    """Looks at queues; asks the store about each at most once a second, however many ask."""

    def __init__(self, store: Store, records: Records) -> None:
        self._store = store
        self._records = records
        self._seen: dict[str, Seen] = {}
        self._counts: dict[str | None, tuple[int, Mapping[str, Mapping[State, int]]]] = {}
        """By tenant: when they were counted, and what came of it."""
        self._workers: Sequence[WorkerInfo] = ()
        self._workers_ms: int | None = None

    async def names(self) -> Sequence[str]:
        """Of all queues that the read model knows."""
        return list(await self._records.jobs.lag())

    async def queues(self, *, sees: Sees = lambda _: True, tenant: str | None = None) -> list[QueueStand]:
        """All queues that are seen, by name; in all or of a tenant."""
        glance = await self._records.jobs.glance(self._period(), tenant=tenant)
        names = sorted(filter(sees, glance.lag))
        seen = await asyncio.gather(*[self._look(name) for name in names])
        return [
            self._stand(name, one, glance, is_own=tenant is not None) for name, one in zip(names, seen, strict=True)
        ]

    async def queue(self, name: str, *, tenant: str | None = None) -> QueueStand:
        """One of them, also if the read model does not know it yet."""
        glance = await self._records.jobs.glance(self._period(), queue=name, tenant=tenant)
        return self._stand(name, await self._look(name), glance, is_own=tenant is not None)

    def _period(self) -> Period:
        now_ms = self._store.clock.now_ms()
        begin_ms = now_ms - now_ms % MINUTE_MS - (SPARK_MINUTES - 1) * MINUTE_MS
        return Period(since_ms=begin_ms, until_ms=now_ms + 1, times_ms=now_ms - _TIMES_MS)

    async def workers(self) -> Sequence[WorkerInfo]:
        """Those that beat lately."""
        mono_ms = self._store.clock.mono_ms()
        if self._workers_ms is None or mono_ms - self._workers_ms >= _FRESH_MS:
            self._workers = await self._store.workers()
            self._workers_ms = mono_ms
        return self._workers

    async def brief(self, names: Sequence[str], *, tenant: str | None = None) -> dict[str, dict[str, Any]]:
        """Counts and pauses of these queues, for many who ask again and again."""
        counts = await self._recent_counts(tenant)
        return {
            name: {
                "counts": counts_of(counts.get(name, {})),
                "paused": (self._seen.get(name) or await self._look(name)).paused,
            }
            for name in names
        }

    async def _recent_counts(self, tenant: str | None) -> Mapping[str, Mapping[State, int]]:
        mono_ms = self._store.clock.mono_ms()
        known = self._counts.get(tenant)
        if known is None or mono_ms - known[0] >= _RECENT_MS:
            if len(self._counts) >= _TENANTS:
                self._counts.clear()
            known = self._counts[tenant] = mono_ms, await self._records.jobs.counts(tenant=tenant)
        return known[1]

    def forget(self, queue: str) -> None:
        """Something was done to it: look anew."""
        self._seen.pop(queue, None)

    async def _look(self, queue: str) -> Seen:
        mono_ms = self._store.clock.mono_ms()
        known = self._seen.get(queue)
        if known is not None and mono_ms - known.at_mono_ms < _FRESH_MS:
            return known
        try:
            paused = (await self._store.counts(queue)).paused
            oldest_ms = await self._store.oldest_waiting_ms(queue)
        except QueueMissing:
            paused, oldest_ms = False, None  # removed; the read model will know soon
        self._seen[queue] = seen = Seen(mono_ms, paused, oldest_ms)
        return seen

    def _stand(self, name: str, seen: Seen, glance: Glance, *, is_own: bool) -> QueueStand:
        now_ms = self._store.clock.now_ms()
        lag, minutes = glance.lag.get(name), glance.minutes.get(name, ())
        # Whose job waits longest is nobody else's business.
        oldest_ms = None if seen.oldest_ms is None or is_own else max(0, now_ms - seen.oldest_ms)
        recent = [minute for minute in minutes if minute.minute_ms > now_ms - _TIMES_MS]
        return QueueStand(
            name=name,
            paused=seen.paused,
            counts=counts_of(glance.counts.get(name, {})),
            oldest_waiting_ms=oldest_ms,
            rates=rates_of(minutes, now_ms),
            wait_ms=percentiles_of([minute.wait for minute in recent]),
            run_ms=percentiles_of([minute.processing for minute in recent]),
            spark=tuple(_spark(minute) for minute in minutes),
            behind_ms=None if lag is None else lag.behind_ms,
            is_scanning=lag is None or lag.is_scanning,
        )


def counts_of(counts: Mapping[State, int]) -> dict[str, int]:
    """All states by the names that the API has for them."""
    return {state.value.replace("-", "_"): counts.get(state, 0) for state in State}


def rates_of(minutes: Sequence[Minute], now_ms: int) -> dict[str, float]:
    """Of the last sixty seconds: this minute so far, and the part of the one before that lies within them."""
    this_ms = now_ms - now_ms % MINUTE_MS
    share = 1 - (now_ms - this_ms) / MINUTE_MS
    weights = {this_ms: 1.0, this_ms - MINUTE_MS: share}
    return {
        f"{what}_per_s": round(
            sum(getattr(minute, what) * weights.get(minute.minute_ms, 0) for minute in minutes) / 60, 3
        )
        for what in ("added", "completed", "failed")
    }


def percentiles_of(histograms: Sequence[Sequence[int]]) -> dict[str, int | None]:
    """Of several minutes together."""
    summed = [sum(column) for column in zip(*histograms, strict=True)]
    return {name: percentile_ms(summed, share) for name, share in _SHARES.items()}


def _spark(minute: Minute) -> dict[str, int]:
    return {
        "minute_ms": minute.minute_ms,
        "added": minute.added,
        "completed": minute.completed,
        "failed": minute.failed,
    }
