"""A server in the process of an application, which goes on when the server has ended."""

import socket

import pytest

from bullpen import BadOption, Bullpen
from bullpen.server.running import serve
from bullpen.server.settings import ServerSettings
from bullpen.server.site import opened_site
from tests.support.places import Place


async def test_an_application_works_on_after_its_server_has_ended(
    place: Place, address: str, settings: ServerSettings
) -> None:
    async with Bullpen(place.store()) as pen:
        async with opened_site(pen, address, settings) as site:
            seen = await site.queue("mail").add("welcome", {})
        assert (await pen.queue("mail").job(seen.id).record()).name == "welcome"


async def test_an_application_works_on_beside_a_server_that_could_not_begin(place: Place, address: str) -> None:
    with socket.create_server(("127.0.0.1", 0)) as taken:
        settings = ServerSettings(port=taken.getsockname()[1])
        async with Bullpen(place.store()) as pen:
            with pytest.raises(BadOption, match=r"^port: cannot listen at"):
                await serve(pen, address, settings, signals=False)
            await pen.queue("mail").add("welcome", {})
