"""The conformance kit's harness for the Redis store: one prefix of a running server."""

import functools
import re
import uuid
from collections import Counter, defaultdict
from typing import Any

import redis
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
_NO_JOB = re.compile(r"de:|dn:|metrics:|repeat:[^:]+$")
"""Subjects, what is kept for them, counts, schedulers; a scheduler's ticks are jobs."""
_JOB_PARTS = ("lock", "logs", "dependencies", "processed", "failed", "unsuccessful")


_STEPS = re.compile(r"bullpen:queue:([^:]+):(?:journal|mailbox):(.+)")


def fresh_prefix() -> str:
    return f"test-{uuid.uuid4().hex[:12]}"


_PASS_TIME = """
for _, key in ipairs(redis.call("KEYS", ARGV[1])) do
  local left = redis.call("PTTL", key)
  if left >= 0 and left <= tonumber(ARGV[2]) then
    redis.call("DEL", key)
  elseif left >= 0 then
    redis.call("PEXPIRE", key, left - tonumber(ARGV[2]))
  end
  -- A sleeper wakes by the server's time; one whose job is due by ours needs a marker.
  local base = string.match(key, "^([^:]+:[^:]+:)delayed$")
  if base then redis.call("ZADD", base .. "marker", 0, "0") end
end
"""


class RedisHarness:
    """`clock` may be the system's, where a test needs Node on the same queue."""

    def __init__(self, url: str, *, clock: Clock | None = None) -> None:
        self.url = url
        self.prefix = fresh_prefix()
        self.clock: Clock = clock or ManualClock()
        self._at_once = redis.Redis.from_url(url, decode_responses=True)
        self._stores: list[RedisStore] = []

    @functools.cached_property
    def raw(self) -> "redis.asyncio.Redis":
        """The server itself, for tests that look at keys."""
        return redis.asyncio.Redis.from_url(self.url, decode_responses=True)

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
        self._at_once.eval(_PASS_TIME, 0, f"{self.prefix}:*", str(ms))

    async def crash(self, store: Store) -> None:
        assert isinstance(store, RedisStore)
        client, store._connection._client = store._connection._client, None
        if client is not None:
            await client.close()

    async def check(self) -> None:
        """Every job is in exactly one place, every place holds jobs only, every lock an active one."""
        jobs: defaultdict[str, set[str]] = defaultdict(set)
        places: defaultdict[str, Counter[str]] = defaultdict(Counter)
        locks: defaultdict[str, set[str]] = defaultdict(set)
        with_steps: defaultdict[str, set[str]] = defaultdict(set)
        for key in await self.keys():
            queue, _, rest = key.removeprefix(f"{self.prefix}:").partition(":")
            if not queue:
                _, _, own_queue, own = rest.split(":", 3) if rest.startswith("bullpen:queue:") else ("", "", "", "")
                if own == "grouped":
                    places[own_queue].update(self._check_groups(key.removesuffix(own), own_queue))
                if steps := _STEPS.fullmatch(rest):
                    with_steps[steps[1]].add(steps[2])
                continue
            if rest in _PLACES:
                places[queue].update(self._members(key, rest))
            elif rest.endswith(":lock"):
                locks[queue].add(rest.removesuffix(":lock"))
            elif rest not in _SETTINGS and not _NO_JOB.match(rest):
                owner, _, part = rest.rpartition(":")
                jobs[queue].add(owner if part in _JOB_PARTS else rest)
        for queue in jobs.keys() | places.keys():
            assert places[queue] == Counter(jobs[queue]), f"jobs and places of {queue}"
            active = set(self._members(f"{self.prefix}:{queue}:active", "active"))
            assert locks[queue] <= active, f"locks without active jobs in {queue}"
            for parent in self._members(f"{self.prefix}:{queue}:waiting-children", "waiting-children"):
                pending = self._at_once.smembers(f"{self.prefix}:{queue}:{parent}:dependencies")
                assert pending, f"{parent} of {queue} waits for nobody"
        for queue, ids in with_steps.items():
            assert ids <= jobs[queue], f"journals or mailboxes without jobs in {queue}"

    def _check_groups(self, own: str, queue: str) -> list[str]:
        """The ids of all that wait in groups: each also in the line of its own group, at the same place."""
        waiting = self._scores(f"{own}grouped")
        in_lines: list[tuple[str, float]] = []
        for line in self._at_once.scan_iter(f"{own}group-line:*", count=1000):
            group = str(line).removeprefix(f"{own}group-line:")
            found = self._scores(str(line))
            assert {self._at_once.hget(f"{self.prefix}:{queue}:{job}", "bullpen:group") for job in found} == {group}
            in_lines += found.items()
        assert sorted(in_lines) == sorted(waiting.items()), f"groups of {queue}"
        return list(waiting)

    def _scores(self, key: str) -> dict[str, float]:
        found: Any = self._at_once.zrange(key, 0, -1, withscores=True)
        return {str(member): float(score) for member, score in found}

    def _members(self, key: str, place: str) -> list[str]:
        found = self._at_once.lrange(key, 0, -1) if place in _LISTS else self._at_once.zrange(key, 0, -1)
        assert isinstance(found, list)
        return [str(member) for member in found]

    async def keys(self) -> list[str]:
        return [str(key) for key in self._at_once.scan_iter(f"{self.prefix}:*", count=1000)]

    async def close(self) -> None:
        for store in self._stores:
            await store.close()
        if "raw" in self.__dict__:
            await self.raw.aclose()
        self._at_once.close()

    def clear(self) -> None:
        """Remove all that it kept, and nothing else of the server."""
        if keys := list(self._at_once.scan_iter(f"{self.prefix}:*", count=1000)):
            self._at_once.delete(*keys)
        self._at_once.close()
