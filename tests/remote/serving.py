"""A server that listens on a free port of this machine, in the test's own loop, and callers with keys of their own."""

import asyncio
import contextlib
import uuid
from collections.abc import AsyncIterator
from pathlib import Path
from typing import Any

import httpx

from bullpen.job.record import JobRef
from bullpen.job.spec import JobSpec, NewJob
from bullpen.records.keys import NewKey, Role
from bullpen.records.records import Records
from bullpen.server.running import _Server
from bullpen.server.settings import ServerSettings
from bullpen.server.site import Site, opened_site
from bullpen.stores.base import Store
from tests.support.places import Place

QUEUE = "dev"


class Caller:
    """Calls with one key, and keeps what it is answered short."""

    def __init__(self, http: httpx.AsyncClient) -> None:
        self.http = http

    async def call(self, verb: str, body: Any, *, status: int = 200) -> Any:
        answer = await self.http.post(f"/v1/remote/{verb}", json=body)
        assert answer.status_code == status, f"{verb}: {answer.status_code} {answer.text}"
        return answer.json()

    async def refused(self, verb: str, body: Any) -> tuple[int, str]:
        """The status and the code of the problem."""
        answer = await self.http.post(f"/v1/remote/{verb}", json=body)
        problem = answer.json()
        assert answer.headers["content-type"] == "application/problem+json", answer.text
        return answer.status_code, problem["code"]

    async def claim(self, slots: int = 1, *, queue: str = QUEUE, **more: Any) -> list[dict[str, Any]]:
        asked = {"worker": "far", "queues": {queue: slots}, "request": uuid.uuid4().hex} | more
        jobs: list[dict[str, Any]] = (await self.call("claim", asked))["jobs"]
        return jobs

    async def settle(self, job: dict[str, Any], verdict: str = "complete", **more: Any) -> str:
        request = more.pop("request", uuid.uuid4().hex)
        said = {"lease": lease_of(job), "verdict": verdict} | more
        answer = await self.call("settle", {"settlements": [said], "request": request})
        outcome: str = answer["outcomes"][0]
        return outcome


class Served:
    """A running server, and the store behind it."""

    def __init__(self, url: str, site: Site, store: Store) -> None:
        self.url = url
        self.site = site
        self.store = store
        """The test's own, so that it sees what anyone sees."""
        self._closing = contextlib.AsyncExitStack()

    async def key(self, role: Role = Role.WORKER, **scope: Any) -> str:
        _, text = await self.site.records.keys.create(NewKey(name="far", role=role, **scope), created_by="test")
        return text

    async def caller(self, role: Role = Role.WORKER, **scope: Any) -> Caller:
        return await self.with_key(await self.key(role, **scope))

    async def with_key(self, text: str) -> Caller:
        http = httpx.AsyncClient(base_url=self.url, headers={"Authorization": f"Bearer {text}"}, timeout=60)
        return Caller(await self._closing.enter_async_context(http))

    async def add(self, name: str = "build", queue: str = QUEUE, **spec: Any) -> JobRef:
        new = NewJob(queue, name, b'{"n":1}', spec=JobSpec(**spec))
        (added,) = await self.store.add([new], request=uuid.uuid4().hex)
        return JobRef(queue, added.id)

    async def close(self) -> None:
        await self._closing.aclose()


def lease_of(job: dict[str, Any]) -> dict[str, Any]:
    return {field: job[field] for field in ("queue", "id", "token", "epoch")}


@contextlib.asynccontextmanager
async def serving(place: Place, records: Path, port: int = 0) -> AsyncIterator[Served]:
    """A server on this place, until the block ends."""
    settings = ServerSettings(port=port)
    store = place.store()
    await store.open()
    async with opened_site(place.store(), await Records.open(f"sqlite:{records}"), settings) as site:
        found: asyncio.Future[Any] = asyncio.get_running_loop().create_future()
        server = _Server(site, settings, found.set_result)
        running: asyncio.Future[Any] = asyncio.create_task(server.serve())
        await asyncio.wait([found, running], return_when=asyncio.FIRST_COMPLETED)
        served = Served(found.result(), site, store)
        try:
            yield served
        finally:
            await served.close()
            server.end()
            await running
            await store.close()
