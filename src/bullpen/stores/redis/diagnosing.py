"""How a server is, as far as it tells: for the log when a store opens, and for `doctor`.

Managed services refuse some questions, and leave some answers out: what is not told is not judged.
"""

import logging
from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

from bullpen.clock import Clock
from bullpen.errors import StoreError
from bullpen.stores.finding import Finding
from bullpen.stores.redis.address import Kind
from bullpen.stores.redis.connection import Connection
from bullpen.stores.redis.judging import ServerFacts, judge, judge_version
from bullpen.stores.redis.naming import worker_name

if TYPE_CHECKING:
    from bullpen.stores.redis.store import RedisStore

logger = logging.getLogger("bullpen.stores.redis")


async def examine(connection: Connection, clock: Clock) -> ServerFacts:
    """Ask an open connection's server all that it lets us ask. Raises StoreError if it cannot be reached."""
    info = await connection.permitted("INFO") or {}
    is_cluster = _flag(info, "cluster_enabled")
    return ServerFacts(
        **_identity(info),
        role=info.get("role"),
        replicas=info.get("connected_slaves"),
        memory_policy=info.get("maxmemory_policy"),
        used_memory=info.get("used_memory"),
        max_memory=info.get("maxmemory"),
        has_log=_flag(info, "aof_enabled"),
        has_snapshots=await _has_snapshots(connection),
        failed_writes=_failed_writes(info),
        is_cluster=is_cluster,
        is_cluster_address=connection.address.kind == Kind.CLUSTER,
        cluster_state=await _cluster_state(connection) if is_cluster else None,
        clock_skew_ms=await _clock_skew_ms(connection, clock),
    )


async def diagnose(store: "RedisStore") -> list[Finding]:
    """Look at the server of a store that need not be open. Raises StoreError if it cannot be reached."""
    known = store._connection  # noqa: SLF001 - the same room
    connection = Connection(known.address, known.canary)
    await connection.open()
    try:
        return judge(await examine(connection, store.clock))
    finally:
        await connection.close()


async def node_workers(store: "RedisStore", queue: str) -> int:
    """How many workers of BullMQ serve this queue, as far as the server tells who is connected."""
    prefix, own = store._prefix, {info.name for info in await store.workers()}  # noqa: SLF001 - the same room
    answer = await store._connection.permitted("CLIENT", "LIST")  # noqa: SLF001 - the same room
    names = {_client_name(client) for client in _lines(answer)}
    ours = {worker_name(prefix, queue, name) for name in own}
    bases = {worker_name(prefix, queue, "").removesuffix(":w:"), f"{prefix}:{queue}"}
    return sum(name in bases or any(name.startswith(f"{base}:w:") for base in bases) for name in names - ours)


def _lines(answer: Any) -> list[Any]:
    if answer is None or isinstance(answer, list):
        return answer or []
    return bytes(answer).decode(errors="replace").splitlines()


def _client_name(client: Any) -> str:
    if isinstance(client, dict):
        return str(client.get("name", ""))
    words = (word.partition("=") for word in str(client).split(" "))
    return next((value for word, _, value in words if word == "name"), "")


_told: set[tuple[str, str]] = set()
"""What was logged of which address: a process opens many stores on one server, and says it once."""


async def greet(connection: Connection, clock: Clock) -> None:
    """Refuse a server that is too old, and log what is wrong with any other."""
    facts = await examine(connection, clock)
    version = judge_version(facts)
    if version.level == "bad":
        raise StoreError(f"{version.message}: {version.fix}")
    address = str(connection.address)
    for finding in judge(facts):
        if finding.level != "ok" and (address, finding.check) not in _told:
            _told.add((address, finding.check))
            logger.warning("%s: %s: %s; %s", address, finding.check, finding.message, finding.fix)


def _identity(info: Mapping[str, Any]) -> dict[str, str | None]:
    # Valkey's redis_version is that of the last Redis which it is like.
    if (name := info.get("server_name")) == "valkey" or "valkey_version" in info:
        return {"dialect": "Valkey", "version": str(info.get("valkey_version"))}
    version = info.get("redis_version")
    dialect = "Redis" if name in (None, "redis") else str(name)
    return {"dialect": dialect, "version": None if version is None else str(version)}


def _flag(info: Mapping[str, Any], field: str) -> bool | None:
    return None if field not in info else bool(info[field])


def _failed_writes(info: Mapping[str, Any]) -> tuple[str, ...]:
    fields = {"aof_last_write_status": "the append-only file", "rdb_last_bgsave_status": "the last snapshot"}
    return tuple(what for field, what in fields.items() if info.get(field, "ok") != "ok")


async def _has_snapshots(connection: Connection) -> bool | None:
    # Only the configuration tells; managed services keep it to themselves.
    answer = await connection.permitted("CONFIG", "GET", "save")
    if not answer:
        return None
    values = list(answer.values()) if isinstance(answer, dict) else list(answer)[1::2]
    return any(values)


async def _cluster_state(connection: Connection) -> str | None:
    answer = await connection.permitted("CLUSTER", "INFO")
    if isinstance(answer, dict):
        return str(answer.get("cluster_state"))
    lines = bytes(answer or b"").decode().splitlines()
    return next((line.partition(":")[2] for line in lines if line.startswith("cluster_state:")), None)


async def _clock_skew_ms(connection: Connection, clock: Clock) -> int | None:
    began_ms = clock.mono_ms()
    answer = await connection.permitted("TIME")
    if answer is None:
        return None
    took_ms = clock.mono_ms() - began_ms
    seconds, microseconds = (int(part) for part in answer)
    # The answer is as old as half the way there and back.
    return seconds * 1000 + microseconds // 1000 + took_ms // 2 - clock.now_ms()
