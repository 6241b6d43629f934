"""A caller of some queues, of whatever role, gets nothing beyond them from any route, and changes nothing there."""

import contextlib
import json

import httpx
import pytest

from bullpen.server.access.roles import OF_QUEUES
from bullpen.server.site import Site
from tests.server.asgi import stream
from tests.server.calling import BASE, client_of, key_for, only_on_files
from tests.server.calls import CALLS, Call
from tests.server.conftest import Eventually
from tests.server.test_isolation import _call, _without
from tests.server.world import MARK, World, make_world

pytestmark = only_on_files


@pytest.fixture
async def world(site: Site) -> World:
    return await make_world(site)


def _without_mark(call: Call) -> Call:
    """What the caller itself says has no mark, or the answers would have it."""
    body = json.loads(json.dumps(call.body).replace(MARK, "gamma"))
    return call._replace(body=body, query={name: value.replace(MARK, "gamma") for name, value in call.query.items()})


async def test_every_route_knows_callers_of_some_queues(world: World) -> None:
    """A new permission is not for them, and a new route of an old one shows here what it tells them."""
    headers = await key_for(world.site, "admin", queues=["own"])
    before = await world.fingerprint()
    transport = httpx.ASGITransport(app=world.app, raise_app_exceptions=False)
    async with httpx.AsyncClient(transport=transport, base_url=BASE, headers=headers, timeout=30) as http:
        for (method, path), call in CALLS.items():
            if call.streams:
                continue
            answer = await _call(http, method, path, _without_mark(call), world.theirs)
            assert answer.status_code < 500, (method, path, answer.text)
            if call.permission not in OF_QUEUES:
                assert (answer.status_code, answer.json()["code"]) == (403, "forbidden"), (method, path)
            elif "{queue}" in path:
                assert answer.status_code == 404, (method, path, answer.text)
            named = {name: value for name, value in world.theirs.items() if f"{{{name}}}" in path}
            said = _without(answer, named)
            assert MARK not in said, f"{method} {path}: {said}"
            assert await world.fingerprint() == before, f"{method} {path} has changed something"


async def test_streams_tell_them_of_their_queues_only(world: World, eventually: Eventually) -> None:
    headers = await key_for(world.site, "admin", queues=["own"])
    await world.site.queue("own").add("own-work")

    async def is_known() -> bool:
        return "own" in await world.site.standing.names()

    await eventually(is_known)
    for number, ((method, path), call) in enumerate(CALLS.items()):
        if not call.streams:
            continue
        async with contextlib.AsyncExitStack() as opened:
            url = path.format(**world.theirs)
            heard = await opened.enter_async_context(stream(world.app, url, headers, socket=method == "WS"))
            if call.permission not in OF_QUEUES:
                assert await heard.begun() == 403, (method, path)
                continue
            assert await heard.begun() in (101, 200)
            if method != "WS":
                await heard.until("event: beat\n")
            await world.site.queue("mail").add("beta-more", tenant="beta")
            await world.site.queue("own").add("own-more", id=f"own-{number}")
            assert MARK not in await heard.until(f"own-{number}")


async def test_an_admin_of_some_queues_makes_nobody_mightier(site: Site) -> None:
    async with client_of(site, await key_for(site, "admin", queues=["mail"])) as client:
        me = await client.get("/v1/me")
        assert set(me["permissions"]) == OF_QUEUES
        await client.post("/v1/keys", {"name": "k", "role": "admin"}, status=403)
        await client.post("/v1/users", {"name": "u", "password": "12345678", "role": "admin"}, status=403)
