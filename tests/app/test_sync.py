"""The front for code that is not async."""

import asyncio
import json
import subprocess
import sys
import threading
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from pathlib import Path

import pytest

from bullpen import BadData, BufferLost, Bullpen, Context, DeadFilter, JobFailed, ResultTimeout, State, UsageError
from bullpen.stores.base import AddOutcome, Cancellation
from tests.app.models import Point
from tests.support.outage import OutageStore
from tests.support.places import Place, only_on_redis, only_on_sqlite

ROOT = Path(__file__).parents[2]


class Shop:
    """An application as a Django project has one: made at import, used from threads."""

    def __init__(self, address: str) -> None:
        self.pen = pen = Bullpen(address)

        @pen.job(queue="shop")
        async def double(ctx: Context, number: int) -> int:
            return 2 * number

        @pen.job(queue="shop")
        async def point(ctx: Context, x: int) -> Point:
            return Point(x)

        @pen.job(queue="shop")
        def bad(ctx: Context) -> None:
            raise RuntimeError("broken")

        @pen.job(queue="shop")
        def add_another(ctx: Context) -> str:
            return pen.sync.add(double, 4).id

        self.double, self.point, self.bad, self.add_another = double, point, bad, add_another

    @contextmanager
    def working(self) -> Iterator[None]:
        """With a worker, in a thread of its own."""
        started: list[object] = []
        ready = threading.Event()

        async def work() -> None:
            worker = self.pen.worker()
            started.extend([asyncio.get_running_loop(), worker])
            ready.set()
            await worker.run()

        thread = threading.Thread(target=lambda: asyncio.run(work()))
        thread.start()
        ready.wait()
        loop, worker = started
        try:
            yield
        finally:
            loop.call_soon_threadsafe(worker.stop_now)  # type: ignore[attr-defined]
            thread.join()


@pytest.fixture
def shop(place: Place) -> Iterator[Shop]:
    shop = Shop(place.address)
    yield shop
    shop.pen.sync.close()


def test_a_job_is_added_and_awaited(shop: Shop) -> None:
    with shop.working():
        job = shop.pen.sync.add(shop.double, number=21)
        assert job.outcome == AddOutcome.ADDED
        assert job.result(timeout=60) == 42
        assert shop.pen.sync.add(shop.point, 3).result(timeout=60) == Point(3)
        assert shop.pen.sync.job(shop.double, job.id).result(timeout=60) == 42
        assert job.record().state == State.COMPLETED
        with pytest.raises(JobFailed, match="broken"):
            shop.pen.sync.add(shop.bad).result(timeout=60)
        inner = shop.pen.sync.add(shop.add_another).result(timeout=60)
        assert shop.pen.sync.job(shop.double, inner).result(timeout=60) == 8


def test_options_errors_and_waits_are_those_of_the_async_api(shop: Shop) -> None:
    later = shop.pen.sync.add(shop.double.options(delay=60, id="later"), 1)
    assert (later.id, later.record().state) == ("later", State.DELAYED)
    with pytest.raises(BadData, match="number"):
        shop.pen.sync.add(shop.double, "many")  # type: ignore[arg-type]
    with pytest.raises(ResultTimeout):
        later.result(timeout=0.01)
    assert later.cancel("no need") == Cancellation.CANCELLED
    assert shop.pen.sync.run(lambda pen: pen.queue("shop").counts()).failed == 1
    assert shop.pen.sync.run(lambda pen: pen.dead_letters.purge(DeadFilter(kind="cancelled"))) == 1


def test_many_threads_share_one(shop: Shop) -> None:
    """Hundreds of adds from twenty threads: all arrive, and one thread served them."""
    with ThreadPoolExecutor(20) as threads:
        jobs = list(threads.map(lambda n: shop.pen.sync.add(shop.double, n), range(400)))
        assert sum(thread.name == "bullpen-sync" for thread in threading.enumerate()) == 1
    assert len({job.id for job in jobs}) == 400
    assert shop.pen.sync.run(lambda pen: pen.queue("shop").counts()).prioritized == 400


def test_it_can_be_closed_twice_and_used_again(shop: Shop) -> None:
    shop.pen.sync.add(shop.double, 1)
    shop.pen.sync.close()
    shop.pen.sync.close()
    assert not any(thread.name == "bullpen-sync" for thread in threading.enumerate())
    shop.pen.sync.add(shop.double, 2)
    assert shop.pen.sync.run(lambda pen: pen.queue("shop").counts()).prioritized == 2


async def test_on_an_event_loop_it_is_refused(shop: Shop) -> None:
    """It would stand still; the async call is right there."""
    with pytest.raises(UsageError, match="await the async call instead"):
        shop.pen.sync.add(shop.double, 1)


async def test_it_has_a_store_of_its_own(shop: Shop) -> None:
    """So async code on one loop and threads of the same process do not meet on one connection."""
    first = await shop.double.add(1)
    second = await asyncio.to_thread(shop.pen.sync.add, shop.double, 2)
    assert (await shop.pen.queue("shop").counts()).prioritized == 2
    assert first.id != second.id
    await shop.pen.close()
    assert (await asyncio.to_thread(second.record)).state == State.PRIORITIZED


def test_adds_of_an_outage_are_buffered_and_a_loss_is_told(place: Place, monkeypatch: pytest.MonkeyPatch) -> None:
    from bullpen.queue.buffer import Buffer

    store = OutageStore(place.store())
    monkeypatch.setattr(store, "another", lambda: store)
    pen = Bullpen(store, buffer=10)

    @pen.job
    async def work(ctx: Context) -> None: ...

    store.is_away = True
    assert pen.sync.add(work).outcome == AddOutcome.BUFFERED
    store.is_away = False
    pen.sync.close()
    store.is_away = True
    pen.sync.add(work)
    monkeypatch.setattr(Buffer.close, "__defaults__", (0.05,))
    with pytest.raises(BufferLost, match="1 jobs"):
        pen.sync.close()


# ── in processes of their own ────────────────────────────────────────────────────────────

_PRELUDE = """
import json, logging, os, sys
from bullpen import Bullpen, BullpenError, Context

logging.disable(logging.WARNING)  # a server that keeps nothing on disk is warned of
pen = Bullpen(sys.argv[1])

@pen.job(queue="shop")
async def double(ctx: Context, number: int) -> int:
    return 2 * number
"""
_FORK_BEFORE_USE = """
children = []
for number in range(3):
    child = os.fork()
    if child == 0:
        pen.sync.add(double, number)
        sys.exit(0)          # as a pre-fork server's worker ends
    children.append(child)
codes = [os.waitpid(child, 0)[1] for child in children]
counts = pen.sync.run(lambda pen: pen.queue("shop").counts())
print(json.dumps([codes, counts.prioritized]))
"""
_FORK_AFTER_USE = """
pen.sync.add(double, 1)
reading, writing = os.pipe()
child = os.fork()
if child == 0:
    try:
        pen.sync.add(double, 2)
    except BullpenError as error:
        os.write(writing, json.dumps([error.code, str(error)]).encode())
    sys.exit(0)
os.waitpid(child, 0)
pen.sync.add(double, 3)
print(os.read(reading, 10_000).decode())
"""
_FORK_AND_BOTH_GO_ON = """
pen.sync.add(double, 1)
child = os.fork()
if child == 0:
    pen.sync.add(double, 2)
    sys.exit(0)
code = os.waitpid(child, 0)[1]
pen.sync.add(double, 3)
counts = pen.sync.run(lambda pen: pen.queue("shop").counts())
print(json.dumps([code, counts.prioritized]))
"""
_END_WITHOUT_CLOSE = """
pen.sync.add(double, 1)
print("added")
"""
_END_WITH_A_FULL_BUFFER = """
import sys
from bullpen import Bullpen, Context
from bullpen.queue.buffer import Buffer
from bullpen.settings import store_from
from tests.support.outage import OutageStore

Buffer.close.__defaults__ = (0.05,)  # no need to wait for what will not come
store = OutageStore(store_from(sys.argv[1]))
store.is_away = True
store.another = lambda: store
pen = Bullpen(store, buffer=5)

@pen.job
async def work(ctx: Context) -> None: ...

pen.sync.add(work)
pen.sync.add(work)
"""


def _run(program: str, place: Place) -> "subprocess.CompletedProcess[str]":
    return subprocess.run(
        [sys.executable, "-W", "ignore::DeprecationWarning", "-c", program, place.address],
        cwd=ROOT,
        capture_output=True,
        text=True,
        timeout=60,
        check=True,
    )


def test_it_works_in_each_child_of_a_pre_fork_server(place: Place) -> None:
    """The application is made before the fork and first used after it."""
    done = _run(_PRELUDE + _FORK_BEFORE_USE, place)
    assert json.loads(done.stdout) == [[0, 0, 0], 3]
    assert not done.stderr


@only_on_sqlite
def test_a_child_of_a_process_that_used_it_is_told_why_it_cannot(place: Place) -> None:
    """A SQLite file cannot cross a fork: an error that says so, and no hang; the parent goes on."""
    done = _run(_PRELUDE + _FORK_AFTER_USE, place)
    code, message = json.loads(done.stdout)
    assert code == "store-unavailable"
    assert "was open when this process was forked" in message


@only_on_redis
def test_a_child_of_a_process_that_used_it_has_a_connection_of_its_own(place: Place) -> None:
    """A server, unlike a file, is for whoever connects: both go on."""
    done = _run(_PRELUDE + _FORK_AND_BOTH_GO_ON, place)
    assert json.loads(done.stdout) == [0, 3]
    assert not done.stderr


def test_a_process_ends_without_a_close(place: Place) -> None:
    done = _run(_PRELUDE + _END_WITHOUT_CLOSE, place)
    assert (done.stdout, done.stderr) == ("added\n", "")


def test_a_process_that_ends_with_a_full_buffer_says_so_once(place: Place) -> None:
    done = _run(_END_WITH_A_FULL_BUFFER, place)
    assert [line for line in done.stderr.splitlines() if "bullpen" in line] == [
        "bullpen: 2 jobs could not be added before the end and are lost"
    ]
