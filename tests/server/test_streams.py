"""Streams as their readers have them: over a socket, with the formats and the headers."""

import asyncio
import json
from collections.abc import AsyncIterator, Iterator
from typing import Any

import httpx
import pytest
import websockets

from bullpen import Queue
from bullpen.records.keys import NewKey
from bullpen.records.records import Records
from bullpen.server.settings import ServerSettings
from bullpen.stores.base import Store
from tests.server.calling import only_on_files
from tests.server.running import running
from tests.support.places import Place

_LIMIT_S = 60


@pytest.fixture
def url(place: Place, address: str, settings: ServerSettings) -> Iterator[str]:
    with running(place.store(), address, settings) as url:
        yield url


@pytest.fixture
async def store(place: Place, url: str) -> AsyncIterator[Store]:
    """Another one on the same place, as a worker would have."""
    store = place.store()
    await store.open()
    yield store
    await store.close()


class Frame(dict[str, str]):
    """The fields of one server-sent event; `:` is a comment."""

    @property
    def words(self) -> dict[str, Any]:
        found: dict[str, Any] = json.loads(self["data"])
        return found


async def _frames(answer: httpx.Response) -> AsyncIterator[Frame]:
    frame = Frame()
    async for line in answer.aiter_lines():
        if line:
            name, _, value = line.partition(":")
            frame[name or ":"] = value.strip()
        else:
            yield frame
            frame = Frame()


async def _next(frames: AsyncIterator[Frame], kind: str) -> Frame:
    async with asyncio.timeout(_LIMIT_S):
        async for frame in frames:
            if frame.get("event") == kind:
                return frame
    raise AssertionError("the stream ended")


async def test_a_stream_goes_on_where_its_reader_left_off(url: str, store: Store) -> None:
    queue = Queue(store, "mail")
    await queue.add("work", id="zero")
    async with httpx.AsyncClient(base_url=url, timeout=_LIMIT_S) as http:
        async with http.stream("GET", "/v1/events", params={"queue": "mail", "kinds": "added,failed"}) as answer:
            assert answer.headers["content-type"].startswith("text/event-stream")
            frames = _frames(answer)
            assert ":" in await anext(frames)
            await queue.add("work", id="one", tenant="acme")
            frame = await _next(frames, "added")
            assert (frame.words["job_id"], frame.words["tenant"]) == ("one", "acme")
            assert frame["id"] == frame.words["cursor"]
        await queue.add("work", id="two")
        headers = {"Last-Event-ID": frame["id"]}
        async with http.stream("GET", "/v1/events", params={"queue": "mail"}, headers=headers) as answer:
            frames = _frames(answer)
            assert (await _next(frames, "added")).words["job_id"] == "two"
            await queue.add("work", id="three")
            assert (await _next(frames, "added")).words["job_id"] == "three"


async def test_all_queues_by_one_stream(url: str, store: Store) -> None:
    await Queue(store, "mail").add("work", id="m1")
    await Queue(store, "reports").add("work", id="r1")
    async with httpx.AsyncClient(base_url=url, timeout=_LIMIT_S) as http:
        async with asyncio.timeout(_LIMIT_S):
            while len((await http.get("/v1/queues")).json()["items"]) < 2:
                await asyncio.sleep(0.05)
        first = (await http.get("/v1/events/poll")).json()
        await Queue(store, "mail").add("work", id="m2")
        await Queue(store, "reports").add("work", id="r2")
        async with http.stream("GET", "/v1/events", params={"after": first["cursor"], "kinds": "added"}) as answer:
            frames = _frames(answer)
            found = {(await _next(frames, "added")).words["job_id"] for _ in range(2)}
        assert found == {"m2", "r2"}


@only_on_files
async def test_a_stream_of_hundreds_of_queues_goes_on(url: str, store: Store) -> None:
    """By a poll's cursor and by the id of a server-sent event, which has a long way through headers."""
    queues = [f"queue-{n}" for n in range(300)]
    for queue in queues:
        await Queue(store, queue).add("work")
    async with httpx.AsyncClient(base_url=url, timeout=_LIMIT_S) as http, asyncio.timeout(_LIMIT_S):
        while len((await http.get("/v1/queues")).json()["items"]) < len(queues):
            await asyncio.sleep(0.05)
        polled = (await http.get("/v1/events/poll")).json()
        for job in ("one", "two"):
            await Queue(store, queues[-1]).add("work", id=job)
            asked = {"after": polled["cursor"], "wait_s": 20, "kinds": "added"}
            polled = (await http.get("/v1/events/poll", params=asked)).json()
            assert [item["job_id"] for item in polled["items"]] == [job]
        async with http.stream("GET", "/v1/events", params={"after": polled["cursor"], "kinds": "added"}) as answer:
            frames = _frames(answer)
            await Queue(store, queues[0]).add("work", id="three")
            assert (await _next(frames, "added")).words["job_id"] == "three"
            cursor = (await anext(frames))["id"]  # of all queues: after the events of a batch
        await Queue(store, queues[0]).add("work", id="four")
        async with http.stream("GET", "/v1/events", headers={"Last-Event-ID": cursor}) as answer:
            assert (await _next(_frames(answer), "added")).words["job_id"] == "four"


async def test_a_socket_and_a_poll_tell_the_same(url: str, store: Store) -> None:
    queue = Queue(store, "mail")
    await queue.add("work", id="zero")
    async with httpx.AsyncClient(base_url=url, timeout=_LIMIT_S) as http:
        start = (await http.get("/v1/events/poll", params={"queue": "mail"})).json()
        assert (start["items"], start["gap"]) == ([], False)
        address = f"{url.replace('http', 'ws')}/v1/events/ws?queue=mail&job=one&after={start['cursor']}"
        async with websockets.connect(address) as socket, asyncio.timeout(_LIMIT_S):
            waiting = asyncio.create_task(
                http.get("/v1/events/poll", params={"queue": "mail", "after": start["cursor"], "wait_s": 20})
            )
            await queue.add("work", id="two")
            await queue.add("work", id="one")
            heard = json.loads(await socket.recv())
            assert (heard["kind"], heard["job_id"]) == ("added", "one")
            polled = (await waiting).json()
        assert polled["items"][0]["job_id"] == "two"


async def test_a_socket_of_all_queues_goes_on_where_it_was_cut(url: str, store: Store) -> None:
    """It is told cursors that are good for all queues: at once, and after the events of several."""
    for queue in ("mail", "reports"):
        await Queue(store, queue).add("work", id="zero")
    async with httpx.AsyncClient(base_url=url, timeout=_LIMIT_S) as http, asyncio.timeout(_LIMIT_S):
        while len((await http.get("/v1/queues")).json()["items"]) < 2:
            await asyncio.sleep(0.05)
    address = f"{url.replace('http', 'ws')}/v1/events/ws?kinds=added"
    async with asyncio.timeout(_LIMIT_S):
        async with websockets.connect(address) as socket:
            jobs, cursor = await _told(socket, 0)
        for job in ("one", "two"):
            for queue in ("mail", "reports"):
                await Queue(store, queue).add("work", id=job)
            async with websockets.connect(f"{address}&after={cursor}") as socket:
                jobs, cursor = await _told(socket, 2)
                assert jobs == {"mail": job, "reports": job}


async def _told(socket: websockets.ClientConnection, count: int) -> tuple[dict[str, str], str]:
    """So many jobs by their queues, and the cursor that comes after them."""
    jobs: dict[str, str] = {}
    async for text in socket:
        words = json.loads(text)
        if words["kind"] != "cursor":
            jobs[words["queue"]] = words["job_id"]
        elif len(jobs) == count:
            return jobs, words["cursor"]
    raise AssertionError("the socket was closed")


async def test_live_updates_tell_what_changed(url: str, store: Store) -> None:
    queue = Queue(store, "mail")
    await queue.add("work", id="zero")
    async with httpx.AsyncClient(base_url=url, timeout=_LIMIT_S) as http:
        async with asyncio.timeout(_LIMIT_S):
            while not (await http.get("/v1/queues")).json()["items"]:
                await asyncio.sleep(0.05)
        async with http.stream("GET", "/v1/live") as answer, asyncio.timeout(_LIMIT_S):
            frames = _frames(answer)
            await anext(frames)
            await asyncio.gather(*[queue.add("work", id=f"job-{n}") for n in range(30)])
            changed: set[str] = set()
            waiting = 0
            while len(changed) < 30 or waiting < 31:
                update = (await _next(frames, "queues")).words
                changed |= set(update["jobs_changed"].get("mail", []))
                waiting = update["queues"].get("mail", {}).get("counts", {}).get("waiting", waiting)


async def test_a_stream_is_refused_as_any_call_is(url: str, address: str) -> None:
    async with httpx.AsyncClient(base_url=url, timeout=_LIMIT_S) as http:
        assert (await http.get("/v1/events", params={"kinds": "nonsense"})).json()["code"] == "bad-option"
        assert (await http.get("/v1/events", params={"after": "nonsense"})).json()["field"] == "after"
        assert (await http.get("/v1/events", params={"job": "one"})).json()["field"] == "job"
    socket = f"{url.replace('http', 'ws')}/v1/events/ws"
    with pytest.raises(websockets.InvalidStatus) as foreign:
        await websockets.connect(socket, origin=websockets.Origin("https://evil.example"))
    assert foreign.value.response.status_code == 403
    async with await Records.open(address) as records:
        _, text = await records.keys.create(NewKey(name="w", role="worker"), created_by="test")
    with pytest.raises(websockets.InvalidStatus) as unknown:
        await websockets.connect(socket)
    assert unknown.value.response.status_code == 401
    with pytest.raises(websockets.InvalidStatus) as denied:
        await websockets.connect(socket, additional_headers={"Authorization": f"Bearer {text}"})
    assert json.loads(denied.value.response.body or b"")["code"] == "forbidden"
