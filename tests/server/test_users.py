"""Users over HTTP: another role, in no more and in again; what nobody may do to them."""

import pytest

from bullpen.records.keys import Role
from bullpen.server.access.roles import ROLES
from bullpen.server.site import Site
from tests.server.calling import client_of, key_for, only_on_files

pytestmark = only_on_files


async def _make(site: Site, name: str, role: str, tenant: str | None = None) -> str:
    return (await site.records.users.create(name, "a long password", role=role, tenant=tenant)).id


async def test_a_user_who_was_disabled_comes_in_again(site: Site) -> None:
    """By the same name, which stays taken, and with no session of before."""
    ann = await _make(site, "ann", "operator")
    async with client_of(site, await key_for(site, "admin")) as client:
        opened = await site.records.users.log_in("ann", "a long password")
        assert opened is not None
        shown = await client.call("PATCH", f"/v1/users/{ann}", json={"is_disabled": True})
        assert shown["disabled_ms"]
        assert await site.records.users.log_in("ann", "a long password") is None
        assert await client.call("PATCH", f"/v1/users/{ann}", json={"is_disabled": True}) == shown
        shown = await client.call("PATCH", f"/v1/users/{ann}", json={"is_disabled": False})
        assert (shown["role"], shown["disabled_ms"]) == ("operator", None)
        assert await site.records.users.session(opened[1]) is None
        assert await site.records.users.log_in("ann", "a long password") is not None


async def test_another_role_ends_the_sessions_of_the_user(site: Site) -> None:
    """What changes nothing ends none."""
    ann = await _make(site, "ann", "operator")
    opened = await site.records.users.log_in("ann", "a long password")
    assert opened is not None
    async with client_of(site, await key_for(site, "admin")) as client:
        for same in ({}, {"role": "operator"}, {"is_disabled": False}):
            await client.call("PATCH", f"/v1/users/{ann}", json=same)
        assert await site.records.users.session(opened[1]) is not None
        assert (await client.call("PATCH", f"/v1/users/{ann}", json={"role": "reviewer"}))["role"] == "reviewer"
        assert await site.records.users.session(opened[1]) is None
        await client.call("PATCH", f"/v1/users/{ann}", json={"role": "king"}, status=422)
        await client.call("PATCH", f"/v1/users/{'0' * 32}", json={"role": "reviewer"}, status=404)


async def test_the_last_admin_stays(site: Site) -> None:
    """One of a tenant, or who is disabled, could not undo it; a tenant's own may go while one of all is there."""
    ann, bob = await _make(site, "ann", "admin"), await _make(site, "bob", "admin")
    cat = await _make(site, "cat", "admin", tenant="acme")
    async with client_of(site, await key_for(site, "admin")) as client:
        await client.call("PATCH", f"/v1/users/{bob}", json={"is_disabled": True})
        for change in ({"is_disabled": True}, {"role": "operator"}):
            told = await client.call("PATCH", f"/v1/users/{ann}", json=change, status=409)
            assert told["code"] == "last-admin"
        assert (await client.post(f"/v1/users/{ann}/disable", status=409))["code"] == "last-admin"
        await client.call("PATCH", f"/v1/users/{cat}", json={"role": "operator"})
        await client.call("PATCH", f"/v1/users/{bob}", json={"is_disabled": False})
        await client.call("PATCH", f"/v1/users/{ann}", json={"role": "operator"})


async def test_a_caller_gives_no_more_than_it_has(site: Site, monkeypatch: pytest.MonkeyPatch) -> None:
    """Neither by a role nor by letting one in again; nor are users of other tenants its to change."""
    monkeypatch.setitem(ROLES, Role.OPERATOR, ROLES[Role.OPERATOR] | {"users:write"})
    ann, bob = await _make(site, "ann", "reviewer"), await _make(site, "bob", "admin")
    await site.records.users.disable(bob)
    async with client_of(site, await key_for(site, "operator")) as client:
        for user, change in ((ann, {"role": "admin"}), (bob, {"is_disabled": False})):
            told = await client.call("PATCH", f"/v1/users/{user}", json=change, status=403)
            assert told["code"] == "forbidden"
        await client.call("PATCH", f"/v1/users/{ann}", json={"role": "operator"})
    async with client_of(site, await key_for(site, "admin", tenant="acme")) as client:
        await client.call("PATCH", f"/v1/users/{ann}", json={"role": "reviewer"}, status=404)
