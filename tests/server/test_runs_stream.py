"""What a run tells, as its readers have it: in order, without a gap or a double, whatever happens to the connection."""

import asyncio
import contextlib
import json
from collections.abc import AsyncIterator, Iterator

import httpx
import pytest
import websockets

from bullpen.agents.agents import Agents
from bullpen.agents.llm.scripted import CallTurn, Turn
from bullpen.agents.llm.words import Request, Usage
from bullpen.records.records import Records
from bullpen.records.runs.moving import RunsOn
from bullpen.records.runs.words import NewProgress, ProgressKind, TaskState
from bullpen.server.app import create_app
from bullpen.server.settings import ServerSettings
from bullpen.server.site import Site, opened_site
from bullpen.server.streams.lookout import KEPT
from tests.agents.runs.conftest import working
from tests.docs.test_run_events import fields_of
from tests.server.agents import agents_at, look, looks_and_answers, models_known, paid
from tests.server.asgi import Heard, stream
from tests.server.calling import OWN, Client, only_on_files
from tests.server.running import running
from tests.support.places import Place

__all__ = ["models_known"]
pytestmark = pytest.mark.usefixtures("models_known")

_LIMIT_S = 60
_STEPS = 12


def _events_in(heard: Heard) -> list[tuple[int, str]]:
    """Number and kind of each event that came whole."""
    found = []
    for frame in heard.text.split("\n\n")[:-1]:
        fields = dict(line.split(": ", 1) for line in frame.split("\n") if not line.startswith(":"))
        if "id" in fields:
            assert json.loads(fields["data"])["number"] == int(fields["id"])
            found.append((int(fields["id"]), fields["event"]))
    return found


class _Busy:
    """A model that asks for a tool again and again."""

    def __init__(self) -> None:
        self.asked = 0

    def __call__(self, request: Request) -> Turn:
        self.asked += 1
        if self.asked > _STEPS:
            return Turn(text="done", usage=Usage(1, 1))
        return Turn(text="once more", calls=(CallTurn("look", {"n": self.asked}),), usage=Usage(1, 1))


async def test_a_reader_that_comes_again_and_again_has_the_log(
    place: Place, address: str, settings: ServerSettings
) -> None:
    """Twenty connections, and two restarts of the server meanwhile; the worker goes on by itself."""
    seen: list[tuple[int, str]] = []
    async with await Records.open(address) as records, agents_at(place, records, _Busy(), [look]) as agents:
        await agents.deposit("default", 1_000)
        sent = await agents.submit("go", created_by="test")
        connections, is_over = 0, False
        async with working(agents), asyncio.timeout(_LIMIT_S):
            for _ in range(3):
                async with opened_site(place.store(), address, settings) as site:
                    for _ in range(7):
                        connections += 1
                        is_over = await _read_some(site, sent.run_id, seen)
            while not is_over:
                async with opened_site(place.store(), address, settings) as site:
                    connections += 1
                    is_over = await _read_some(site, sent.run_id, seen, at_most=10_000)
        log = [(event.number, str(event.kind)) async for event in agents.follow(sent.run_id)]
    assert seen == log
    assert [number for number, _ in log] == list(range(1, len(log) + 1))
    assert connections > 20


async def _read_some(site: Site, run_id: str, seen: list[tuple[int, str]], at_most: int = 3) -> bool:
    """Listen until a few more events came, or the end did; whether it did."""
    app = create_app(site=site, settings=site.settings)
    headers = {**OWN, "Last-Event-ID": str(seen[-1][0])} if seen else OWN
    async with stream(app, f"/v1/runs/{run_id}/stream", headers) as heard:
        assert await heard.begun() == 200
        while len(_events_in(heard)) < at_most and "event: end" not in heard.text:
            await heard.more()
        found = _events_in(heard)
        is_over = "event: end" in heard.text
    seen += found[:at_most]
    return is_over and len(found) <= at_most


async def test_a_stream_ends_with_its_run(site: Site, client: Client, place: Place) -> None:
    await paid(client)
    sent = await client.post("/v1/tasks", {"prompt": "go"}, status=202)
    path = f"/v1/runs/{sent['run_id']}"
    app = create_app(site=site, settings=site.settings)
    async with stream(app, f"{path}/stream", OWN) as heard, stream(app, f"{path}/ws", OWN, socket=True) as socket:
        async with agents_at(place, site.records, looks_and_answers, [look]) as agents, working(agents):
            said = await heard.until("event: end")
            await socket.until('"kind":"end"')
    assert said.rstrip().endswith('data: {"state":"completed"}')
    texts = [json.loads(line) for line in socket.text.splitlines()]
    assert [one["number"] for one in texts[:-1]] == [number for number, _ in _events_in(heard)]
    for one in texts[:-1]:
        assert one["data"].keys() <= fields_of(one["kind"]), one["kind"]
    page = await client.get(f"{path}/events", limit=1_000)
    assert page["items"] == texts[:-1]
    assert (page["is_over"], page["cursor"], page["state"]) == (True, len(texts) - 1, "completed")
    rest = await client.get(f"{path}/events", after=2, limit=1)
    assert [one["number"] for one in rest["items"]] == [3]
    assert not rest["is_over"]
    assert site.lookout.watched == 0


async def test_a_cursor_from_the_future_is_told(site: Site, client: Client) -> None:
    await paid(client)
    sent = await client.post("/v1/tasks", {"prompt": "go"}, status=202)
    path = f"/v1/runs/{sent['run_id']}"
    for part in ("events", "stream"):
        problem = await client.get(f"{path}/{part}", status=400, after=7)
        assert problem["field"] == "after"
        assert "future" in problem["detail"]
    problem = await client.call("GET", f"{path}/stream", status=400, headers={"Last-Event-ID": "soon"})
    assert problem["field"] == "after"
    app = create_app(site=site, settings=site.settings)
    async with stream(app, f"{path}/ws", OWN, {"after": "7"}, socket=True) as heard:
        assert await heard.begun() == 400
        assert "future" in await heard.until("}")


@only_on_files
async def test_all_listeners_share_one_look(site: Site, client: Client, monkeypatch: pytest.MonkeyPatch) -> None:
    await paid(client)
    runs = [(await client.post("/v1/tasks", {"prompt": "go"}, status=202))["run_id"] for _ in range(3)]
    asked: list[int] = []
    looked, told = asyncio.Event(), site.records.runs.told

    async def counted(run_ids: list[str]) -> object:
        asked.append(len(run_ids))
        if len(run_ids) == len(runs):
            looked.set()
        return await told(run_ids)

    monkeypatch.setattr(site.records.runs, "told", counted)
    app = create_app(site=site, settings=site.settings)
    async with contextlib.AsyncExitStack() as open_streams:
        heard = [
            await open_streams.enter_async_context(stream(app, f"/v1/runs/{run_id}/stream", OWN))
            for run_id in runs * 10
        ]
        for one in heard:
            await one.begun()
        async with asyncio.timeout(_LIMIT_S):
            while site.lookout.watched < len(runs):
                await asyncio.sleep(0.01)
            await looked.wait()
            asked.clear()
            while len(asked) < 3:
                await asyncio.sleep(0.01)
        assert set(asked) == {len(runs)}
        for run_id in runs:
            await client.post(f"/v1/runs/{run_id}/cancel")
        for one in heard:
            await one.until("event: end")


@only_on_files
async def test_a_slow_reader_is_told_and_misses_nothing(site: Site, client: Client) -> None:
    await paid(client)
    sent = await client.post("/v1/tasks", {"prompt": "go"}, status=202)
    run_id, task_id = sent["run_id"], sent["task_id"]
    hearing = site.lookout.heard(run_id, 0)
    numbers, behind = [], 0
    await _tell(site, run_id, task_id, 1)
    async with contextlib.aclosing(hearing), asyncio.timeout(_LIMIT_S):
        async for heard in hearing:
            numbers += [event.number for event in heard.events]
            behind += heard.behind or 0
            if numbers == [1] and not behind and heard.events:
                await _while_it_sleeps(site, run_id, task_id)
            if heard.ended is not None:
                break
            if len(numbers) == 1 + 3 * KEPT:
                await client.post(f"/v1/runs/{run_id}/cancel")
    assert numbers == list(range(1, 2 + 3 * KEPT + 1))
    assert behind == 3 * KEPT
    assert heard.ended is TaskState.CANCELLED


async def _while_it_sleeps(site: Site, run_id: str, task_id: str) -> None:
    """More is told than is kept for listeners, and another listener has seen that it was."""
    await _tell(site, run_id, task_id, 3 * KEPT)
    other = site.lookout.heard(run_id, 1 + 3 * KEPT, beat_s=0.5)
    async with contextlib.aclosing(other):
        await anext(other)


async def _tell(site: Site, run_id: str, task_id: str, count: int) -> None:
    database = site.records.database
    async with database.writing() as connection:
        told = [NewProgress(ProgressKind.THINKING, {"step": n}) for n in range(count)]
        await RunsOn(connection, database).tell(run_id, task_id, told)


# ── over a real socket ───────────────────────────────────────────────────────────────────


@pytest.fixture
def url(place: Place, address: str, settings: ServerSettings) -> Iterator[str]:
    with running(place.store(), address, settings) as url:
        yield url


@pytest.fixture
async def agents(place: Place, address: str, url: str) -> AsyncIterator[Agents]:
    async with await Records.open(address) as records, agents_at(place, records, looks_and_answers, [look]) as agents:
        await agents.deposit("default", 1_000)
        yield agents


async def test_streams_and_sockets_over_a_connection(url: str, agents: Agents) -> None:
    async with httpx.AsyncClient(base_url=url, timeout=_LIMIT_S, headers=OWN) as http, asyncio.timeout(_LIMIT_S):
        sent = (await http.post("/v1/tasks", json={"prompt": "go"})).json()
        path = f"/v1/runs/{sent['run_id']}"
        async with working(agents):
            async with http.stream("GET", f"{path}/stream") as answer:
                assert answer.headers["content-type"].startswith("text/event-stream")
                lines = [line async for line in answer.aiter_lines()]
            numbers = [int(line[4:]) for line in lines if line.startswith("id: ")]
            async with websockets.connect(f"{url.replace('http', 'ws')}{path}/ws?after=3") as socket:
                texts = [json.loads(text) async for text in socket]
        assert socket.close_code == 1000
    assert lines[0].startswith(":")
    assert numbers == list(range(1, len(numbers) + 1))
    assert [one["number"] for one in texts[:-1]] == numbers[3:]
    assert texts[-1] == {"kind": "end", "state": "completed"}
