"""The contract of a store: every verb, with its promise.

A store speaks in life-cycle verbs and typed values; no key, SQL, tuple or code crosses it.
`bullpen.testing.conformance` has a test for each promise, and runs on any store.

**Batches.** Hot verbs take many and answer one by one, in the order asked. A batch is atomic
as a unit: after a crash either all of it happened or nothing. A settlement that is refused
(its lease is lost) does not hinder the others.

**Requests.** A lost answer is normal: the caller cannot know whether its call took effect.
Every mutating hot verb carries a `request`, any unique text. The same text again within the
lease time (a minute at least) does nothing and gets the first answer again, with those of its
jobs that are still held under it.

**Leases.** A claim gives a lease with a token and an epoch. The store refuses whoever does
not hold the current token. A lease that is not renewed in time stands until `rescue` takes the
job away.

**Time** is the store's: its `clock`, in wall milliseconds.

**Data**, results and progress are JSON in UTF-8, as bytes.
"""

from typing import Protocol

from bullpen.clock import Clock
from bullpen.stores.answers import (
    FOREVER_MS,
    FROM_START,
    ID_MEMORY_MS,
    MAX_EVENTS,
    MAX_SIGNALS,
    REQUEST_MEMORY_MS,
    Added,
    AddOutcome,
    Cancellation,
    Child,
    ChildPage,
    ChildState,
    Claimed,
    Counts,
    Delivery,
    EventPage,
    Exchanged,
    JobPage,
    LogPage,
    Notice,
    Renewal,
    Rescued,
    ScheduleOutcome,
    SettleOutcome,
    StoreFacts,
    TickStart,
    WorkerInfo,
    WorkerState,
)
from bullpen.stores.verbs.coordinating import Coordinating
from bullpen.stores.verbs.journaling import Journaling
from bullpen.stores.verbs.looking import Looking
from bullpen.stores.verbs.moving import Moving
from bullpen.stores.verbs.steering import Steering
from bullpen.stores.verbs.working import Working

__all__ = [
    "FOREVER_MS",
    "FROM_START",
    "ID_MEMORY_MS",
    "MAX_EVENTS",
    "MAX_SIGNALS",
    "REQUEST_MEMORY_MS",
    "AddOutcome",
    "Added",
    "Cancellation",
    "Child",
    "ChildPage",
    "ChildState",
    "Claimed",
    "Counts",
    "Delivery",
    "EventPage",
    "Exchanged",
    "JobPage",
    "LogPage",
    "Notice",
    "Renewal",
    "Rescued",
    "ScheduleOutcome",
    "SettleOutcome",
    "Store",
    "StoreFacts",
    "TickStart",
    "WorkerInfo",
    "WorkerState",
]


class Store(Working, Steering, Journaling, Coordinating, Looking, Moving, Protocol):
    """The place where jobs are kept: what every store does, and what it promises."""

    @property
    def facts(self) -> StoreFacts: ...

    @property
    def clock(self) -> Clock:
        """The time that it goes by."""

    @property
    def place(self) -> str:
        """Where it is, fit to be shown: no password. The same for all stores on one place."""

    async def open(self) -> None:
        """Make ready for use; creates what is missing, migrates what is older, refuses what is newer."""

    async def close(self) -> None:
        """Let go of everything; safe to call twice. What was answered stays."""

    def another(self) -> "Store":
        """An unopened store on the same place, for another thread's event loop."""
