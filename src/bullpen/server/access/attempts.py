"""Counting wrong passwords, keys and tokens, so that they cannot be tried one after the other."""

import hashlib
from collections import OrderedDict, deque
from collections.abc import Mapping
from typing import NamedTuple

from bullpen.clock import Clock
from bullpen.server.problems import Refused

_WINDOW_MS = 300_000
_MORE = 10
_KNOWN = 10_000


class Attempt(NamedTuple):
    """One that was counted before anybody knows how it ends."""

    whose: tuple[str, ...]
    at_ms: int


class _Counts:
    """How many there were in the last five minutes. With too many that are counted, the oldest are forgotten."""

    def __init__(self, clock: Clock) -> None:
        self._clock = clock
        self._times: OrderedDict[str, deque[int]] = OrderedDict()

    def check(self, limits: Mapping[str, int], detail: str) -> None:
        """Refused if one of these has had enough for now."""
        now_ms = self._clock.mono_ms()
        for who, limit in limits.items():
            times = self._times.get(who, deque())
            while times and now_ms - times[0] >= _WINDOW_MS:
                times.popleft()
            if len(times) >= limit:
                wait_s = max(1, (times[0] + _WINDOW_MS - now_ms) // 1000)
                raise Refused("too-many-attempts", detail, headers={"Retry-After": str(wait_s)})

    def add(self, *whose: str) -> Attempt:
        now_ms = self._clock.mono_ms()
        for who in whose:
            self._times.setdefault(who, deque()).append(now_ms)
            self._times.move_to_end(who)
        while len(self._times) > _KNOWN:
            self._times.popitem(last=False)
        return Attempt(whose, now_ms)

    def take_back(self, attempt: Attempt) -> None:
        for who in attempt.whose:
            times = self._times.get(who, deque())
            if attempt.at_ms in times:
                times.remove(attempt.at_ms)


class Attempts:
    """Passwords: so many in five minutes for a name from one address; ten times that for a name, and for an address.

    Otherwise anyone could keep a person out from anywhere, or all who come through one proxy. An attempt counts from
    its beginning: a password takes its time, in which others could be tried.
    """

    def __init__(self, clock: Clock, limit: int) -> None:
        self._counts = _Counts(clock)
        self._limit = limit

    def begin(self, name: str, address: str) -> Attempt:
        """Refused if they have had enough for now."""
        limits = {
            f"{address} {name}": self._limit,
            f"name {name}": self._limit * _MORE,
            f"address {address}": self._limit * _MORE,
        }
        self._counts.check(limits, "too many wrong passwords; try again later")
        return self._counts.add(*limits)

    def take_back(self, attempt: Attempt) -> None:
        """It was the right password, or nobody could tell. Others that were wrong still count."""
        self._counts.take_back(attempt)


class Bearers:
    """Keys and tokens: so many wrong ones in five minutes from one address.

    What was good a while ago is looked at all the same: who else comes from that address has done nothing. Nor is one
    counted that has expired or is revoked: a client that goes on with it would lock out all others behind its proxy.
    """

    def __init__(self, clock: Clock, limit: int) -> None:
        self._counts = _Counts(clock)
        self._limit = limit * _MORE
        self._good: OrderedDict[bytes, None] = OrderedDict()

    def check(self, credentials: str, address: str) -> None:
        """Refused if there were enough wrong ones from there for now."""
        if _digest(credentials) not in self._good:
            self._counts.check({address: self._limit}, "too many wrong keys or tokens from here; try again later")

    def note_good(self, credentials: str) -> None:
        digest = _digest(credentials)
        self._good[digest] = None
        self._good.move_to_end(digest)
        while len(self._good) > _KNOWN:
            self._good.popitem(last=False)

    def note_wrong(self, credentials: str, address: str) -> None:
        self._good.pop(_digest(credentials), None)
        self._counts.add(address)


def _digest(credentials: str) -> bytes:
    return hashlib.sha256(credentials.encode(errors="surrogatepass")).digest()
