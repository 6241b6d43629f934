"""Bullpen and the other clients of BullMQ's queues, on one server, under one prefix for each test."""

import contextlib
from collections.abc import AsyncIterator, Iterator

import pytest

from bullpen.clock import SYSTEM_CLOCK
from bullpen.stores.redis import RedisStore
from tests.interop.cells import NPM_6, PEERS
from tests.interop.peers import Peer, PeerProcess, running_peer
from tests.interop.us import Us
from tests.support.redis_harness import RedisHarness
from tests.support.redis_server import RedisServer, redis_server

__all__ = ["redis_server"]


class Processes:
    """The peers' processes, each started when it is first asked for."""

    def __init__(self, redis_port: int, stack: contextlib.ExitStack) -> None:
        self._redis_port = redis_port
        self._stack = stack
        self._running: dict[str, PeerProcess] = {}

    def of(self, name: str) -> PeerProcess:
        assert name in PEERS
        if name not in self._running:
            self._running[name] = self._stack.enter_context(running_peer(name, self._redis_port))
        return self._running[name]


@pytest.fixture(scope="session")
def processes(redis_server: RedisServer) -> Iterator[Processes]:
    with contextlib.ExitStack() as stack:
        yield Processes(redis_server.port, stack)


@pytest.fixture
async def harness(redis_server: RedisServer) -> AsyncIterator[RedisHarness]:
    # The peers go by the system's time, so we do too.
    harness = RedisHarness(redis_server.url, clock=SYSTEM_CLOCK)
    yield harness
    try:
        await harness.check()
    finally:
        await harness.close()


@pytest.fixture
async def store(harness: RedisHarness) -> RedisStore:
    return await harness.open()


@pytest.fixture
async def us(store: RedisStore) -> Us:
    return Us(store)


@pytest.fixture
async def peer(request: pytest.FixtureRequest, processes: Processes, harness: RedisHarness) -> AsyncIterator[Peer]:
    """The other client: `@cell` says which ones a test meets."""
    peer = Peer(request.param, processes.of(request.param), harness.prefix)
    yield peer
    await peer.close()


@pytest.fixture
async def node_6(processes: Processes, harness: RedisHarness) -> AsyncIterator[Peer]:
    """A second client beside the peer: for what the two majors do to each other."""
    peer = Peer(NPM_6, processes.of(NPM_6), harness.prefix)
    yield peer
    await peer.close()


@pytest.fixture
async def doomed(peer: Peer, redis_server: RedisServer) -> AsyncIterator[Peer]:
    """The same client in another process, for the test to kill."""
    with running_peer(peer.name, redis_server.port) as process:
        yield Peer(peer.name, process, peer.prefix)
