"""The one server that has our keys: found, held, and found anew when it was lost.

A `Place` knows where to look: an address, the sentinels, or the nodes of a cluster. What was
found is a `Link`, the connections to one node. A link that failed in any way is not used
again: the next call looks anew. So a restart, a failover and a connection that is open on our
side only all end the same way.
"""

import asyncio
import contextlib
from collections.abc import AsyncIterator, Awaitable, Callable, Coroutine, Sequence
from enum import StrEnum
from typing import Any, Protocol

import redis.asyncio
import redis.exceptions
from redis.asyncio.retry import Retry
from redis.backoff import NoBackoff

from bullpen.errors import StoreUnavailable
from bullpen.stores.redis.address import Address, Kind, Login, Node
from bullpen.stores.redis.wire import Wires, Words

ANSWER_S = 8.0
"""Well below a third of the usual lease, so that a renewal on a dead connection is made again in time."""
_CONNECT_S = 5.0
_LOOK_S = 2.0
"""Who is asked where the server is has less time: there are others to ask."""
_MOST_MOVES = 5
_MOST_CONNECTIONS = 10_000
"""As many as a server takes by default: a producer of a thousand at once is not refused by its own side."""

FAILURES = (redis.exceptions.ConnectionError, redis.exceptions.TimeoutError, OSError)
"""What a server that cannot be reached looks like."""


class Place(Protocol):
    @property
    def watch_every_s(self) -> float | None:
        """How often to look whether the server is still there; None if it says so itself, by an error."""

    async def locate(self) -> Node | None:
        """Where the server is now; None is the socket of the address. Raises one of FAILURES."""


class OnePlace:
    """It is where the address says."""

    watch_every_s = None

    def __init__(self, address: Address) -> None:
        self._node = address.nodes[0] if address.nodes else None

    async def locate(self) -> Node | None:
        return self._node


class Way(StrEnum):
    """How a command travels."""

    SHARED = "shared"
    """With others on one connection, for scripts; the answer as the server gives it."""
    BLOCKING = "blocking"
    """Alone, since it may wait at the server, with what comes right after it; the answers as the server gives them."""
    DRIVER = "driver"
    """By the driver, which makes Python values of the answer."""


class Link:
    """The connections to one node; retired, it ends with its last user."""

    def __init__(self, address: Address, node: Node | None) -> None:
        self.node = node
        self._redis = _make_redis(address, node)
        self._wires = Wires(address, node, ANSWER_S)
        self._users = 0
        self._is_retired = False

    async def execute(self, way: Way, words: Sequence[Words], *then: Sequence[Words]) -> Any:
        self._users += 1
        try:
            match way:
                case Way.SHARED:
                    return await self._wires.call(words)
                case Way.BLOCKING:
                    return await self._wires.block(words, *then)
                case Way.DRIVER:
                    return await self._redis.execute_command(*words)  # type: ignore[no-untyped-call] # redis-py's own
        finally:
            self._users -= 1
            if self._is_retired and not self._users:
                await self.end()

    async def retire(self) -> None:
        self._is_retired = True
        if not self._users:
            await self.end()

    async def end(self) -> None:
        await self._wires.close()
        # What is broken may also fail to close.
        with contextlib.suppress(*FAILURES):
            await self._redis.aclose()


class Client:
    """Runs commands where our keys are. Raises redis-py's errors, and StoreUnavailable for endless moves."""

    def __init__(self, address: Address, place: Place) -> None:
        self._address = address
        self._place = place
        self._link: Link | None = None
        self._looking = asyncio.Lock()
        self._farewells: set[asyncio.Task[None]] = set()
        """Links that are being closed; owned by this client until then."""
        self._watch: asyncio.Task[None] | None = None
        """Of the present link; owned by this client."""

    @property
    def node(self) -> Node | None:
        """The node that we speak to; None for a socket, or if none is found yet."""
        return self._link.node if self._link else None

    async def execute(self, words: Sequence[Words], *then: Sequence[Words], way: Way = Way.DRIVER) -> Any:
        for _ in range(_MOST_MOVES):
            link = self._link or await self._reach()
            try:
                return await link.execute(way, words, *then)
            except (*FAILURES, redis.exceptions.ReadOnlyError):
                # A server that became a replica keeps its connections: only a new one finds its successor.
                self._leave(link)
                raise
            except redis.exceptions.ResponseError as error:
                if self._address.kind != Kind.CLUSTER or not is_moved(error):
                    raise
                # What was answered with MOVED was not carried out.
                self._follow(link, error)
        raise StoreUnavailable("the cluster sends us from node to node: its nodes do not agree yet")

    async def reach(self) -> Node | None:
        """The node that has our keys, searched for if it is not known."""
        return (await self._reach()).node

    def drop(self) -> None:
        """Use none of the present connections again."""
        if self._link is not None:
            self._leave(self._link)

    async def close(self) -> None:
        link, self._link = self._link, None
        if link is not None:
            self._bid_farewell(link.end())
        if self._watch is not None:
            self._watch.cancel()
            await asyncio.wait([self._watch])
        if self._farewells:
            # Not gathered: they go on if the wait for them is given up.
            await asyncio.wait(self._farewells)

    async def _reach(self) -> Link:
        if self._link is None:
            async with self._looking:  # one search for all who wait
                if self._link is None:
                    self._link = Link(self._address, await self._place.locate())
                    self._watch_over(self._link)
        return self._link

    def _watch_over(self, link: Link) -> None:
        if (every_s := self._place.watch_every_s) is None:
            return
        if self._watch is not None:
            self._watch.cancel()
        self._watch = asyncio.create_task(self._leave_when_replaced(link, every_s))

    async def _leave_when_replaced(self, link: Link, every_s: float) -> None:
        """A server that was replaced and lives takes our writes until it is told, and they are lost then."""
        while self._link is link:
            await asyncio.sleep(every_s)
            try:
                node = await self._place.locate()
            except (*FAILURES, redis.exceptions.RedisError):
                continue  # nobody is there to ask: the link is as good as it was
            if self._link is link and node != link.node:
                self._leave(link)

    def _follow(self, link: Link, moved: redis.exceptions.ResponseError) -> None:
        if self._link is not link:
            return  # another call was told before us
        host, _, port = str(moved).rpartition(" ")[2].rpartition(":")
        self._leave(link)
        # A node that does not know the other's name means its own host.
        self._link = Link(self._address, Node(host or (link.node.host if link.node else ""), int(port)))

    def _leave(self, link: Link) -> None:
        if self._link is link:
            self._link = None
        self._bid_farewell(link.retire())

    def _bid_farewell(self, end: Coroutine[Any, Any, None]) -> None:
        farewell = asyncio.create_task(end)
        self._farewells.add(farewell)
        farewell.add_done_callback(self._farewells.discard)


def is_moved(error: Exception) -> bool:
    # Older drivers have a class for it in their own cluster client alone.
    return isinstance(error, redis.exceptions.MovedError) or str(error).startswith("MOVED ")


# ── plain connections ────────────────────────────────────────────────────────────────────


def _make_redis(address: Address, node: Node | None) -> redis.asyncio.Redis:
    """A client of one data node; no connection is made yet."""
    # A lost answer is for the caller to ask for again, with the same request: no retries here.
    options: dict[str, Any] = {
        "retry": Retry(NoBackoff(), 0),
        "socket_timeout": ANSWER_S,
        "socket_connect_timeout": _CONNECT_S,
        "max_connections": _MOST_CONNECTIONS,
        "db": address.db,
        **_as_options(address.login),
    }
    if node is None:
        options["unix_socket_path"] = address.socket
    else:
        options |= {"host": node.host, "port": node.port, "socket_keepalive": True, **_tls_options(address)}
    return redis.asyncio.Redis(**options)


@contextlib.asynccontextmanager
async def asking(address: Address, node: Node, login: Login) -> AsyncIterator[redis.asyncio.Redis]:
    """One connection to whoever may know where the server is."""
    client = redis.asyncio.Redis(
        host=node.host,
        port=node.port,
        retry=Retry(NoBackoff(), 0),
        socket_timeout=_LOOK_S,
        socket_connect_timeout=_LOOK_S,
        **_as_options(login),
        **_tls_options(address),
    )
    try:
        yield client
    finally:
        with contextlib.suppress(*FAILURES):
            await client.aclose()


async def first_to_know(
    nodes: Sequence[Node], ask: Callable[[Node], Awaitable[Node | None]], *, sought: str, unknown: str
) -> tuple[Node, Node]:
    """The first of these that knows where the server is, and what it said. Raises one of FAILURES."""
    reasons = []
    for node in nodes:
        try:
            answer = await ask(node)
        except redis.exceptions.AuthenticationError:
            raise  # the others have the same password, and waiting does not mend it
        except FAILURES as error:
            reasons.append(f"{node}: {error}")
            continue
        if answer is not None:
            return node, answer
        reasons.append(f"{node}: {unknown}")
    raise redis.exceptions.ConnectionError(f"{sought} ({'; '.join(reasons)})")


def _as_options(login: Login) -> dict[str, Any]:
    return {"username": login.username, "password": login.password}


def _tls_options(address: Address) -> dict[str, Any]:
    if address.tls is None:
        return {}
    return {
        "ssl": True,
        "ssl_cert_reqs": "required",
        "ssl_check_hostname": True,
        "ssl_ca_certs": address.tls.ca,
        "ssl_certfile": address.tls.cert,
        "ssl_keyfile": address.tls.key,
    }
