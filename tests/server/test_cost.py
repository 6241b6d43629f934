"""Looking on costs the store little: what the server asks does not grow with the jobs that run."""

import asyncio
import inspect
from collections import Counter
from collections.abc import Awaitable, Callable
from typing import Any

from fastapi.routing import APIRoute

from bullpen import State, Worker, WorkerOptions
from bullpen.server.app import create_app
from bullpen.server.settings import ServerSettings
from bullpen.server.site import opened_site
from bullpen.stores.base import Store
from tests.server.asgi import stream
from tests.server.calling import OWN
from tests.support.around import StoreAround
from tests.support.places import Place

_JOBS = 1_000


class _Counted(StoreAround):
    """Counts what is asked of the store."""

    def __init__(self, inner: Store) -> None:
        super().__init__(inner)
        self.asked: Counter[str] = Counter()

    def __getattr__(self, name: str) -> Any:
        found = getattr(self.inner, name)
        if not asyncio.iscoroutinefunction(found) or name in ("open", "close"):
            return found

        async def counted(*args: Any, **named: Any) -> Any:
            self.asked[name] += 1
            ask: Callable[..., Awaitable[Any]] = found
            return await ask(*args, **named)

        return counted


def test_no_request_needs_a_thread_for_what_it_depends_on() -> None:
    """FastAPI sends a function that is no coroutine to a thread, and the request waits until that has its turn."""
    app = create_app("sqlite:unused.db", "sqlite:unused.db", ServerSettings(port=0))
    unseen = [route.dependant for route in app.routes if isinstance(route, APIRoute)]
    assert len(unseen) > 50
    plain = set()
    while unseen:
        one = unseen.pop()
        unseen += one.dependencies
        if one.call is not None and not _is_coroutine(one.call):
            plain.add(one.call)
    assert plain == set()


def _is_coroutine(call: Callable[..., Any]) -> bool:
    return inspect.iscoroutinefunction(call) or inspect.iscoroutinefunction(type(call).__call__)


async def test_a_thousand_jobs_are_looked_at_in_few_trips(place: Place, address: str) -> None:
    """With a stream of events and a live view open, as a dashboard has them."""
    counted = _Counted(place.store())
    settings = ServerSettings(port=0)
    async with opened_site(counted, address, settings) as site:
        app = create_app(site=site, settings=settings)
        queue = site.queue("mail")
        await queue.add("work", id="first")
        site.feeder.nudge()
        async with (
            stream(app, "/v1/events", OWN, {"queue": "mail"}) as heard,
            stream(app, "/v1/live", OWN),
            asyncio.timeout(100),
        ):
            await heard.begun()
            while "mail" not in await site.standing.names():
                await asyncio.sleep(0.02)
            before, begun = counted.asked.copy(), asyncio.get_running_loop().time()
            own = place.store()
            await own.open()

            async def work(_: Any) -> None: ...

            worker = Worker(own, {"mail": {"work": work}}, WorkerOptions(concurrency=50))
            running = asyncio.create_task(worker.run())
            await queue.add_bulk([queue.prepare("work") for _ in range(_JOBS)])
            while (await site.records.jobs.counts()).get("mail", {}).get(State.COMPLETED, 0) < _JOBS:
                await asyncio.sleep(0.1)
            seconds = asyncio.get_running_loop().time() - begun
            worker.stop()
            await running
            await own.close()
        asked = counted.asked - before
    asked.pop("add", None)
    # So many a second at most, however many jobs run in it: on a slow machine it is more seconds.
    assert sum(asked.values()) <= 50 + 60 * seconds, asked
    assert sum(asked.values()) < _JOBS * 3
