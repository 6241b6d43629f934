"""A watch at the one verb by which a worker claims and settles, on any store; the product knows nothing of it."""

import os
import time
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Any, NamedTuple

from bullpen import Worker
from bullpen.job.record import ClaimedJob
from bullpen.job.verdicts import Settlement, Verdict
from bullpen.stores.base import Exchanged, SettleOutcome, Store


class Watch:
    """The trips of one worker: when the first began, when the last that settled something ended, how many."""

    def __init__(self, *, until: int | None, on_ready: Callable[[], None], on_end: Callable[[], None]) -> None:
        self._until = until
        self._on_ready: Callable[[], None] | None = on_ready
        self._on_end = on_end
        self.on_settled: Callable[[Sequence[Settlement]], None] = lambda _: None
        self.first_ns = 0
        self.last_ns = 0
        self.settled = 0
        self.trips = 0

    def left(self, settlements: Sequence[Settlement]) -> None:
        del settlements
        self.first_ns = self.first_ns or time.monotonic_ns()
        self.trips += 1

    def came_back(self, settlements: Sequence[Settlement], answer: Exchanged) -> None:
        if self._on_ready is not None:
            self._on_ready()
            self._on_ready = None
        if answer.settled:
            self.last_ns = time.monotonic_ns()
            self.settled += answer.settled.count(SettleOutcome.SETTLED)
            self.on_settled(settlements)
            if self.settled == self._until:
                self._on_end()


class Departures(Watch):
    """Also how long each verdict waited before it left, and how much of that was for company.

    A verdict that comes while every lane travels waits for one to come back. Whatever it waits
    longer, with a lane there that could carry it, is for company; but for the time in which the
    machine gave this thread no core, which is told apart.
    """

    def __init__(self, *, lanes: int, **rest: Any) -> None:
        super().__init__(**rest)
        self._lanes = lanes
        self._travelling = 0
        self._lane_since = Moment(0, 0)
        self._sent: dict[str, Moment] = {}
        self._without_core = _Delays()
        self.waits_ns: list[int] = []
        self.for_company_ns: list[int] = []

    def listen(self, worker: Worker) -> None:
        finish = worker._exchanger.finish

        def noted(claimed: ClaimedJob, verdict: Verdict | None) -> None:
            self._sent[claimed.lease.token] = self._without_core.now()
            finish(claimed, verdict)

        worker._exchanger.finish = noted  # type: ignore[method-assign]  # on this instance only

    def left(self, settlements: Sequence[Settlement]) -> None:
        super().left(settlements)
        now = self._without_core.now()
        for settlement in settlements:
            sent = self._sent.pop(settlement.lease.token)
            could_leave = max(sent, self._lane_since)
            self.waits_ns.append(now.at_ns - sent.at_ns)
            self.for_company_ns.append(now.at_ns - could_leave.at_ns - (now.coreless_ns - could_leave.coreless_ns))
        self._travelling += 1

    def came_back(self, settlements: Sequence[Settlement], answer: Exchanged) -> None:
        if self._travelling == self._lanes:
            self._lane_since = self._without_core.now()
        self._travelling -= 1
        super().came_back(settlements, answer)


class Moment(NamedTuple):
    at_ns: int
    coreless_ns: int
    """For how long until then the thread was ready to run and had no core."""


class _Delays:
    """Moments of the thread that makes this, where the system tells what it kept it waiting."""

    def __init__(self) -> None:
        told = Path("/proc/thread-self/schedstat")
        self._file = os.open(told, os.O_RDONLY | os.O_CLOEXEC) if told.exists() else None

    def now(self) -> Moment:
        coreless_ns = 0 if self._file is None else int(os.pread(self._file, 64, 0).split()[1])
        return Moment(time.monotonic_ns(), coreless_ns)


def watched(store: Store, watch: Watch) -> Store:
    """The store, and each that is made of it, with the watch."""
    exchange, another = store.exchange, store.another

    async def watched_exchange(settlements: Sequence[Settlement], wants: Mapping[str, int], **rest: Any) -> Exchanged:
        watch.left(settlements)
        answer = await exchange(settlements, wants, **rest)
        watch.came_back(settlements, answer)
        return answer

    store.exchange = watched_exchange  # type: ignore[method-assign]  # on this instance only
    store.another = lambda: watched(another(), watch)  # type: ignore[method-assign]
    return store


def percentiles(samples: Sequence[float], *shares: float) -> dict[str, float]:
    """Of all samples; `p100` is the largest."""
    ordered = sorted(samples)
    last = len(ordered) - 1
    return {f"p{share:g}": ordered[min(last, int(len(ordered) * share / 100))] for share in shares}
