"""Whether those who hear a stream may still hear it: asked again and again, as long as it lasts."""

import asyncio
import random
from weakref import WeakValueDictionary

import msgspec
from starlette.requests import HTTPConnection

from bullpen.clock import Clock
from bullpen.errors import BullpenError
from bullpen.server.access.caller import Caller
from bullpen.server.access.identifying import COOKIE, Access
from bullpen.server.problems import Refused

ASK_MS = 14_000
FRESH_MS = 1_000
"""An answer is good that long for all who have the same credentials: together, 15 seconds at most."""


class Watches:
    """All streams of a server."""

    def __init__(self, access: Access, clock: Clock) -> None:
        self._access = access
        self._clock = clock
        self._answers: WeakValueDictionary[_Credentials, _Answer] = WeakValueDictionary()
        """As long as there is a stream with these credentials."""

    def watch(self, connection: HTTPConnection, caller: Caller) -> "Watch":
        credentials = _Credentials(connection.headers.get("authorization"), connection.cookies.get(COOKIE))
        answer = self._answers.get(credentials)
        if answer is None:
            answer = self._answers[credentials] = _Answer(self._access, self._clock)
        return Watch(answer, self._clock, connection, caller)


class _Credentials(msgspec.Struct, frozen=True):
    authorization: str | None
    cookie: str | None


class _Answer:
    """Who has some credentials now. What else a connection tells, as whence it came, was checked as it began."""

    def __init__(self, access: Access, clock: Clock) -> None:
        self._access = access
        self._clock = clock
        self._caller: Caller | None = None
        self._at_ms: int | None = None
        self._asking = asyncio.Lock()

    async def caller(self, connection: HTTPConnection) -> Caller | None:
        """None: they are good no more."""
        async with self._asking:  # one asks for all who wait
            now_ms = self._clock.mono_ms()
            if self._at_ms is None or now_ms - self._at_ms >= FRESH_MS:
                try:
                    self._caller = await self._access.identify(connection)
                except Refused:
                    self._caller = None
                self._at_ms = now_ms
            return self._caller


class Watch:
    """One stream."""

    def __init__(self, answer: _Answer, clock: Clock, connection: HTTPConnection, caller: Caller) -> None:
        self._answer = answer
        self._clock = clock
        self._connection = connection
        self._caller = caller
        # Many that began together, as after a restart, must not all ask together: nothing else would be done then.
        self._asked_ms = clock.mono_ms() - random.randrange(ASK_MS)  # noqa: S311 - nothing secret

    async def may_go_on(self) -> bool:
        now_ms = self._clock.mono_ms()
        if now_ms - self._asked_ms < ASK_MS:
            return True
        self._asked_ms = now_ms
        try:
            return await self._answer.caller(self._connection) == self._caller
        except BullpenError:
            return True  # the records are away for a moment: that is no reason to send everybody away
