"""Connections on which scripts travel: many calls under way on each, answered in the order in which they came.

A driver's connection carries one call at a time and is taken from a pool for it, which costs more
than a small script does. Here a call is one write and one future. Whoever gives a call up leaves its
place in the order: the answer is read and dropped, and the connection serves the others.
"""

import asyncio
import collections
import contextlib
import socket
import ssl
from collections.abc import Sequence
from typing import Any, cast

import hiredis
import redis.exceptions
from redis._parsers.base import BaseParser  # knows which error a server's word stands for

from bullpen.stores.redis.address import Address, Node

Words = str | bytes

_CONNECT_S = 5.0
_MOST_SHARED = 4
"""More would not be faster: the server carries out one script at a time."""
_LOST = "the connection was lost"


class Wire(asyncio.Protocol):
    """One connection. Raises redis-py's errors; one that failed in any way is closed."""

    def __init__(self, answer_s: float) -> None:
        self._answer_s = answer_s
        self._loop = asyncio.get_running_loop()
        self._reader = hiredis.Reader(protocolError=redis.exceptions.InvalidResponse, replyError=BaseParser.parse_error)
        self._pending: collections.deque[tuple[asyncio.Future[Any], float]] = collections.deque()
        """Who waits for which answer, and since when."""
        self._transport: asyncio.Transport | None = None
        self._timer: asyncio.TimerHandle | None = None
        self._gone = self._loop.create_future()

    @property
    def under_way(self) -> int:
        """How many calls it carries."""
        return len(self._pending)

    @property
    def is_open(self) -> bool:
        return self._transport is not None and not self._gone.done() and not self._transport.is_closing()

    async def call(self, words: Sequence[Words]) -> Any:
        (answer,) = self._send(words)
        return await answer

    async def call_in_a_row(self, *commands: Sequence[Words]) -> list[Any]:
        """Have these carried out one right after the other; the answers of all, or the first error."""
        answers = self._send(*commands)
        try:
            # With the last all are here; to gather them would take the loop another turn.
            with contextlib.suppress(redis.exceptions.RedisError, OSError):
                await answers[-1]
        except asyncio.CancelledError:
            for answer in answers:
                answer.cancel()
            raise
        for error in [answer.exception() for answer in answers]:
            if error is not None:
                raise error
        return [answer.result() for answer in answers]

    def _send(self, *commands: Sequence[Words]) -> list[asyncio.Future[Any]]:
        if self._transport is None or not self.is_open:
            raise redis.exceptions.ConnectionError(_LOST)
        packed = [hiredis.pack_command(tuple(words)) for words in commands]  # type: ignore[arg-type] # its stub means one word
        self._transport.write(packed[0] if len(packed) == 1 else b"".join(packed))
        answers = [self._loop.create_future() for _ in commands]
        now_s = self._loop.time()
        self._pending.extend((answer, now_s) for answer in answers)
        if self._timer is None:
            self._watch_in(self._answer_s)
        return answers

    async def close(self) -> None:
        """Have it end; it does so too if the wait for its end is given up."""
        self.abort()
        if self._transport is not None:
            await asyncio.wait([self._gone])

    def abort(self) -> None:
        if self._transport is not None:
            self._transport.abort()

    # ── called by the event loop ─────────────────────────────────────────────────────────

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        # Not asserted: those of uvloop are of no class of asyncio's.
        self._transport = cast(asyncio.Transport, transport)

    def data_received(self, data: bytes) -> None:
        try:
            self._reader.feed(data)
            while (answer := self._reader.gets()) is not False:
                self._answer(answer)
        except redis.exceptions.RedisError as error:
            self._fail(error)

    def connection_lost(self, error: Exception | None) -> None:
        self._fail(error if isinstance(error, OSError) else redis.exceptions.ConnectionError(_LOST))
        if not self._gone.done():
            self._gone.set_result(None)

    def _answer(self, answer: Any) -> None:
        waiting, _ = self._pending.popleft()
        if waiting.done():
            return  # given up
        if isinstance(answer, Exception):
            waiting.set_exception(answer)
        else:
            waiting.set_result(answer)

    def _fail(self, error: Exception) -> None:
        if self._timer is not None:
            self._timer.cancel()
        self.abort()
        while self._pending:
            waiting, _ = self._pending.popleft()
            if not waiting.done():
                waiting.set_exception(error)

    def _watch_in(self, seconds: float) -> None:
        self._timer = self._loop.call_later(seconds, self._look)

    def _look(self) -> None:
        """One look now and then at the oldest call, where a timer for each would cost more than most calls."""
        self._timer = None
        if not self._pending:
            return
        left = self._pending[0][1] + self._answer_s - self._loop.time()
        if left <= 0:
            self._fail(redis.exceptions.TimeoutError(f"no answer within {self._answer_s:g} s"))
        else:
            self._watch_in(left)


class Wires:
    """The wires to one node: a few that calls share, and one for each call that waits at the server."""

    def __init__(self, address: Address, node: Node | None, answer_s: float) -> None:
        self._address = address
        self._node = node
        self._answer_s = answer_s
        self._tls = tls_context(address)
        self._shared: list[Wire] = []
        self._opening = 0
        self._first = asyncio.Lock()
        self._rested: list[Wire] = []
        """Those on which nobody waits at present."""
        self._waiting: set[Wire] = set()
        self._is_closed = False

    async def call(self, words: Sequence[Words]) -> Any:
        """Run a command that is answered at once."""
        wire = self._least_busy() or await self._open_first()
        if wire.under_way and len(self._shared) + self._opening < _MOST_SHARED:
            wire = await self._open_shared()
        return await wire.call(words)

    async def block(self, *commands: Sequence[Words]) -> list[Any]:
        """Run a command that may wait at the server, and others right after it; given up, they end there too."""
        wire = self._rested.pop() if self._rested else await self._connect()
        self._waiting.add(wire)
        try:
            answers = await wire.call_in_a_row(*commands)
        except BaseException:
            await wire.close()
            raise
        finally:
            self._waiting.discard(wire)
        self._rested.append(wire)
        return answers

    async def close(self) -> None:
        self._is_closed = True
        wires = [*self._shared, *self._rested, *self._waiting]
        self._shared.clear()
        self._rested.clear()
        for wire in wires:
            wire.abort()  # all, before the first wait, which may be given up
        for wire in wires:
            await wire.close()

    def _least_busy(self) -> Wire | None:
        if not all(wire.is_open for wire in self._shared):
            self._shared = [wire for wire in self._shared if wire.is_open]
        return min(self._shared, key=lambda wire: wire.under_way, default=None)

    async def _open_first(self) -> Wire:
        async with self._first:  # one for all who wait
            return self._least_busy() or await self._open_shared()

    async def _open_shared(self) -> Wire:
        self._opening += 1
        try:
            wire = await self._connect()
        finally:
            self._opening -= 1
        self._shared.append(wire)
        return wire

    async def _connect(self) -> Wire:
        wire = await open_wire(self._address, self._node, self._answer_s, tls=self._tls)
        if self._is_closed:  # meanwhile: nobody else would end this one
            await wire.close()
            raise redis.exceptions.ConnectionError(_LOST)
        return wire


async def open_wire(
    address: Address, node: Node | None, answer_s: float, *, tls: ssl.SSLContext | None, name: str | None = None
) -> Wire:
    """Connect and greet; the server lists the connection under the name, if one is given."""
    loop = asyncio.get_running_loop()
    async with asyncio.timeout(_CONNECT_S):
        if node is None:
            _, wire = await loop.create_unix_connection(lambda: Wire(answer_s), address.socket)
        else:
            transport, wire = await loop.create_connection(lambda: Wire(answer_s), node.host, node.port, ssl=tls)
            transport.get_extra_info("socket").setsockopt(socket.SOL_SOCKET, socket.SO_KEEPALIVE, 1)
        try:
            for words in _greeting(address, name):
                await wire.call(words)
        except BaseException:
            await wire.close()
            raise
    return wire


def _greeting(address: Address, name: str | None) -> list[Sequence[Words]]:
    """What is said on a new connection before anything else."""
    login = address.login
    words: list[Sequence[Words]] = []
    if login.username:
        words.append(("AUTH", login.username, login.password or ""))
    elif login.password:
        words.append(("AUTH", login.password))
    if address.db:
        words.append(("SELECT", str(address.db)))
    if name is not None:
        words.append(("CLIENT", "SETNAME", name))
    return words


def tls_context(address: Address) -> ssl.SSLContext | None:
    tls = address.tls
    if tls is None:
        return None
    context = ssl.create_default_context(cafile=tls.ca)
    if tls.cert is not None:
        context.load_cert_chain(tls.cert, tls.key)
    return context
