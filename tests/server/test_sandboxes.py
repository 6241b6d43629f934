"""The sandboxes of all workers, for admins of all tenants."""

import msgspec

from bullpen.records.sandboxes import LATELY_MS
from bullpen.server.site import Site
from tests.server.calling import Client, client_of, key_for

_BUSY = {"id": "b1", "state": "in-use", "since_ms": 7, "tenant": "acme"}
_READY = {"id": "b2", "state": "warm", "since_ms": 8}


async def _tells(site: Site, worker: str, *members: object) -> bool:
    """As a worker does of its pool; whether it is to restart it."""
    standing = {"driver": "bubblewrap", "isolation": "namespace", "sandboxes": members}
    return await site.records.sandboxes.tell(f"pool of {worker}", worker, msgspec.json.encode(standing))


async def test_the_sandboxes_of_all_workers_are_listed(site: Site, client: Client) -> None:
    assert (await client.get("/v1/sandboxes"))["items"] == []
    await _tells(site, "two")
    await _tells(site, "one", _BUSY, _READY)
    busy, ready = (await client.get("/v1/sandboxes"))["items"]
    told_ms = busy.pop("told_ms")
    assert told_ms > LATELY_MS
    assert busy == {**_BUSY, "worker": "one", "driver": "bubblewrap", "isolation": "namespace"}
    assert (ready["id"], ready["state"], ready["tenant"]) == ("b2", "warm", None)


async def test_each_pool_is_asked_once_to_restart(site: Site, client: Client) -> None:
    for worker in ("one", "two"):
        assert not await _tells(site, worker)
    assert await client.post("/v1/sandboxes/restart") == {"count": 2}
    assert [await _tells(site, worker) for worker in ("one", "two", "new", "one")] == [True, True, False, False]
    [entry] = [one for one in (await client.get("/v1/audit"))["items"] if one["action"] == "sandboxes.restart"]
    assert entry["outcome"] == "ok"


async def test_nobody_but_admins_of_all_tenants_may(site: Site) -> None:
    await _tells(site, "one", _BUSY)
    async with client_of(site, await key_for(site, "admin")) as caller:
        assert len((await caller.get("/v1/sandboxes"))["items"]) == 1
    for role, scope in (("admin", {"tenant": "acme"}), ("operator", {}), ("reviewer", {}), ("producer", {})):
        async with client_of(site, await key_for(site, role, **scope)) as caller:
            await caller.get("/v1/sandboxes", status=403)
            await caller.post("/v1/sandboxes/restart", status=403)
    assert not await _tells(site, "one")
