"""The store on a Redis server, on BullMQ's key layout."""

from bullpen.stores.redis.store import RedisStore

__all__ = ["RedisStore"]
