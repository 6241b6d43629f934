"""Four daemons behind HTTP are killed and cut off at random, and the server is killed: no job lost, none settled twice.

A hundred and fifty jobs here, five thousand by `make soak`.
"""

import asyncio
import collections
import os
import random
import signal
import socket
import sys
import uuid
from collections.abc import AsyncIterator
from pathlib import Path

import pytest

from bullpen import EventKind, FailureKind, State
from bullpen.job.record import JobRef
from bullpen.job.spec import KEEP_ALL, JobSpec, NewJob
from bullpen.records.keys import NewKey, Role
from bullpen.records.records import Records
from bullpen.stores.base import Store
from bullpen.worker.signals import tell
from tests.support.places import Place, place, redis_server
from tests.support.proxy import CuttingProxy, cutting_proxy
from tests.worker.waiting import until

__all__ = ["place", "redis_server"]

QUEUE = "dev"
AGENTS = 4
_WORK = "sleep 0.05; " + 'read data; echo "::result $data"'
"""Gives back what it was given."""


class Cast:
    """The server and its daemons; whoever dies is played by another at once."""

    def __init__(self, place: Place, folder: Path) -> None:
        self._place = place
        self._records = f"sqlite:{folder / 'records.db'}"
        self.port = _free_port()
        self._token = folder / "token"
        self._server: asyncio.subprocess.Process | None = None
        self._agents: list[asyncio.subprocess.Process] = []
        self.kills = 0
        self.restarts = 0

    async def raise_curtain(self) -> None:
        records = await Records.open(self._records)
        _, text = await records.keys.create(NewKey(name="agents", role=Role.WORKER), created_by="test")
        await records.close()
        self._token.write_text(text)
        await self._start_server()

    async def _start_server(self) -> None:
        self._server = await _bullpen(
            "server", "--port", str(self.port), "--store", self._place.address, "--records", self._records
        )

    async def enter(self, port: int) -> None:
        self._agents.append(
            await _bullpen(
                "agent", "--server", f"http://127.0.0.1:{port}", "--token-file", str(self._token), "--queue", QUEUE,
                "--concurrency", "4", "--lease", "2", "--", "/bin/sh", "-c", _WORK,
            )
        )  # fmt: skip

    async def kill_one(self, port: int) -> None:
        agent = self._agents.pop(random.randrange(len(self._agents)))
        await _kill(agent)
        self.kills += 1
        await self.enter(port)

    async def restart_server(self) -> None:
        assert self._server is not None
        await _kill(self._server)
        self.restarts += 1
        await self._start_server()

    async def leave(self) -> None:
        """Agents drain and leave by themselves; the server after them."""
        assert self._server is not None
        for process in (*self._agents, self._server):
            tell(process, signal.SIGTERM)
            await process.wait()


async def _bullpen(*words: str) -> asyncio.subprocess.Process:
    silent = asyncio.subprocess.DEVNULL
    return await asyncio.create_subprocess_exec(
        sys.executable, "-m", "bullpen.cli", *words, stdout=silent, stderr=silent
    )  # fmt: skip


async def _kill(process: asyncio.subprocess.Process) -> None:
    process.kill()
    assert await process.wait() == -signal.SIGKILL


def _free_port() -> int:
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        return int(probe.getsockname()[1])


async def _ends(store: Store) -> AsyncIterator[JobRef]:
    """Each end of a job, as it comes; fails if the log has lost one."""
    cursor: str | None = ""
    while True:
        page = await store.events(QUEUE, after=cursor, limit=1_000, timeout_ms=1_000)
        assert not page.gap
        cursor = page.cursor
        for event in page.events:
            if event.kind in (EventKind.COMPLETED, EventKind.FAILED):
                assert event.job_id is not None
                yield JobRef(QUEUE, event.job_id)


async def _count_ends(store: Store, ends: collections.Counter[JobRef]) -> None:
    async for ref in _ends(store):
        ends[ref] += 1


async def _disturb(cast: Cast, proxies: list[CuttingProxy], ends: collections.Counter[JobRef], every: int) -> None:
    """Kills and cuts, until cancelled, one after so many jobs: a slow machine gets on too."""
    acts = ["kill", "cut answer", "cut off", "restart"]
    while True:
        enough = ends.total() + every
        while ends.total() < enough:
            await asyncio.sleep(0.01)  # between two looks
        proxy = random.choice(proxies)
        match random.choices(acts, weights=[8, 6, 3, 1])[0]:
            case "kill":
                await cast.kill_one(proxy.port)
            case "cut answer":
                proxy.cut_next_answer()
            case "cut off":
                await proxy.cut()
            case "restart":
                await cast.restart_server()


async def chaos(place: Place, folder: Path, count: int, disturbances: int) -> str:
    store = place.store()
    await store.open()
    cast = Cast(place, folder)
    await cast.raise_curtain()
    spec = JobSpec(attempts=3, keep_completed=KEEP_ALL)
    jobs = [NewJob(QUEUE, "echo", b'{"n":%d}' % n, spec=spec) for n in range(count)]
    ends: collections.Counter[JobRef] = collections.Counter()
    every = max(count // disturbances, 1)
    async with cutting_proxy(cast.port) as one, cutting_proxy(cast.port) as two:
        for n in range(AGENTS):
            await cast.enter((one, two)[n % 2].port)
        added = [JobRef(QUEUE, one.id) for one in await store.add(jobs, request=uuid.uuid4().hex)]
        counting = asyncio.create_task(_count_ends(store, ends))
        disturbing = asyncio.create_task(_disturb(cast, [one, two], ends, every))
        await until(lambda: store.counts(QUEUE), lambda counts: counts.unfinished == 0, limit_s=count)
        disturbing.cancel()
        await asyncio.gather(disturbing, return_exceptions=True)
        await until(lambda: _total(ends), lambda total: total >= count)
        await cast.leave()
    counting.cancel()
    await asyncio.gather(counting, return_exceptions=True)
    assert {ref for ref, times in ends.items() if times != 1} == set(), "settled by two leases"
    assert set(ends) == set(added)
    stalls, gave_up = 0, 0
    for n, ref in enumerate(added):
        record = await store.job(ref)
        stalls += record.stalls
        if record.state == State.FAILED:
            assert record.failure is not None
            assert record.failure.kind == FailureKind.STALLED, record.failure
            gave_up += 1
        else:
            assert record.result == b'{"n":%d}' % n
    await store.close()
    await place.check()
    return (
        f"{count} jobs, {cast.kills} agents killed, {cast.restarts} servers killed, {stalls} crashes recovered,"
        f" {gave_up} failed of too many"
    )


async def _total(ends: collections.Counter[JobRef]) -> int:
    return ends.total()


@pytest.mark.timeout(300)
async def test_a_hundred_and_fifty_jobs_behind_http(place: Place, tmp_path: Path) -> None:
    """Every job ends once, with its own result."""
    print(await chaos(place, tmp_path, 150, 25))


@pytest.mark.soak
@pytest.mark.timeout(5_400)
async def test_five_thousand_jobs_behind_http(place: Place, tmp_path: Path) -> None:
    print(await chaos(place, tmp_path, int(os.environ.get("SOAK_JOBS", "5000")), 250))
