"""Counting wrong passwords, so that they cannot be tried one after the other."""

from collections import OrderedDict, deque

from bullpen.clock import Clock
from bullpen.server.problems import Refused

_WINDOW_MS = 300_000
_MORE = 10
_KNOWN = 10_000


class Attempts:
    """So many in five minutes for a name from one address; ten times that for a name, and for an address.

    Otherwise anyone could keep a person out from anywhere, or all who come through one proxy. With too
    many names and addresses the oldest are forgotten.
    """

    def __init__(self, clock: Clock, limit: int) -> None:
        self._clock = clock
        self._limit = limit
        self._failed: OrderedDict[str, deque[int]] = OrderedDict()

    def check(self, name: str, address: str) -> None:
        """Refused if they have had enough for now."""
        now_ms = self._clock.mono_ms()
        for who, limit in self._counted(name, address).items():
            failed = self._failed.get(who, deque())
            while failed and now_ms - failed[0] >= _WINDOW_MS:
                failed.popleft()
            if len(failed) >= limit:
                wait_s = max(1, (failed[0] + _WINDOW_MS - now_ms) // 1000)
                raise Refused(
                    "too-many-attempts",
                    "too many wrong passwords; try again later",
                    headers={"Retry-After": str(wait_s)},
                )

    def note_failure(self, name: str, address: str) -> None:
        for who in self._counted(name, address):
            self._failed.setdefault(who, deque()).append(self._clock.mono_ms())
            self._failed.move_to_end(who)
        while len(self._failed) > _KNOWN:
            self._failed.popitem(last=False)

    def forget(self, name: str, address: str) -> None:
        """They knew the password after all."""
        for who in self._counted(name, address):
            self._failed.pop(who, None)

    def _counted(self, name: str, address: str) -> dict[str, int]:
        """By what is counted, how many are allowed."""
        return {
            f"{address} {name}": self._limit,
            f"name {name}": self._limit * _MORE,
            f"address {address}": self._limit * _MORE,
        }
