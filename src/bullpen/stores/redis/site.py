"""One prefix of a server, and the time that goes there: what every verb needs."""

from collections.abc import AsyncIterator
from typing import Any

from bullpen.clock import Clock
from bullpen.stores.redis.connection import Connection
from bullpen.stores.redis.keys import Keys
from bullpen.stores.redis.scripts import Script

_SCAN_COUNT = "1000"
MISSING = b"missing"
"""A script's word for a job or a queue that is not there."""


class Site:
    def __init__(self, connection: Connection, keys: Keys, clock: Clock) -> None:
        self.connection = connection
        self.keys = keys
        self.clock = clock

    @property
    def now(self) -> str:
        return str(self.clock.now_ms())

    async def ask(self, script: Script, queue: str, *arguments: str | bytes) -> Any:
        """Run a script that is told the queue by what its keys begin with."""
        keys = self.keys
        return await self.connection.run(script, keys.meta(queue), keys.base(queue), keys.own(queue), *arguments)

    async def scan(self, pattern: str) -> AsyncIterator[list[bytes]]:
        """The keys that match, some at a time; on a large server this takes its time."""
        cursor = "0"
        while True:
            found, keys = await self.connection.command("SCAN", cursor, "MATCH", pattern, "COUNT", _SCAN_COUNT)
            yield keys
            cursor = str(int(found))
            if cursor == "0":
                return
