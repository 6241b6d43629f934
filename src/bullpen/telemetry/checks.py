"""Is all well? Four checks, each healthy, degraded or unhealthy; the worst of them is the answer."""

import asyncio
import contextlib
import dataclasses
import re
from collections.abc import Iterable, Mapping, Sequence
from enum import StrEnum
from typing import Any, Self

import msgspec

from bullpen.clock import SYSTEM_CLOCK, Clock
from bullpen.errors import BadOption, BullpenError, QueueMissing
from bullpen.job.options import Duration, to_ms
from bullpen.settings import told
from bullpen.stores.base import Counts, Store, WorkerInfo, WorkerState


class Status(StrEnum):
    """How well it is, from best to worst."""

    HEALTHY = "healthy"
    DEGRADED = "degraded"
    UNHEALTHY = "unhealthy"


_ORDER = list(Status)
ENVIRONMENT = "BULLPEN_HEALTH_"
_WHOLE = frozenset({"dead_letters_degraded", "dead_letters_unhealthy", "min_workers"})
_SECONDS = re.compile(r"[0-9]+\.[0-9]+")
LOOK_S = 3.0
"""Whoever asks is answered within this time, also by a store that hangs."""


@dataclasses.dataclass(frozen=True, slots=True, kw_only=True)
class HealthOptions:
    """From where on something is not well."""

    dead_letters_degraded: int = 0
    """With more failed jobs than this it is degraded."""
    dead_letters_unhealthy: int = 100
    """With that many it is unhealthy."""
    oldest_waiting_degraded: Duration = 300
    """A job that waits longer than this, though it could run, makes it degraded."""
    oldest_waiting_unhealthy: Duration = 3600
    """The same for unhealthy."""
    min_workers: int = 1
    """With fewer workers it is degraded, with none unhealthy."""
    store_slow: Duration = 0.1
    """A store that takes longer to answer is degraded."""
    ready_within: Duration = 5
    """A worker whose event loop is held up for longer is not ready."""
    live_within: Duration = 60
    """A worker whose event loop is held up for longer is not alive: let it be replaced."""

    @classmethod
    def from_environment(cls) -> Self:
        """What `BULLPEN_HEALTH_` and an option's name in capitals say, else the defaults; BadOption."""
        given: dict[str, Any] = {}
        for field in dataclasses.fields(cls):
            variable = f"{ENVIRONMENT}{field.name.upper()}"
            if text := (told(variable) or "").strip():
                given[field.name] = _number(variable, text, whole=field.name in _WHOLE)
        return cls(**given)

    def __post_init__(self) -> None:
        for field in dataclasses.fields(self):
            value = getattr(self, field.name)
            if field.name in _WHOLE:
                if isinstance(value, bool) or not isinstance(value, int) or value < 0:
                    raise BadOption(f"{field.name}: a whole number of 0 or more, not {value!r}")
            else:
                to_ms(field.name, value)


def _number(variable: str, text: str, *, whole: bool) -> float:
    if text.isascii() and text.isdecimal():
        return int(text)
    if not whole and _SECONDS.fullmatch(text):
        return float(text)
    raise BadOption(f"{variable}: {'a whole number of 0 or more' if whole else 'seconds'}, not {text!r}")


class Check(msgspec.Struct, frozen=True):
    status: Status
    details: dict[str, Any] = {}


class Health(msgspec.Struct, frozen=True):
    status: Status
    checks: dict[str, Check]


class QueueLook(msgspec.Struct, frozen=True):
    counts: Counts
    oldest_ms: int | None
    """For how long the next in line could have run."""


class Look(msgspec.Struct, frozen=True):
    """What the store says, at one moment."""

    queues: dict[str, QueueLook] = {}
    workers: tuple[WorkerInfo, ...] = ()
    took_ms: int = 0
    error: str = ""
    """Why it says nothing."""


async def look_at(store: Store, queues: Iterable[str], clock: Clock = SYSTEM_CLOCK) -> Look:
    """Ask the store what metrics and checks need of these queues; what goes wrong is part of the answer."""
    try:
        async with asyncio.timeout(LOOK_S):
            return await _look(store, queues, clock)
    except TimeoutError:
        return Look(error=f"no answer within {LOOK_S:g} s")
    except BullpenError as error:
        return Look(error=f"{type(error).__name__}: {error}")


async def _look(store: Store, names: Iterable[str], clock: Clock) -> Look:
    begun = clock.mono_ms()
    await store.open()
    workers = tuple(await store.workers())
    took_ms = clock.mono_ms() - begun
    queues = {}
    for name in names:
        with contextlib.suppress(QueueMissing):  # nothing was added yet
            since_ms = await store.oldest_waiting_ms(name)
            oldest_ms = None if since_ms is None else max(0, clock.now_ms() - since_ms)
            queues[name] = QueueLook(await store.counts(name), oldest_ms)
    return Look(queues, workers, took_ms)


def judge(look: Look, options: HealthOptions) -> Health:
    """All four checks."""
    checks = {"store": _store(look, options)}
    if not look.error:
        checks |= {
            "workers": _workers(look.workers, options),
            "queues": _queues(look.queues, options),
            "dead_letters": _dead_letters(look.queues, options),
        }
    return Health(worst(check.status for check in checks.values()), checks)


def worst(found: "Sequence[Status] | Any") -> Status:
    return max(found, key=_ORDER.index, default=Status.HEALTHY)


def _store(look: Look, options: HealthOptions) -> Check:
    if look.error:
        return Check(Status.UNHEALTHY, {"error": look.error})
    slow = look.took_ms > to_ms("store_slow", options.store_slow)
    return Check(Status.DEGRADED if slow else Status.HEALTHY, {"latency_ms": look.took_ms})


def _workers(workers: Sequence[WorkerInfo], options: HealthOptions) -> Check:
    count = sum(worker.state in (WorkerState.READY, WorkerState.PROCESSING) for worker in workers)
    status = Status.HEALTHY if count >= options.min_workers else Status.DEGRADED if count else Status.UNHEALTHY
    return Check(status, {"count": count, "expected": options.min_workers})


def _queues(queues: Mapping[str, QueueLook], options: HealthOptions) -> Check:
    ages = {name: look.oldest_ms for name, look in queues.items() if look.oldest_ms and not look.counts.paused}
    oldest_ms = max(ages.values(), default=None)
    status = _graded(
        oldest_ms or 0,
        to_ms("oldest_waiting_degraded", options.oldest_waiting_degraded) + 1,
        to_ms("oldest_waiting_unhealthy", options.oldest_waiting_unhealthy) + 1,
    )
    paused = sorted(name for name, look in queues.items() if look.counts.paused)
    queue = max(ages, key=lambda name: ages[name] or 0, default=None)
    return Check(
        status,
        {
            "count": len(queues),
            "oldest_waiting_seconds": None if oldest_ms is None else oldest_ms / 1000,
            "oldest_waiting_queue": queue,
            "paused": paused,
        },
    )


def _dead_letters(queues: Mapping[str, QueueLook], options: HealthOptions) -> Check:
    by_queue = {name: look.counts.failed for name, look in queues.items() if look.counts.failed}
    count = sum(by_queue.values())
    status = _graded(count, options.dead_letters_degraded + 1, options.dead_letters_unhealthy)
    return Check(status, {"count": count, "by_queue": by_queue})


def _graded(value: int, degraded_from: int, unhealthy_from: int) -> Status:
    if value >= unhealthy_from:
        return Status.UNHEALTHY
    return Status.DEGRADED if value >= degraded_from else Status.HEALTHY
