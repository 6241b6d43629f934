"""Jobs on a Redis server, in BullMQ's own layout: Node and Python share one queue.

Each verb is one script, so each batch is atomic. What a store must know beyond BullMQ stands
in extra fields and keys that BullMQ passes over.
"""

from bullpen.stores.redis.verbs.coordinating import Coordinating
from bullpen.stores.redis.verbs.journaling import Journaling
from bullpen.stores.redis.verbs.looking import Looking
from bullpen.stores.redis.verbs.moving import Moving
from bullpen.stores.redis.verbs.steering import Steering
from bullpen.stores.redis.verbs.working import Working


class RedisStore(Working, Steering, Journaling, Coordinating, Looking, Moving):
    """Jobs on one server, a master behind sentinels, or a cluster."""

    def another(self) -> "RedisStore":
        return RedisStore(self._url, prefix=self._prefix, clock=self._clock)
