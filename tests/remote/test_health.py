"""The endpoints of a worker that is far away: what probes and scrapes learn, though it sees no store."""

import asyncio
import contextlib
from collections.abc import AsyncIterator
from pathlib import Path

import pytest

from bullpen.job.state import State
from bullpen.observing import Observers
from bullpen.telemetry import HealthServer, Metrics, Place
from bullpen.worker.context import Context
from tests.remote.serving import QUEUE, Served, serving
from tests.remote.test_agent import agent
from tests.remote.test_worker import ended, working
from tests.support.places import Place as StorePlace
from tests.support.places import only_on_sqlite
from tests.telemetry.asking import get

pytestmark = only_on_sqlite  # the worker does not see which store it is


async def build(ctx: Context) -> str:
    return "built"


@contextlib.asynccontextmanager
async def looked_at(served: Served) -> AsyncIterator[HealthServer]:
    """The endpoints of a worker that has done one job."""
    metrics = Metrics()
    health = HealthServer(metrics, Place())
    ref = await served.add()
    async with working(served, {QUEUE: build}, observers=Observers([metrics, health])):
        assert (await ended(served.store, ref)).state == State.COMPLETED
        yield health


async def test_a_remote_worker_tells_how_it_is_and_what_it_counted(served: Served) -> None:
    """And nothing of the store, of which the server tells."""
    async with looked_at(served) as health:
        for path in ("/health/live", "/health/ready", "/health"):
            answer = await asyncio.to_thread(get, f"{health.place}{path}")
            assert (answer.status, answer.json["status"]) == (200, "healthy"), path
        metrics = (await asyncio.to_thread(get, f"{health.place}/metrics")).text
    assert f'bullpen_jobs_total{{queue="{QUEUE}",name="build",outcome="completed"}} 1' in metrics
    assert f'bullpen_worker_slots{{queue="{QUEUE}"}}' in metrics
    assert "bullpen_queue_jobs{" not in metrics


async def test_without_its_server_a_remote_worker_is_alive_and_not_ready(place: StorePlace, tmp_path: Path) -> None:
    """Until the server is back."""
    async with contextlib.AsyncExitStack() as servers:
        served = await servers.enter_async_context(serving(place, tmp_path / "records.db"))
        async with looked_at(served) as health:
            await servers.aclose()
            assert (await asyncio.to_thread(get, f"{health.place}/health/live")).status == 200
            ready = await asyncio.to_thread(get, f"{health.place}/health/ready")
            assert (ready.status, ready.json["checks"]["server"]["status"]) == (503, "unhealthy")
            port = int(served.url.rpartition(":")[2])
            await servers.enter_async_context(serving(place, tmp_path / "records.db", port))
            while (await asyncio.to_thread(get, f"{health.place}/health/ready")).status != 200:
                pass


@pytest.mark.parametrize("by_environment", [True, False])
async def test_an_agent_serves_them_where_it_is_told(
    served: Served, by_environment: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    options = () if by_environment else ("--health-port", "0")
    if by_environment:
        monkeypatch.setenv("BULLPEN_HEALTH_PORT", "0")
    async with agent(served, "true", *options) as process:
        assert process.stderr is not None
        while (place := (await process.stderr.readline()).decode().partition("health at ")[2].strip()) == "":
            assert not process.stderr.at_eof()
        assert (await asyncio.to_thread(get, f"{place}/health/live")).status == 200
        metrics = (await asyncio.to_thread(get, f"{place}/metrics")).text
    assert "bullpen_worker_info{" in metrics
    assert "bullpen_queue_jobs" not in metrics
