"""What a doctor can find: about the file, about workers and queues."""

import platform
from collections.abc import Sequence

from bullpen.cli.times import ago
from bullpen.clock import SYSTEM_CLOCK
from bullpen.job.state import State
from bullpen.stores.base import Counts, Store, WorkerInfo, WorkerState
from bullpen.stores.finding import Finding, Level
from bullpen.stores.sqlite.diagnosing import Diagnosis

_MB = 1_000_000
_LITTLE_ROOM_MB, _NO_ROOM_MB = 1_000, 100
_LARGE_WAL_MB = 500
_OLDEST_SQLITE = (3, 35)
_LATE_BEAT_MS = 12_000
_LOOKED_AT = 1_000


def about_python() -> Finding:
    return Finding("ok", "python", platform.python_version())


def about_file(found: Diagnosis) -> list[Finding]:
    return [_sqlite(found), _schema(found), _integrity(found), _sync(found), _room(found), _log(found), _dead(found)]


def _sqlite(found: Diagnosis) -> Finding:
    version = found.sqlite_version
    if tuple(int(part) for part in version.split(".")[:2]) < _OLDEST_SQLITE:
        return Finding("bad", "sqlite", f"{version} is too old", "use a Python whose SQLite is 3.35 or newer")
    return Finding("ok", "sqlite", version)


def _schema(found: Diagnosis) -> Finding:
    here, known = found.schema_version, found.known_schema_version
    if here > known:
        return Finding("bad", "schema", f"version {here}; this Bullpen knows up to {known}", "upgrade this Bullpen")
    if here < known:
        return Finding("warn", "schema", f"version {here} of {known}", "the next worker or add brings it up to date")
    return Finding("ok", "schema", f"version {here}")


def _integrity(found: Diagnosis) -> Finding:
    if found.problems:
        fix = "stop the workers, keep a copy of the file, restore a backup"
        return Finding("bad", "integrity", "; ".join(found.problems), fix)
    return Finding("ok", "integrity", "the file is sound")


def _sync(found: Diagnosis) -> Finding:
    if found.sync == "normal":
        return Finding("warn", "sync", "normal: a power loss may take the last moments", "use ?sync=full, unless meant")
    return Finding("ok", "sync", "full: acknowledged jobs survive a power loss")


def _room(found: Diagnosis) -> Finding:
    free_mb = found.free_disk_bytes // _MB
    if free_mb < _LITTLE_ROOM_MB:
        level: Level = "bad" if free_mb < _NO_ROOM_MB else "warn"
        return Finding(level, "disk", f"{free_mb:,} MB free", "make room: without it, adds are refused")
    return Finding("ok", "disk", f"{free_mb:,} MB free")


def _log(found: Diagnosis) -> Finding:
    wal_mb = found.wal_bytes // _MB
    if wal_mb > _LARGE_WAL_MB:
        fix = "something reads for long; end programs that hold the file open"
        return Finding("warn", "size", f"{found.file_bytes // _MB:,} MB, and a log of {wal_mb:,} MB", fix)
    return Finding("ok", "size", f"{found.file_bytes / _MB:,.1f} MB")


def _dead(found: Diagnosis) -> Finding:
    if found.dead_processes:
        message = f"{found.dead_processes} died without giving back what they held"
        return Finding("warn", "processes", message, "start a worker: it takes their jobs back")
    return Finding("ok", "processes", "none died unnoticed")


# ── workers and queues ───────────────────────────────────────────────────────────────────


def about_workers(workers: Sequence[WorkerInfo]) -> list[Finding]:
    now_ms = SYSTEM_CLOCK.now_ms()
    found = []
    for worker in workers:
        if worker.stuck:
            jobs = ", ".join(map(str, worker.stuck[:3]))
            fix = "restart that worker; run such handlers in a process"
            found.append(Finding("warn", "workers", f"{worker.name}: {len(worker.stuck)} stuck ({jobs})", fix))
        if now_ms - worker.beat_ms > _LATE_BEAT_MS:
            fix = "look whether its process lives and its machine is overloaded"
            found.append(Finding("warn", "workers", f"{worker.name}: last seen {ago(worker.beat_ms, now_ms)}", fix))
    return found or [Finding("ok", "workers", f"{len(workers)} seen lately" if workers else "none running")]


async def about_queue(store: Store, name: str, counts: Counts, workers: Sequence[WorkerInfo]) -> list[Finding]:
    """What is worth a word about one queue; nothing if all is well."""
    found = []
    runnable = counts.waiting + counts.prioritized
    workers = [worker for worker in workers if worker.state != WorkerState.STOPPED]
    has_worker = any(name in worker.queues for worker in workers)
    if counts.paused and runnable:
        found.append(_of(name, f"paused with {_jobs(runnable)} waiting", f"bullpen resume {name}, if not meant"))
    elif runnable and not has_worker:
        found.append(_of(name, f"{_jobs(runnable)} waiting and no worker", "start one: bullpen worker MODULE:PEN"))
    if counts.waiting and counts.prioritized:
        message = f"mixes priority 0 ({counts.waiting:,}) with others ({counts.prioritized:,})"
        found.append(_of(name, message, "give all jobs a priority: those without run before all others"))
    if counts.active and (lost := await _lost(store, name, workers)):
        fix = "start a worker: it takes them back once their leases ran out"
        found.append(_of(name, f"{_jobs(lost)} active, but not on a worker that is alive", fix))
    if counts.failed:
        found.append(_of(name, f"{_jobs(counts.failed)} failed", f"bullpen dead --queue {name} --group"))
    return found


async def _lost(store: Store, queue: str, workers: Sequence[WorkerInfo]) -> int:
    alive = {worker.name for worker in workers}
    page = await store.jobs(queue, State.ACTIVE, limit=_LOOKED_AT)
    return sum(job.worker not in alive for job in page.jobs)


def _of(queue: str, message: str, fix: str) -> Finding:
    return Finding("warn", f"queue {queue}", message, fix)


def _jobs(count: int) -> str:
    return "1 job" if count == 1 else f"{count:,} jobs"
