"""How long pages take to answer beside many jobs.

    python -m benchmarks.serving.pages [--jobs 1000000] [--asks 200] [--pace 1000 0] [--folder FOLDER | --postgres]

The jobs are in the store and in the read model, of ten tenants and five names, a tenth of them failed. A worker
in a process of its own drains while pages are asked for, so that nothing answers from rest: at each pace that is
given in jobs a second, where 0 is without a pause, which on few cores measures who gets them. What it came to
is told beside the times. A folder that is given keeps the files, and is not filled again. Records are in a SQLite
file, or in a PostgreSQL server of our own.

Each call is asked for by itself, and whole pages as a browser opens them: the calls of the dashboard's page, those
at once that need nothing of one another, on connections that stay open. Asking is plain sockets, which takes the
server's cores next to nothing.
"""

import argparse
import asyncio
import contextlib
import json
import random
import statistics
import tempfile
import time
import uuid
from collections.abc import Iterator, Sequence
from pathlib import Path

from benchmarks.postgres import running_postgres
from benchmarks.serving.draining import draining, work_off
from benchmarks.serving.place import HOST, get_json, serving
from bullpen import NewJob
from bullpen.job.spec import JobSpec, Keep
from bullpen.records.records import Records
from bullpen.settings import store_from
from bullpen.stores.base import Store

_AT_ONCE = 1_000
_FINISHED = 0.2
"""Of the jobs, before pages are asked for."""
_KEEP_ALL = Keep()
_LINES = 6
"""Connections that a browser has to one server."""

Line = tuple[asyncio.StreamReader, asyncio.StreamWriter]


async def fill(store: Store, jobs: int) -> None:
    """Jobs of all states."""
    for start in range(0, jobs, _AT_ONCE):
        await store.add([_job(n) for n in range(start, start + _AT_ONCE)], request=uuid.uuid4().hex)
        if start < jobs * _FINISHED:
            await work_off(store, _AT_ONCE)


def _job(number: int) -> NewJob:
    spec = JobSpec(tenant=f"tenant-{number % 10}", tags=(f"batch-{number // 1000}",), keep_completed=_KEEP_ALL)
    data = json.dumps({"user": f"user-{number % 5000}"}).encode()
    return NewJob(f"queue-{number % 4}", f"type-{number % 5}", data, spec=spec)


def pages(jobs: int) -> Iterator[tuple[str, str]]:
    """Each page once, by its name; which job and which words, the dice say."""
    dice = random.randrange(jobs)
    queue, tenant = f"queue-{dice % 4}", f"tenant-{dice % 10}"
    yield "overview", "/v1/overview"
    yield "queue", f"/v1/queues/{queue}"
    yield "queue, minutes", f"/v1/queues/{queue}/minutes"
    yield "list, newest first", "/v1/jobs?limit=50"
    yield "list of a queue", f"/v1/jobs?queue={queue}&limit=50"
    yield "list, failed of all queues", "/v1/dead-letters?limit=50"
    yield "list, failed of a queue", f"/v1/jobs?queue={queue}&state=failed&limit=50"
    yield "list of a tenant", f"/v1/jobs?tenant={tenant}&state=completed&limit=50"
    yield "list of a tag", f"/v1/jobs?tag=batch-{dice // 1000}&limit=50"
    yield "list, a name of none", "/v1/jobs?name=nobody&limit=50"
    yield "list, a name of none in a tenant", f"/v1/jobs?name=nobody&tenant={tenant}&state=waiting&limit=50"
    yield "list, a workspace of none", "/v1/jobs?workspace=nowhere&limit=50"
    yield "search, one user", f"/v1/jobs?q=user-{dice % 5000}&limit=50"
    yield "search, a word of one in five", f"/v1/jobs?q=type-{dice % 5}&limit=50"
    yield "search, a tenant's", f"/v1/jobs?q=type-{dice % 5}&tenant={tenant}&limit=50"
    yield "search, failed of a queue", f"/v1/jobs?q=type-{dice % 5}&queue={queue}&state=failed&limit=50"
    yield "search, one job", f"/v1/jobs?q=type-{dice % 5}+{dice}&limit=50"
    yield "search, a word of none", "/v1/jobs?q=type+nowhere&limit=50"
    yield "failures", f"/v1/failures?queue={queue}"


Rounds = list[list[str]]
"""Calls of one page: each round at once, when the round before has answered."""


def whole_pages(jobs: int, job: str) -> Iterator[tuple[str, Rounds]]:
    """Each page of the dashboard, with the navigation beside it; `job` is the path of one."""
    dice = random.randrange(jobs)
    queue, nav = f"queue-{dice % 4}", "/v1/overview"
    yield "overview", [[nav, "/v1/failures"]]
    yield "queue", [[nav, f"/v1/queues/{queue}"], [f"/v1/queues/{queue}/minutes", f"/v1/jobs?queue={queue}&limit=50"]]
    yield "list", [[nav, "/v1/views", "/v1/jobs?limit=50"]]
    yield "search", [[nav, "/v1/views", f"/v1/jobs?q=user-{dice % 5000}&limit=50"]]
    yield "failures", [[nav, "/v1/failures"]]
    yield "dead letters", [[nav, "/v1/views", "/v1/dead-letters?limit=50"]]
    yield "job", [[nav, job], [f"{job}/logs", f"{job}/steps"]]


async def main(args: argparse.Namespace) -> dict[str, object]:
    async with contextlib.AsyncExitStack() as stack:
        folder = args.folder or Path(stack.enter_context(tempfile.TemporaryDirectory()))
        address, records_at = f"sqlite:{folder / 'queue.db'}", f"sqlite:{folder / 'records.db'}"
        if args.postgres:
            records_at = await stack.enter_async_context(running_postgres(folder))
        scanned_per_s = await prepare(folder, address, records_at, args.jobs)
        seen = {}
        async with serving(folder, address, records_at) as served:
            for pace in args.pace:
                seen[f"at {pace} jobs/s" if pace else "without a pause"] = await _ask(served.port, address, pace, args)
    return {"jobs": args.jobs, "scanned_per_s": scanned_per_s, "drained": seen}


async def prepare(folder: Path, address: str, records_at: str, jobs: int) -> int | None:
    """Fill the store and the read model, unless a run before has; how many jobs a second were scanned."""
    if (folder / "queue.db").exists():
        return None
    store = store_from(address)
    await store.open()
    await fill(store, jobs)
    start = time.perf_counter()
    async with await Records.open(records_at) as records:
        feeder = records.feeder(store, fields=["user"])
        await feeder.catch_up()
        await feeder.stop()
    await store.close()
    return round(jobs / (time.perf_counter() - start))


async def _ask(port: int, address: str, pace: int, args: argparse.Namespace) -> dict[str, object]:
    lines = [await asyncio.open_connection(HOST, port) for _ in range(_LINES)]
    ids = [job["id"] for job in (await get_json(*lines[0], "/v1/jobs?queue=queue-1&limit=500"))["items"]]  # type: ignore[index]
    calls: dict[str, list[float]] = {}
    whole: dict[str, list[float]] = {}
    async with draining(address, pace) as drained:
        for _ in range(args.asks):
            job = f"/v1/queues/queue-1/jobs/{random.choice(ids)}"
            for name, path in [*pages(args.jobs), ("job", job)]:
                calls.setdefault(name, []).append(await _took_ms(lines, [[path]]))
            for name, rounds in whole_pages(args.jobs, job):
                whole.setdefault(name, []).append(await _took_ms(lines, rounds))
    for _, writer in lines:
        writer.close()
    return {"drained_per_s": drained.per_s, "pages_ms": _shown(calls), "whole_pages_ms": _shown(whole)}


async def _took_ms(lines: Sequence[Line], rounds: Rounds) -> float:
    start = time.perf_counter()
    for paths in rounds:
        await asyncio.gather(*(get_json(*line, path) for line, path in zip(lines, paths, strict=False)))
    return (time.perf_counter() - start) * 1000


def _shown(times: dict[str, list[float]]) -> dict[str, dict[str, float]]:
    return {
        name: {"p50": _share(some, 50), "p95": _share(some, 95), "max": round(max(some), 1)}
        for name, some in times.items()
    }


def _share(times: list[float], percent: int) -> float:
    return round(statistics.quantiles(times, n=100)[percent - 1], 1)


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--jobs", type=int, default=1_000_000)
    parser.add_argument("--asks", type=int, default=200)
    parser.add_argument("--pace", type=int, nargs="+", default=[1_000, 0])
    where = parser.add_mutually_exclusive_group()
    where.add_argument("--folder", type=Path)
    where.add_argument("--postgres", action="store_true", help="records in PostgreSQL, which is made anew each time")
    print(json.dumps(asyncio.run(main(parser.parse_args())), indent=2))
