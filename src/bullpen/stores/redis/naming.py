"""Connections that bear a name, so that BullMQ and its dashboards list our workers.

BullMQ finds the workers of a queue in the server's list of clients. The connections that work
are busy or blocked, and come and go; so each name has an idle one of its own.
"""

import asyncio
import base64
import logging
import re
from collections.abc import Collection

import redis.exceptions

from bullpen.errors import StoreError
from bullpen.stores.redis.address import Node
from bullpen.stores.redis.client import FAILURES
from bullpen.stores.redis.connection import Connection
from bullpen.stores.redis.wire import Wire, open_wire, tls_context

logger = logging.getLogger("bullpen.stores.redis")

_PATIENCE_S = 5.0
"""A heartbeat waits for this; a server that takes longer is asked again at the next."""


def worker_name(prefix: str, queue: str, worker: str) -> str:
    """The name by which BullMQ knows a worker of that queue."""
    name = f"{prefix}:{base64.b64encode(queue.encode()).decode()}:w:{worker}"
    # The server takes visible ASCII only.
    return re.sub(r"[^!-~]", "-", name)


class NamedConnections:
    """One idle connection for each name, kept alive as often as `keep` is called."""

    def __init__(self, connection: Connection) -> None:
        self._connection = connection
        self._open: dict[str, tuple[Node | None, Wire]] = {}
        self._keeping = asyncio.Lock()
        self._is_refused = False

    async def keep(self, names: Collection[str]) -> None:
        """Have exactly these names on the server; what fails is tried again at the next call."""
        if self._is_refused:
            return
        async with self._keeping:
            try:
                # Only a reached server says where it is; after a failover it is another.
                node = await self._connection.reach()
            except StoreError as error:
                logger.debug("cannot name our connections: %s", error)
                return
            async with asyncio.TaskGroup() as tasks:
                for name in self._open.keys() - set(names):
                    tasks.create_task(self._drop(name))
                for name in set(names):
                    tasks.create_task(self._ensure(name, node))

    async def close(self) -> None:
        async with self._keeping:
            for name in list(self._open):
                await self._drop(name)

    async def _ensure(self, name: str, node: Node | None) -> None:
        if name in self._open:
            known, wire = self._open[name]
            if known == node and await _is_alive(wire):
                return
            await self._drop(name)
        address = self._connection.address
        try:
            wire = await open_wire(address, node, _PATIENCE_S, tls=tls_context(address), name=name)
        except redis.exceptions.ResponseError as error:
            # Our user may not name connections: nothing but a place in a list is lost.
            logger.debug("the server does not let us name connections: %s", error)
            self._is_refused = True
        except FAILURES as error:
            logger.debug("cannot name a connection %s: %s", name, error)
        else:
            self._open[name] = (node, wire)

    async def _drop(self, name: str) -> None:
        _, wire = self._open.pop(name)
        await wire.close()


async def _is_alive(wire: Wire) -> bool:
    try:
        await wire.call(("PING",))
    except (*FAILURES, redis.exceptions.RedisError):
        return False
    return True
