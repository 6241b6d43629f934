"""A store and the server that it speaks to."""

import itertools
import uuid

from bullpen.clock import SYSTEM_CLOCK, Clock
from bullpen.stores.base import StoreFacts
from bullpen.stores.redis.address import parse_address
from bullpen.stores.redis.client import Client
from bullpen.stores.redis.connection import Connection
from bullpen.stores.redis.diagnosing import greet
from bullpen.stores.redis.keys import Keys
from bullpen.stores.redis.naming import NamedConnections
from bullpen.stores.redis.site import Site

_FACTS = StoreFacts(name="redis", exchanges_in_flight=2)


class OpenSite:
    def __init__(self, url: str, *, prefix: str | None = None, clock: Clock = SYSTEM_CLOCK) -> None:
        self._url = url
        address = parse_address(url)
        self._prefix = address.choose_prefix(prefix)
        self._keys = Keys(self._prefix)
        self._connection = Connection(address, self._keys.canary)
        self._greeted: Client | None = None
        """Whose server was examined: whoever makes sure that an open store is open asks nothing of it."""
        self._clock = clock
        self._site = Site(self._connection, self._keys, clock)
        self._named = NamedConnections(self._connection)
        self._names: dict[str, set[str]] = {}
        """By which names BullMQ lists the workers that beat here."""
        self._instance = uuid.uuid4().hex
        self._claims = itertools.count(1)

    @property
    def facts(self) -> StoreFacts:
        return _FACTS

    @property
    def clock(self) -> Clock:
        return self._clock

    @property
    def place(self) -> str:
        address = self._connection.address
        return f"{address}, database {address.db}, prefix {self._prefix}"

    async def open(self) -> None:
        await self._connection.open()
        if self._connection.client is self._greeted:
            return
        try:
            await greet(self._connection, self._clock)
        except BaseException:
            await self.close()
            raise
        self._greeted = self._connection.client

    async def close(self) -> None:
        self._names.clear()
        await self._named.close()
        await self._connection.close()
