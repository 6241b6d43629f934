"""The server as the store speaks to it: scripts by their SHA, and its errors in our words."""

import asyncio
import ssl
from typing import Any

import redis.exceptions

from bullpen.errors import StoreError, StoreFull, StoreNotOpen, StoreReadOnly, StoreUnavailable
from bullpen.stores.redis.address import Address, Kind, Node
from bullpen.stores.redis.client import FAILURES, Client, OnePlace, Place, Way, is_moved
from bullpen.stores.redis.cluster import ClusterPlace
from bullpen.stores.redis.scripts import Script
from bullpen.stores.redis.sentinel import SentinelPlace

Words = tuple[str | bytes, ...]
"""A command."""

LONGEST_BLOCK_MS = 5_000
"""A blocking call comes back by then; well within the time in which a silent server counts as gone."""
_BLOCK_GRACE_S = 2.0
"""A blocking call whose time passed that long ago waits on a connection that is dead."""

_BY_FIRST_WORD: dict[str, type[StoreError]] = {
    "OOM": StoreFull,
    "READONLY": StoreReadOnly,
    "MISCONF": StoreReadOnly,
    "NOREPLICAS": StoreReadOnly,
    "LOADING": StoreUnavailable,
    "MASTERDOWN": StoreUnavailable,
    "UNBLOCKED": StoreUnavailable,
    "BUSY": StoreUnavailable,
    # A cluster that is being changed refuses a command whole; it is asked again, see cluster.py.
    "ASK": StoreUnavailable,
    "TRYAGAIN": StoreUnavailable,
    "CLUSTERDOWN": StoreUnavailable,
}
_FIRST_WORDS: dict[type[Exception], str] = {
    # redis-py strips the first word from these errors and makes it their class.
    redis.exceptions.OutOfMemoryError: "OOM",
    redis.exceptions.ReadOnlyError: "READONLY",
    redis.exceptions.AskError: "ASK",
    redis.exceptions.TryAgainError: "TRYAGAIN",
    redis.exceptions.ClusterDownError: "CLUSTERDOWN",
    redis.exceptions.MasterDownError: "MASTERDOWN",
}


class Connection:
    """The store's way to its server, wherever the address says that it is.

    `canary` is a key that never exists, beside the store's own.
    """

    def __init__(self, address: Address, canary: str) -> None:
        self.address = address
        self.canary = canary
        self._client: Client | None = None

    async def open(self) -> None:
        """Find the server. Raises StoreUnavailable if it cannot be reached, StoreError if it refuses us."""
        if self._client is not None:
            return
        self._client = Client(self.address, self._make_place())
        try:
            await self.reach()
            await self._knock()
        except BaseException:
            await self.close()
            raise

    async def _knock(self) -> None:
        """Connect and log in; a server that refuses this very command has been reached too."""
        try:
            await self.permitted("PING")
        except StoreUnavailable as error:
            if not isinstance(error.__cause__, redis.exceptions.TimeoutError):
                raise
            # A process that was held up meanwhile takes its own pause for the server's silence.
            await self.permitted("PING")

    async def close(self) -> None:
        client, self._client = self._client, None
        if client is not None:
            await client.close()

    @property
    def client(self) -> Client:
        if self._client is None:
            raise StoreNotOpen("the store is not open")
        return self._client

    def _make_place(self) -> Place:
        match self.address.kind:
            case Kind.CLUSTER:
                return ClusterPlace(self.address, self.canary)
            case Kind.SENTINEL:
                return SentinelPlace(self.address)
            case Kind.SERVER | Kind.SOCKET:
                return OnePlace(self.address)

    async def reach(self) -> Node | None:
        """The node that has our keys, searched for if it is not known; None for a socket."""
        client = self.client
        try:
            with _Heeding():
                return await client.reach()
        except _DRIVER_ERRORS as error:
            raise self._in_our_words(error) from error

    async def run(self, script: Script, key: str, *arguments: str | bytes) -> Any:
        """Run a script on one key, by its SHA; a server that does not know it yet is sent the text.

        The canary is declared beside it. A cluster's node that gives our slot away refuses every
        command with a declared key that it does not have: so it refuses the script whole, where the
        script itself would find out in the middle of its work.
        """
        declared = ("2", key, self.canary)
        try:
            return await self._execute(("EVALSHA", script.sha, *declared, *arguments), way=Way.SHARED)
        except _ScriptUnknown:
            return await self._execute(("EVAL", script.text, *declared, *arguments), way=Way.SHARED)

    async def command(self, *parts: str | bytes) -> Any:
        return await self._execute(parts, way=Way.DRIVER)

    async def permitted(self, *parts: str | bytes) -> Any:
        """The answer to a command that our user may not be allowed, or the server may not have: None then."""
        try:
            return await self.command(*parts)
        except StoreError as error:
            if type(error) is StoreError and isinstance(error.__cause__, redis.exceptions.ResponseError):
                return None
            raise

    async def block(self, *parts: str | bytes) -> Any:
        """A command that may wait at the server for long; given up, it ends at once."""
        (answer,) = await self._block(parts)
        return answer

    async def block_and_run(self, parts: Words, script: Script, key: str, *arguments: str | bytes) -> tuple[Any, Any]:
        """The same with a script that runs as soon as it ends, without a journey between the two; both answers.

        The first is None where the server did not know the script yet.
        """
        run = ("EVALSHA", script.sha, "2", key, self.canary, *arguments)
        try:
            first, second = await self._block(parts, run)
        except _ScriptUnknown:
            return None, await self.run(script, key, *arguments)
        return first, second

    async def _block(self, parts: Words, *then: Words) -> list[Any]:
        """A connection can be open on our side alone, and then no answer comes, ever: when the time
        is over that the server was given, and some more, it counts as lost.
        """
        try:
            async with asyncio.timeout(_asked_s(parts) + _BLOCK_GRACE_S):
                answers: list[Any] = await self._execute(parts, *then, way=Way.BLOCKING)
                return answers
        except TimeoutError:
            if self._client is not None:
                self._client.drop()
            raise StoreUnavailable("the Redis server did not end a blocking read in time") from None

    async def _execute(self, parts: Words, *then: Words, way: Way) -> Any:
        client = self.client
        try:
            # Also a script: where its server is gone, the driver is asked for the new one.
            with _Heeding():
                return await client.execute(parts, *then, way=way)
        except _DRIVER_ERRORS as error:
            raise self._in_our_words(error) from error

    def _in_our_words(self, error: Exception) -> Exception:
        match error:
            case redis.exceptions.NoScriptError():
                return _ScriptUnknown()
            case redis.exceptions.AuthenticationError() | redis.exceptions.NoPermissionError():
                return StoreError(f"the Redis server refused us: {error}")
            case redis.exceptions.ConnectionError() | redis.exceptions.TimeoutError() | OSError():
                if _is_about_certificate(error):
                    return StoreError(f"the Redis server's certificate is not one to trust: {error}")
                return StoreUnavailable(f"no answer from the Redis server: {error}")
            case _:
                return self._translated(error)

    def _translated(self, error: Exception) -> StoreError:
        word = _FIRST_WORDS.get(type(error)) or str(error).partition(" ")[0]
        if word == "READONLY" and self.address.kind in (Kind.SENTINEL, Kind.CLUSTER):
            return StoreUnavailable(f"the Redis server is no longer the master: {error}")
        if is_moved(error):
            return StoreError("the Redis server is part of a cluster: write redis+cluster:// in its address")
        if "non local key" in str(error):
            return StoreUnavailable(f"the cluster moves our keys: {error}")
        return _BY_FIRST_WORD.get(word, StoreError)(f"the Redis server says: {error}")


class _ScriptUnknown(Exception):
    """Never leaves this module."""


class _Heeding:
    """The driver may swallow a cancellation; whatever came instead, we were asked to stop."""

    __slots__ = ("_asked", "_task")

    def __enter__(self) -> None:
        self._task = asyncio.current_task()
        self._asked = self._task.cancelling() if self._task else 0

    def __exit__(self, *_: object) -> None:
        if self._task is not None and self._task.cancelling() > self._asked:
            raise asyncio.CancelledError


_DRIVER_ERRORS = (*FAILURES, redis.exceptions.RedisError)


def _asked_s(parts: Words) -> float:
    """How long the server was asked to wait: XREAD has it behind BLOCK, the pops at their end."""
    if "BLOCK" in parts:
        return float(parts[parts.index("BLOCK") + 1]) / 1000
    return float(parts[-1])


def _is_about_certificate(error: BaseException | None) -> bool:
    while error is not None and not isinstance(error, ssl.SSLCertVerificationError):
        error = error.__cause__ or error.__context__
    return error is not None
