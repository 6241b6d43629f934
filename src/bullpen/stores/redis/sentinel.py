"""Asking the sentinels which server is the master."""

from bullpen.stores.redis.address import Address, Node
from bullpen.stores.redis.client import asking, first_to_know


class SentinelPlace:
    watch_every_s = 0.5
    """The sentinels demote a master that they replaced only seconds later: until then it answers as before."""

    def __init__(self, address: Address) -> None:
        self._address = address
        self._sentinels = list(address.nodes)

    async def locate(self) -> Node:
        """The master, by the first sentinel that knows one."""
        sentinel, master = await first_to_know(
            list(self._sentinels),
            self._ask,
            sought=f"no master for {self._address.service!r}",
            unknown="knows no such service",
        )
        # The one that answered is asked first the next time.
        self._sentinels.remove(sentinel)
        self._sentinels.insert(0, sentinel)
        return master

    async def _ask(self, sentinel: Node) -> Node | None:
        async with asking(self._address, sentinel, self._address.sentinel_login) as client:
            answer = await client.execute_command(  # type: ignore[no-untyped-call] # redis-py's own
                "SENTINEL", "GET-MASTER-ADDR-BY-NAME", self._address.service
            )
        if answer is None:
            return None
        host, port = answer
        return Node(host.decode(), int(port))
