"""Claims that were asked for and whose answer is not here.

Their leases begin at the store, and nobody renews what nobody knows of. While the event loop is blocked, the lease
thread hands such claims back before they run out; an answer that the loop sees too late starts nothing.
"""

from collections.abc import Sequence

from bullpen.clock import Clock


class Unanswered:
    """Kept by the worker's event loop; the lease thread looks through it."""

    def __init__(self, clock: Clock, lease_ms: int) -> None:
        self._clock = clock
        self._patience_ms = lease_ms // 2
        self._late_after_ms: dict[str, int] = {}

    def ask(self, request: str, *, within_ms: int = 0) -> None:
        """This request claims at the store now, or at any time within that."""
        self._late_after_ms[request] = self._clock.mono_ms() + within_ms + self._patience_ms

    def take(self, request: str) -> bool:
        """It is answered; whether its claims may start."""
        # Taken out before the look at the clock: who sees it as late after that, in the other thread, was not first.
        late_after_ms = self._late_after_ms.pop(request, None)
        return late_after_ms is not None and self._clock.mono_ms() <= late_after_ms

    def handed_back(self, request: str) -> None:
        self._late_after_ms.pop(request, None)

    def all(self) -> Sequence[str]:
        return tuple(self._late_after_ms)

    def late(self) -> Sequence[str]:
        now_ms = self._clock.mono_ms()
        return [request for request, after_ms in tuple(self._late_after_ms.items()) if now_ms > after_ms]
