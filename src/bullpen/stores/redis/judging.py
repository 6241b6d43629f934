"""What a server's facts mean for jobs, each with its remedy. `docs/reference/cli.md` has a line for each."""

import msgspec

from bullpen.stores.finding import Finding, Level

_OLDEST = {"Redis": (7, 0), "Valkey": (7, 2)}
_NEARLY_FULL = 0.9
_BUFFERS = 256 * 1024
"""Of clients, which come and go and count as used: a server with no more room than that refuses adds now and then."""
_SKEW_MS, _LARGE_SKEW_MS = 1_000, 30_000
_MB = 1_000_000


class ServerFacts(msgspec.Struct, frozen=True, kw_only=True):
    """None is what the server did not tell."""

    dialect: str | None = None
    version: str | None = None
    role: str | None = None
    replicas: int | None = None
    memory_policy: str | None = None
    used_memory: int | None = None
    max_memory: int | None = None
    """0 is without limit."""
    has_log: bool | None = None
    """Whether each write goes to the append-only file."""
    has_snapshots: bool | None = None
    failed_writes: tuple[str, ...] = ()
    """Which of log and snapshot could not be written the last time."""
    is_cluster: bool | None = None
    is_cluster_address: bool = False
    cluster_state: str | None = None
    clock_skew_ms: int | None = None
    """How far the server's clock is ahead of ours."""


def judge(facts: ServerFacts) -> list[Finding]:
    """One finding for each thing that the server told of."""
    found = [judge_version(facts), _role(facts), _cluster(facts), _eviction(facts), _memory(facts)]
    found += [_persistence(facts), _clock(facts)]
    return [finding for finding in found if finding is not None]


def judge_version(facts: ServerFacts) -> Finding:
    if facts.version is None or facts.dialect is None:
        return Finding("ok", "server", "does not tell its version")
    name = f"{facts.dialect} {facts.version}"
    oldest = _OLDEST.get(facts.dialect)
    if oldest is not None and _parsed(facts.version) < oldest:
        fix = "use Redis 7.0 or later, or Valkey 7.2 or later"
        return Finding("bad", "server", f"{name} is too old", fix)
    return Finding("ok", "server", name)


def _parsed(version: str) -> tuple[int, ...]:
    parts = (*version.split("."), "0", "0")[:2]
    return tuple(int(part) if part.isdecimal() else 0 for part in parts)


def _role(facts: ServerFacts) -> Finding | None:
    if facts.role is None:
        return None
    if facts.role != "master":
        fix = "give the address of its master, or redis+sentinel:// that finds it"
        return Finding("bad", "role", "a replica: it takes no jobs", fix)
    replicas = facts.replicas or 0
    return Finding("ok", "role", "master" if not replicas else f"master, {replicas} replica{'s'[: replicas > 1]}")


def _cluster(facts: ServerFacts) -> Finding | None:
    if not facts.is_cluster:
        return None
    if not facts.is_cluster_address:
        fix = "write redis+cluster:// in the address, so that the node with our keys is followed"
        return Finding("bad", "cluster", "the server is part of a cluster", fix)
    if facts.cluster_state not in (None, "ok"):
        fix = "look at CLUSTER INFO and CLUSTER NODES: slots without a living node are refused"
        return Finding("bad", "cluster", f"its state is {facts.cluster_state}", fix)
    return Finding("ok", "cluster", "well")


def _eviction(facts: ServerFacts) -> Finding | None:
    policy = facts.memory_policy
    if policy is None:
        return None
    if policy == "noeviction":
        return Finding("ok", "eviction", policy)
    fix = "set maxmemory-policy to noeviction"
    if policy.startswith("allkeys"):
        message = f"{policy}: a full server throws jobs away"
        return Finding("bad" if facts.max_memory else "warn", "eviction", message, fix)
    message = f"{policy}: a full server throws leases away, and their jobs run twice"
    return Finding("warn", "eviction", message, fix)


def _memory(facts: ServerFacts) -> Finding | None:
    used, most = facts.used_memory, facts.max_memory
    if used is None or most is None:
        return None
    if not most:
        return Finding("ok", "memory", f"{used / _MB:,.1f} MB, without a limit")
    message = f"{used / _MB:,.1f} of {most / _MB:,.1f} MB"
    if used >= most - _BUFFERS:
        return Finding("bad", "memory", message, "make room: adds are refused, workers go on; raise maxmemory")
    if used >= most * _NEARLY_FULL:
        return Finding("warn", "memory", message, "keep fewer finished jobs or raise maxmemory: full, it refuses adds")
    return Finding("ok", "memory", message)


def _persistence(facts: ServerFacts) -> Finding | None:
    if facts.has_log is None:
        return None
    if facts.failed_writes:
        message = f"could not write {' and '.join(facts.failed_writes)}"
        return Finding("bad", "persistence", message, "look at the server's log and disk: it may refuse adds")
    if facts.has_log:
        return Finding("ok", "persistence", "each write goes to the append-only file")
    fix = "set appendonly to yes; a managed service has a setting for it"
    if facts.has_snapshots is False:
        return Finding("warn", "persistence", "nothing is kept on disk: a restart loses all jobs", fix)
    if facts.has_snapshots is None:
        return Finding("warn", "persistence", "no append-only file: a restart may lose jobs", fix)
    return Finding("warn", "persistence", "snapshots only: a crash loses the jobs since the last one", fix)


def _clock(facts: ServerFacts) -> Finding | None:
    skew_ms = facts.clock_skew_ms
    if skew_ms is None:
        return None
    if abs(skew_ms) < _SKEW_MS:
        return Finding("ok", "clock", "agrees with ours")
    direction = "ahead of" if skew_ms > 0 else "behind"
    message = f"the server's is {abs(skew_ms) / 1000:,.1f} s {direction} ours: delayed jobs come early or late"
    level: Level = "bad" if abs(skew_ms) >= _LARGE_SKEW_MS else "warn"
    return Finding(level, "clock", message, "let a time service such as NTP set the clocks of all machines")
