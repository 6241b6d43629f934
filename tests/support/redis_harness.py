"""The conformance kit's harness for the Redis store: one prefix of a running server."""

import uuid
from collections import Counter, defaultdict

import redis.asyncio

from bullpen.clock import Clock
from bullpen.stores.base import Store
from bullpen.stores.redis import RedisStore
from bullpen.testing.clock import ManualClock

_PLACES = ("wait", "paused", "active", "prioritized", "delayed", "waiting-children", "completed", "failed")
_LISTS = ("wait", "paused", "active")
_SETTINGS = {
    "meta", "id", "pc", "events", "marker", "stalled", "stalled-check", "limiter", "repeat", *_PLACES,
}  # fmt: skip
_JOB_PARTS = ("lock", "logs", "dependencies", "processed", "failed", "unsuccessful")


def fresh_prefix() -> str:
    return f"test-{uuid.uuid4().hex[:12]}"


class RedisHarness:
    """`clock` may be the system's, where a test needs Node on the same queue."""

    def __init__(self, url: str, *, clock: Clock | None = None) -> None:
        self.url = url
        self.prefix = fresh_prefix()
        self.clock: Clock = clock or ManualClock()
        self.raw = redis.asyncio.Redis.from_url(url, decode_responses=True)
        self._stores: list[RedisStore] = []

    async def open(self) -> RedisStore:
        return await self.open_at(self.url)

    async def open_at(self, url: str) -> RedisStore:
        """A store that reaches the same place by another address."""
        store = RedisStore(url, prefix=self.prefix, clock=self.clock)
        await store.open()
        self._stores.append(store)
        return store

    async def advance(self, ms: int) -> None:
        assert isinstance(self.clock, ManualClock)
        self.clock.advance(ms)
        for key in await self.keys():
            left_ms = await self.raw.pttl(key)
            if 0 <= left_ms <= ms:
                await self.raw.delete(key)
            elif left_ms > ms:
                await self.raw.pexpire(key, left_ms - ms)
        await self._wake_sleepers()

    async def _wake_sleepers(self) -> None:
        """A sleeper wakes by the server's time; one whose job is due by ours needs a marker."""
        for key in await self.keys():
            if key.endswith(":delayed") and key.count(":") == 2:
                await self.raw.zadd(key.removesuffix("delayed") + "marker", {"0": 0})

    async def crash(self, store: Store) -> None:
        assert isinstance(store, RedisStore)
        client, store._connection._client = store._connection._client, None
        if client is not None:
            await client.connection_pool.disconnect(inuse_connections=True)

    async def check(self) -> None:
        """Every job is in exactly one place, every place holds jobs only, every lock an active one."""
        jobs: defaultdict[str, set[str]] = defaultdict(set)
        places: defaultdict[str, Counter[str]] = defaultdict(Counter)
        locks: defaultdict[str, set[str]] = defaultdict(set)
        for key in await self.keys():
            queue, _, rest = key.removeprefix(f"{self.prefix}:").partition(":")
            if not queue:
                continue
            if rest in _PLACES:
                places[queue].update(await self._members(key, rest))
            elif rest.endswith(":lock"):
                locks[queue].add(rest.removesuffix(":lock"))
            elif rest not in _SETTINGS and not rest.startswith(("de:", "dn:", "repeat", "metrics:")):
                owner, _, part = rest.rpartition(":")
                jobs[queue].add(owner if part in _JOB_PARTS else rest)
        for queue in jobs.keys() | places.keys():
            assert places[queue] == Counter(jobs[queue]), f"jobs and places of {queue}"
            active = set(await self.raw.lrange(f"{self.prefix}:{queue}:active", 0, -1))
            assert locks[queue] <= active, f"locks without active jobs in {queue}"

    async def _members(self, key: str, place: str) -> list[str]:
        if place in _LISTS:
            return [str(member) for member in await self.raw.lrange(key, 0, -1)]
        return [str(member) for member in await self.raw.zrange(key, 0, -1)]

    async def keys(self) -> list[str]:
        return [str(key) async for key in self.raw.scan_iter(f"{self.prefix}:*", count=1000)]

    async def close(self) -> None:
        for store in self._stores:
            await store.close()
        await self.raw.aclose()
