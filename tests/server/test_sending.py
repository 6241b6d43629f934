"""Streams end when their reader leaves, and not in silence when something goes wrong."""

import asyncio
import logging

import pytest

from bullpen.server.access.watching import Watch
from bullpen.server.site import Site
from bullpen.server.streams.sending import send_until_left
from tests.server.asgi import stream
from tests.server.calling import key_for, only_on_files
from tests.server.conftest import Eventually
from tests.server.world import make_world


@only_on_files
@pytest.mark.parametrize(
    "path, socket",
    [("/v1/events", False), ("/v1/live", False), ("/v1/events/ws", True), ("/v1/runs/{run_id}/ws", True)],
)
async def test_an_error_that_ends_a_stream_is_logged(
    site: Site,
    path: str,
    socket: bool,
    eventually: Eventually,
    monkeypatch: pytest.MonkeyPatch,
    caplog: pytest.LogCaptureFixture,
) -> None:
    world = await make_world(site)
    headers = await key_for(site, "admin")

    async def fails(_: Watch) -> bool:
        raise ZeroDivisionError("burst")

    async def is_logged() -> bool:
        return any("burst" in str(one.exc_info) for one in caplog.records if one.levelno == logging.ERROR)

    monkeypatch.setattr(Watch, "may_go_on", fails)
    query = {"queue": "mail"} if "events" in path else {}
    async with stream(world.app, path.format(**world.theirs), headers, query, socket=socket) as heard:
        assert await heard.begun() in (101, 200)
        await site.queue("mail").add("work")
        await eventually(is_logged)


async def test_a_reader_that_left_is_no_error(caplog: pytest.LogCaptureFixture) -> None:
    left = asyncio.Event()

    async def receive() -> dict[str, str]:
        await left.wait()
        return {"type": "websocket.disconnect"}

    async def sending() -> str:
        left.set()
        await asyncio.Event().wait()
        return "all of it"

    async def failing() -> str:
        raise OSError("the line is cut")

    assert await send_until_left(receive, sending()) is None
    left.clear()
    assert await send_until_left(receive, failing()) is None
    assert not caplog.records
