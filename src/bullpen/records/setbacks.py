"""Queues that are read one after the other, where one that cannot be read must not hold up the rest."""

from bullpen.clock import Clock
from bullpen.scheduling.pauses import Pauses

_FIRST_S, _LONGEST_S = 1.0, 60.0


class Setbacks:
    """Which queues are left alone for now, each for longer the more often it went wrong there."""

    def __init__(self, clock: Clock) -> None:
        self._clock = clock
        self._pauses: dict[str, Pauses] = {}
        self._until_ms: dict[str, int] = {}

    def is_resting(self, queue: str) -> bool:
        until_ms = self._until_ms.get(queue)
        return until_ms is not None and self._clock.mono_ms() < until_ms

    def note(self, queue: str) -> None:
        """It went wrong there."""
        pauses = self._pauses.setdefault(queue, Pauses(_FIRST_S, _LONGEST_S))
        self._until_ms[queue] = self._clock.mono_ms() + round(1_000 * pauses.next_s())

    def end(self, queue: str) -> None:
        """It went well."""
        if self._until_ms.pop(queue, None) is not None:
            del self._pauses[queue]
