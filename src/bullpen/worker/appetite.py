"""How many jobs of which queues a worker wants now.

Each queue has slots of its own. With `shared` slots all queues draw on one number: the first
that is asked comes first, so the order in which they are asked is the order in which they are
served. It is the order given (strict), or that of their turns so far (weighted). A limiter
bounds how many start in a while, whatever is free.

Where several trips may be under way, none asks for more than its share of the slots: if one
took all of them, nothing would run while it travels.
"""

from collections.abc import Mapping

import msgspec

from bullpen.clock import Clock
from bullpen.job.limits import Rate
from bullpen.worker.options import WorkerOptions


class Wants(msgspec.Struct, frozen=True):
    queues: dict[str, int] = {}
    at_most: int | None = None
    """Of all queues together; earlier ones first."""

    def __bool__(self) -> bool:
        return bool(self.queues)


NOTHING = Wants()


class Appetite:
    def __init__(self, slots: Mapping[str, int], options: WorkerOptions, clock: Clock, *, trips: int = 1) -> None:
        self._free = dict(slots)
        self._shares = {queue: _share(count, trips) for queue, count in slots.items()}
        self._shared = options.shared
        self._share_of_shared = None if options.shared is None else _share(options.shared, trips)
        self._turns = None if options.weights is None else _Turns(slots, options.weights)
        self._limiter = None if options.limiter is None else _Limiter(options.limiter, clock)

    @property
    def share(self) -> int:
        """How many jobs one trip brings at most, so that the others have as many."""
        of_queues = sum(self._shares.values())
        return of_queues if self._share_of_shared is None else min(of_queues, self._share_of_shared)

    @property
    def queues(self) -> tuple[str, ...]:
        return tuple(self._free)

    def free_slot(self, queue: str) -> None:
        self._free[queue] += 1
        if self._shared is not None:
            self._shared += 1

    def wants(self) -> Wants:
        starts_left = None if self._limiter is None else self._limiter.left()
        bounds = [bound for bound in (self._shared, self._share_of_shared, starts_left) if bound is not None]
        at_most = min(bounds, default=None)
        if at_most is not None and at_most <= 0:
            return NOTHING
        order = self._free if self._turns is None else self._turns.order()
        free, shares = self._free, self._shares
        return Wants({queue: min(free[queue], shares[queue]) for queue in order if free[queue] > 0}, at_most)

    def closed_for_s(self) -> float | None:
        """How long until the limiter lets more start; None if it does not hold anything back."""
        return None if self._limiter is None else self._limiter.closed_for_s()

    def set_aside(self, wants: Wants) -> None:
        """What is asked for on one trip is not asked for on another."""
        self._change(wants, -1)

    def take_in(self, wants: Wants, got: Mapping[str, int]) -> bool:
        """The trip is over, and what it brought has taken its slots; whether there may be more."""
        self._change(wants, 1)
        for queue, jobs in got.items():
            self._free[queue] -= jobs
        brought = sum(got.values())
        if self._shared is not None:
            self._shared -= brought
        if self._limiter is not None:
            self._limiter.count(brought)
        if self._turns is not None:
            self._turns.count(wants, got)
        is_filled = wants.at_most is not None and brought >= wants.at_most
        return is_filled or all(got[queue] >= slots for queue, slots in wants.queues.items())

    def _change(self, wants: Wants, sign: int) -> None:
        for queue, slots in wants.queues.items():
            self._free[queue] += sign * slots
        if self._shared is not None and wants.at_most is not None:
            self._shared += sign * wants.at_most
        if self._limiter is not None and wants.at_most is not None:
            self._limiter.set_aside(-sign * wants.at_most)


def _share(slots: int, trips: int) -> int:
    return -(-slots // trips)


class _Turns:
    """Weighted order: who had less than its share so far is asked first."""

    def __init__(self, queues: Mapping[str, int], weights: Mapping[str, int]) -> None:
        self._weights = {queue: weights.get(queue, 1) for queue in queues}
        self._times = dict.fromkeys(queues, 0.0)

    def order(self) -> list[str]:
        return sorted(self._times, key=self._times.__getitem__)

    def count(self, wants: Wants, got: Mapping[str, int]) -> None:
        for queue, jobs in got.items():
            self._times[queue] += jobs / self._weights[queue]
        asked = list(wants.queues)
        if wants.at_most is not None and sum(got.values()) >= wants.at_most:
            # All was given: whoever stands behind the last that gave was not asked.
            asked = asked[: max(n for n, queue in enumerate(asked) if got[queue])]
        dry = {queue for queue in asked if got[queue] < wants.queues[queue]}
        busy = [time for queue, time in self._times.items() if queue not in dry]
        # Who has no jobs saves no turns up.
        present = min(busy, default=max(self._times.values()))
        for queue in dry:
            self._times[queue] = max(self._times[queue], present)


class _Limiter:
    """So many starts within a window, which begins with the first of them."""

    def __init__(self, rate: Rate, clock: Clock) -> None:
        self._rate = rate
        self._clock = clock
        self._until_ms = 0
        self._starts = 0
        self._aside = 0
        """Asked for and not brought yet."""

    def left(self) -> int:
        if self._clock.mono_ms() >= self._until_ms:
            self._starts = 0
        return self._rate.max - self._starts - self._aside

    def closed_for_s(self) -> float | None:
        self.left()
        if self._starts < self._rate.max:
            return None  # what is under way tells when it comes back
        return max(self._until_ms - self._clock.mono_ms(), 1) / 1000

    def set_aside(self, starts: int) -> None:
        self._aside += starts

    def count(self, starts: int) -> None:
        if starts and self._starts == 0:
            self._until_ms = self._clock.mono_ms() + self._rate.ms
        self._starts += starts
