"""Finding the node of a cluster that has our keys.

All keys of an application share one hash tag, so one slot, so one node at a time: being on a
cluster is following that node. `docs/decisions/0010-our-own-cluster-following.md` says why this
is not left to the driver.
"""

import random
from collections.abc import Sequence
from typing import Any

import redis.crc
import redis.exceptions

from bullpen.stores.redis.address import Address, Node
from bullpen.stores.redis.client import asking, first_to_know


class ClusterPlace:
    """Follows the slot of a key."""

    watch_every_s = None

    def __init__(self, address: Address, key: str) -> None:
        self._address = address
        self._slot = redis.crc.key_slot(key.encode())
        self._known = set(address.nodes)

    async def locate(self) -> Node:
        """The owner of the slot, by the first node that names one."""
        # In any order: a node that lags behind the others must not be the one that is always asked.
        nodes = random.sample(sorted(self._known), len(self._known))
        unknown = f"nobody has slot {self._slot}"
        _, owner = await first_to_know(nodes, self._ask, sought="no node has our keys", unknown=unknown)
        return owner

    async def _ask(self, node: Node) -> Node | None:
        async with asking(self._address, node, self._address.login) as client:
            try:
                ranges = await client.execute_command("CLUSTER", "SLOTS")  # type: ignore[no-untyped-call] # redis-py's own
            except redis.exceptions.NoPermissionError:
                # We may not ask; whoever has the keys will be named by the answer to our first command.
                return node
        self._known = {*self._address.nodes, *(_node(one, node) for _, _, *nodes in ranges for one in nodes)}
        return next((_node(nodes[0], node) for first, last, *nodes in ranges if first <= self._slot <= last), None)


def _node(told: Sequence[Any], teller: Node) -> Node:
    host = told[0].decode() if told[0] else ""
    # A node that does not know its own name leaves it to us: it is the one that we asked.
    return Node(teller.host if host in ("", "?") else host, int(told[1]))
