"""A stream begins when nothing more is missed: who has heard its first word is told of all that follows."""

import pytest

from bullpen.server.app import create_app
from bullpen.server.site import Site
from bullpen.server.streams.telling import Wanted
from tests.server.asgi import stream
from tests.server.calling import OWN


@pytest.mark.parametrize("path, is_socket", [("/v1/events", False), ("/v1/events/ws", True), ("/v1/live", False)])
async def test_nothing_is_said_before_the_queues_are_heard(
    site: Site, monkeypatch: pytest.MonkeyPatch, path: str, is_socket: bool
) -> None:
    queue = site.queue("mail")
    await queue.add("work", id="before")
    said: list[str] = []
    names = site.hub.names

    async def noted(wanted: Wanted) -> list[str]:
        said.append(f"let in {heard.text}" if heard.status else heard.text)
        return ["mail", *await names(wanted)][:1]

    monkeypatch.setattr(site.hub, "names", noted)
    app = create_app(site=site, settings=site.settings)
    async with stream(app, path, OWN, socket=is_socket) as heard:
        if is_socket:
            assert await heard.begun() == 101
        else:
            await heard.until("event: beat\n")
        await queue.add("work", id="right-after")
        await heard.until("right-after")
    assert said == [""]
