"""Asking the sentinels which server is the master."""

import redis.exceptions

from bullpen.stores.redis.address import Address, Node
from bullpen.stores.redis.client import FAILURES, asking


class SentinelPlace:
    watch_every_s = 0.5
    """The sentinels demote a master that they replaced only seconds later: until then it answers as before."""

    def __init__(self, address: Address) -> None:
        self._address = address
        self._sentinels = list(address.nodes)

    async def locate(self) -> Node:
        """The master, by the first sentinel that knows one."""
        reasons = []
        for sentinel in list(self._sentinels):
            try:
                master = await self._ask(sentinel)
            except redis.exceptions.AuthenticationError:
                raise  # the others have the same password, and waiting does not mend it
            except FAILURES as error:
                reasons.append(f"{sentinel}: {error}")
                continue
            if master is not None:
                # The one that answered is asked first the next time.
                self._sentinels.remove(sentinel)
                self._sentinels.insert(0, sentinel)
                return master
            reasons.append(f"{sentinel}: knows no such service")
        raise redis.exceptions.ConnectionError(f"no master for {self._address.service!r} ({'; '.join(reasons)})")

    async def _ask(self, sentinel: Node) -> Node | None:
        async with asking(self._address, sentinel, self._address.sentinel_login) as client:
            answer = await client.execute_command(  # type: ignore[no-untyped-call] # redis-py's own
                "SENTINEL", "GET-MASTER-ADDR-BY-NAME", self._address.service
            )
        if answer is None:
            return None
        host, port = answer
        return Node(host.decode(), int(port))
