"""The server as the store speaks to it: scripts by their SHA, and its errors in our words."""

import asyncio
import contextlib
from collections.abc import AsyncIterator
from typing import Any

import redis.asyncio
import redis.exceptions
from redis.asyncio.retry import Retry
from redis.backoff import NoBackoff

from bullpen.errors import StoreError, StoreFull, StoreReadOnly, StoreUnavailable
from bullpen.stores.redis.scripts import Script

_ANSWER_S = 15.0
_CONNECT_S = 5.0
LONGEST_BLOCK_MS = 5_000
"""A blocking call comes back by then; well within the time in which a silent server counts as gone."""
_OLDEST_SERVER = (7, 0)

_BY_FIRST_WORD: dict[str, type[StoreError]] = {
    "OOM": StoreFull,
    "READONLY": StoreReadOnly,
    "MISCONF": StoreReadOnly,
    "NOREPLICAS": StoreReadOnly,
    "LOADING": StoreUnavailable,
    "MASTERDOWN": StoreUnavailable,
    "CLUSTERDOWN": StoreUnavailable,
    "TRYAGAIN": StoreUnavailable,
    "BUSY": StoreUnavailable,
}


_NAG_S = 0.02


class Connection:
    """A pool of connections to one server."""

    def __init__(self, url: str) -> None:
        self._url = url
        self._client: redis.asyncio.Redis | None = None

    async def open(self) -> None:
        if self._client is not None:
            return
        # A lost answer is for the caller to ask for again, with the same request: no retries here.
        self._client = redis.asyncio.Redis.from_url(
            self._url,
            retry=Retry(NoBackoff(), 0),
            socket_timeout=_ANSWER_S,
            socket_connect_timeout=_CONNECT_S,
            **({} if self._url.startswith("unix:") else {"socket_keepalive": True}),
        )
        try:
            await self._check_version()
        except BaseException:
            await self.close()
            raise

    async def close(self) -> None:
        client, self._client = self._client, None
        if client is not None:
            await client.aclose()

    async def run(self, script: Script, key: str, *arguments: str | bytes) -> Any:
        """Run a script on one key, by its SHA; a server that does not know it yet is sent the text."""
        try:
            return await self.command("EVALSHA", script.sha, "1", key, *arguments)
        except _ScriptUnknown:
            return await self.command("EVAL", script.text, "1", key, *arguments)

    async def command(self, *parts: str | bytes) -> Any:
        if self._client is None:
            raise StoreUnavailable("the store is not open")
        task = asyncio.current_task()
        asked_to_stop = task.cancelling() if task else 0
        try:
            async with _our_errors():
                return await self._client.execute_command(*parts)  # type: ignore[no-untyped-call] # redis-py's own
        finally:
            if task is not None and task.cancelling() > asked_to_stop:
                # The client may swallow a cancellation; whatever came instead, we were asked to stop.
                raise asyncio.CancelledError

    async def block(self, *parts: str | bytes) -> Any:
        """A command that may wait at the server for long; given up, it ends at once."""
        # Owned by this call: it ends before the call does.
        command = asyncio.create_task(self.command(*parts))
        try:
            await asyncio.wait([command])
        except asyncio.CancelledError:
            while not command.done():
                # The client may swallow a cancellation and go on to wait: it is told until it hears.
                command.cancel()
                await asyncio.wait([command], timeout=_NAG_S)
            raise
        return command.result()

    async def _check_version(self) -> None:
        info = await self.command("INFO", "server")
        version = str(info.get("redis_version", "0.0"))
        major, minor, *_ = (int(part) for part in (version + ".0").split(".")[:2])
        if (major, minor) < _OLDEST_SERVER:
            raise StoreError(f"Redis {version} is too old: use Redis 7.0 or later, or Valkey")


class _ScriptUnknown(Exception):
    """Never leaves this module."""


@contextlib.asynccontextmanager
async def _our_errors() -> AsyncIterator[None]:
    try:
        yield
    except redis.exceptions.NoScriptError as error:
        raise _ScriptUnknown from error
    except (redis.exceptions.AuthenticationError, redis.exceptions.NoPermissionError) as error:
        raise StoreError(f"the Redis server refused us: {error}") from error
    except (redis.exceptions.ConnectionError, redis.exceptions.TimeoutError, OSError) as error:
        raise StoreUnavailable(f"no answer from the Redis server: {error}") from error
    except redis.exceptions.RedisError as error:
        raise _translated(error) from error


def _translated(error: redis.exceptions.RedisError) -> StoreError:
    # redis-py strips the first word from some errors and makes it their class.
    by_class: dict[type[Exception], str] = {
        redis.exceptions.OutOfMemoryError: "OOM",
        redis.exceptions.ReadOnlyError: "READONLY",
    }
    word = by_class.get(type(error)) or str(error).partition(" ")[0]
    return _BY_FIRST_WORD.get(word, StoreError)(f"the Redis server says: {error}")
