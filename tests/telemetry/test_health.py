"""A worker's endpoints, asked over HTTP while it works, drains, and holds its loop up."""

import asyncio
import re
import threading
from collections.abc import AsyncIterator

import pytest

from bullpen import Bullpen, Context, Worker, WorkerOptions
from bullpen.errors import BadOption
from bullpen.telemetry.checks import HealthOptions
from bullpen.telemetry.health import HealthServer
from bullpen.telemetry.http import Place as Listening
from bullpen.telemetry.metrics import Metrics
from tests.telemetry.asking import Answered, get
from tests.telemetry.conftest import MakePen


class Setting:
    """A worker with its endpoints, and the gate at which its jobs wait."""

    def __init__(self, pen: Bullpen, health: HealthServer) -> None:
        self.pen = pen
        self.health = health
        self.worker: Worker = pen.worker(options=WorkerOptions(concurrency=2, grace=30))
        self.running = asyncio.create_task(self.worker.run())

    async def ask(self, path: str, method: str = "GET") -> Answered:
        while not self.health.place.port:
            await asyncio.sleep(0.001)  # until it listens
        return await asyncio.to_thread(get, f"{self.health.place}{path}", method)

    async def until(self, path: str, status: int) -> Answered:
        while (answer := await self.ask(path)).status != status:
            pass
        return answer


@pytest.fixture
def options() -> HealthOptions:
    """A busy machine holds a loop up as well: with the usual limits only a handler does so for too long."""
    return HealthOptions()


@pytest.fixture
async def setting(make_pen: MakePen, options: HealthOptions) -> AsyncIterator[Setting]:
    metrics = Metrics()
    health = HealthServer(metrics, Listening(), options)
    pen = make_pen(metrics, health)

    @pen.job(queue="mail")
    async def gated(ctx: Context) -> None:
        await Gate.opened.wait()

    @pen.job(queue="mail")
    async def blocking(ctx: Context) -> None:
        Gate.blocked.set()
        Gate.unblock.wait(60)

    @pen.job(queue="mail")
    async def broken(ctx: Context) -> None:
        raise ValueError("no")

    class_gate()
    setting = Setting(pen, health)
    yield setting
    Gate.opened.set()
    Gate.unblock.set()
    setting.worker.stop_now()
    await setting.running


class Gate:
    opened: asyncio.Event
    blocked: threading.Event
    unblock: threading.Event


def class_gate() -> None:
    Gate.opened, Gate.blocked, Gate.unblock = asyncio.Event(), threading.Event(), threading.Event()


async def test_a_worker_is_alive_and_ready(setting: Setting) -> None:
    ready = await setting.until("/health/ready", 200)
    assert ready.json["status"] == "healthy"
    assert set(ready.json["checks"]) == {"event_loop", "pool", "store"}
    assert ready.content_type == "application/json"
    assert (await setting.ask("/health/live")).status == 200


async def test_the_details_say_how_everything_is(setting: Setting) -> None:
    await setting.until("/health/ready", 200)
    job = await setting.pen.queue("mail").add("broken")
    while (await job.record()).state != "failed":
        await asyncio.sleep(0.001)
    health = await setting.ask("/health")
    assert health.status == 200
    assert health.json["status"] == "degraded"
    assert health.json["checks"]["dead_letters"] == {
        "status": "degraded",
        "details": {"count": 1, "by_queue": {"mail": 1}},
    }
    assert health.json["checks"]["workers"]["details"] == {"count": 1, "expected": 1}


async def test_its_metrics_are_there_with_those_of_the_queues(setting: Setting) -> None:
    await setting.until("/health/ready", 200)
    await setting.pen.queue("mail").add("gated")
    while 'bullpen_worker_slots_busy{queue="mail"} 1' not in (await setting.ask("/metrics")).text:
        pass
    answer = await setting.ask("/metrics")
    assert answer.content_type == "text/plain; version=0.0.4; charset=utf-8"
    for line in (
        "bullpen_store_up 1",
        'bullpen_queue_jobs{queue="mail",state="active"} 1',
        'bullpen_worker_slots{queue="mail"} 2',
        'bullpen_jobs_started_total{queue="mail",name="gated"} 1',
        "bullpen_worker_ready 1",
    ):
        assert line in answer.text.splitlines()


async def test_one_that_drains_is_alive_and_not_ready(setting: Setting) -> None:
    await setting.until("/health/ready", 200)
    await setting.pen.queue("mail").add("gated")
    while not setting.worker.info().running:
        await asyncio.sleep(0.001)
    setting.worker.stop()
    answer = await setting.until("/health/ready", 503)
    assert answer.json["checks"]["pool"]["details"]["state"] == "draining"
    assert (await setting.ask("/health/live")).status == 200


@pytest.mark.parametrize("options", [HealthOptions(ready_within=0.2, live_within=0.4)], ids=["soon"])
async def test_a_handler_that_holds_the_loop_up_is_seen_from_outside(setting: Setting) -> None:
    """The endpoint answers, though the worker's loop does nothing; and says so."""
    await setting.until("/health/ready", 200)
    address = str(setting.health.place)
    seen: list[Answered] = []

    def look() -> None:
        Gate.blocked.wait(60)
        while (live := get(f"{address}/health/live")).status == 200:
            pass
        seen.extend([live, get(f"{address}/health/ready"), get(f"{address}/metrics")])
        Gate.unblock.set()

    looking = asyncio.create_task(asyncio.to_thread(look))
    await setting.pen.queue("mail").add("blocking")
    await looking
    live, ready, metrics = seen
    assert live.json["checks"]["event_loop"]["status"] == "unhealthy"
    assert ready.status == 503
    (silent,) = re.findall(r"^bullpen_worker_loop_silent_seconds (\S+)$", metrics.text, re.MULTILINE)
    assert float(silent) > 0.4
    await setting.until("/health/ready", 200)


@pytest.mark.parametrize(
    "path, method, status", [("/", "GET", 404), ("/health", "POST", 405), ("/health/live", "HEAD", 200)]
)
async def test_other_requests_are_told_so(setting: Setting, path: str, method: str, status: int) -> None:
    await setting.until("/health/ready", 200)
    answer = await setting.ask(path, method)
    assert answer.status == status
    assert (answer.text == "") == (method == "HEAD")


async def test_a_port_that_is_taken_ends_the_worker(setting: Setting, make_pen: MakePen) -> None:
    await setting.until("/health/ready", 200)
    metrics = Metrics()
    pen = make_pen(metrics, HealthServer(metrics, setting.health.place))

    @pen.job(queue="mail")
    async def never(ctx: Context) -> None: ...

    with pytest.raises(BadOption, match="cannot listen"):
        await pen.worker().run()


async def test_a_scrape_asks_for_no_list_of_queues(setting: Setting, monkeypatch: pytest.MonkeyPatch) -> None:
    """On a large server such a list takes longer than a scrape may: a worker tells of the queues that it serves."""

    async def refused(_: object) -> list[str]:
        raise AssertionError("the list of all queues was asked for")

    monkeypatch.setattr(type(setting.pen.store), "queues", refused)
    await setting.pen.queue("elsewhere").add("other")
    await setting.pen.queue("mail").add("gated")
    while 'state="active"} 1' not in (text := (await setting.ask("/metrics")).text):
        assert "bullpen_store_up 1" in text
    assert 'bullpen_queue_jobs{queue="elsewhere"' not in text
    assert (await setting.ask("/health")).json["checks"]["queues"]["details"]["count"] == 1
