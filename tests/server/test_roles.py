"""Who may do what: every route, every role."""

import httpx
import pytest

from bullpen.records.keys import Role
from bullpen.server.access.allowing import Allowed
from bullpen.server.access.roles import OF_ALL_TENANTS, PERMISSIONS, ROLES
from bullpen.server.site import Site
from tests.server.asgi import stream
from tests.server.calling import BASE, client_of, key_for, only_on_files
from tests.server.calls import CALLS, Call
from tests.server.test_isolation import _call
from tests.server.world import World, make_world


@pytest.fixture
async def world(site: Site) -> World:
    return await make_world(site)


async def _status(world: World, headers: dict[str, str], method: str, path: str, call: Call) -> tuple[int, str]:
    if call.streams:
        async with stream(world.app, path, headers, socket=method == "WS") as heard:
            return await heard.begun(), heard.text
    transport = httpx.ASGITransport(app=world.app, raise_app_exceptions=False)
    async with httpx.AsyncClient(transport=transport, base_url=BASE, headers=headers, timeout=30) as http:
        answer = await _call(http, method, path, call, world.nobodys)
        return answer.status_code, answer.text


@only_on_files
@pytest.mark.parametrize("role", Role)
async def test_a_role_does_what_the_table_says_and_nothing_else(world: World, role: Role) -> None:
    for (method, path), call in CALLS.items():
        headers = await key_for(world.site, role)
        status, said = await _status(world, headers, method, path, call)
        if call.permission in ROLES[role]:
            assert status not in (401, 403), (role, method, path, said)
            # That nobody works on this server is what its health tells.
            assert status < 500 or path.endswith("/health"), (role, method, path, said)
        else:
            assert status == 403, (role, method, path)
            assert "forbidden" in said


@only_on_files
async def test_who_says_nothing_gets_nothing(world: World) -> None:
    await key_for(world.site, "admin")
    for (method, path), call in CALLS.items():
        status, said = await _status(world, {}, method, path, call)
        assert status == 401, (method, path)
        assert "unauthenticated" in said


def test_each_permission_is_asked_for_somewhere() -> None:
    assert {call.permission for call in CALLS.values()} == PERMISSIONS.keys()


def test_a_tenant_has_the_words_that_have_a_route_for_it() -> None:
    assert PERMISSIONS.keys() - {call.permission for call in CALLS.values() if not call.whole} == OF_ALL_TENANTS


@only_on_files
async def test_who_has_a_tenant_is_told_of_no_word_that_needs_all_of_them(site: Site) -> None:
    async with client_of(site, await key_for(site, "operator", tenant="acme")) as client:
        told = set((await client.get("/v1/me"))["permissions"])
    assert told == ROLES[Role.OPERATOR] - OF_ALL_TENANTS


def test_a_word_that_is_no_permission_is_refused_at_once() -> None:
    with pytest.raises(ValueError, match="no permission"):
        Allowed("jobs:everything")


def test_roles_grow_as_they_should() -> None:
    """What the roles are for: nobody but admins lets others in, and a worker sees no lists."""
    for role in (Role.OPERATOR, Role.REVIEWER, Role.PRODUCER, Role.WORKER):
        assert not {word for word in ROLES[role] if word.split(":")[0] in ("keys", "users", "tenants")}
    assert ROLES[Role.WORKER] == {"me:read", "remote:work"}
    assert "jobs:write" not in ROLES[Role.REVIEWER]
    assert [role for role in ROLES if "providers:read" in ROLES[role]] == [Role.ADMIN, Role.OPERATOR]
    assert {"jobs:retry", "jobs:signal"} <= ROLES[Role.REVIEWER]
    assert {"jobs:add", "jobs:cancel"} <= ROLES[Role.PRODUCER]
