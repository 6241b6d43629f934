"""Lists that come a page at a time: schedules, tenants, keys and users."""

from collections.abc import Awaitable, Callable
from typing import Any

import pytest

from bullpen.records.keys import NewKey
from bullpen.server.site import Site
from tests.server.calling import Client, client_of, key_for
from tests.server.conftest import Eventually

_ALL = ("/v1/schedules", "/v1/tenants", "/v1/keys", "/v1/users")


async def _pages(client: Client, path: str, **asked: Any) -> list[list[dict[str, Any]]]:
    pages: list[list[dict[str, Any]]] = []
    cursor: dict[str, Any] = {}
    while True:
        page = await client.get(path, **asked, **cursor)
        pages.append(page["items"])
        if page["next_cursor"] is None:
            return pages
        cursor = {"cursor": page["next_cursor"]}


async def _make_schedules(site: Site, eventually: Eventually) -> None:
    for name in ("a", "b", "c"):
        queue = site.queue(name)
        await queue.add("work")
        for tenant in ("acme", "other"):
            for n in range(2):
                job = queue.prepare("tick", tenant=tenant)
                await queue.schedules.upsert(f"{tenant}-{n}", job, every=3600)

    async def is_known() -> bool:
        return set(await site.standing.names()) == {"a", "b", "c"}

    await eventually(is_known)


async def test_schedules_come_by_queue_and_id(client: Client, site: Site, eventually: Eventually) -> None:
    await _make_schedules(site, eventually)
    pages = await _pages(client, "/v1/schedules", limit=5)
    assert [len(page) for page in pages] == [5, 5, 2]
    expected = [(queue, f"{tenant}-{n}") for queue in "abc" for tenant in ("acme", "other") for n in range(2)]
    assert [(one["queue"], one["id"]) for page in pages for one in page] == expected
    of_one = await _pages(client, "/v1/schedules", limit=3, queue="b")
    assert [(one["queue"], one["id"]) for page in of_one for one in page] == expected[4:8]
    async with client_of(site, await key_for(site, "operator", tenant="acme")) as own:
        pages = await _pages(own, "/v1/schedules", limit=2)
        assert [len(page) for page in pages] == [2, 2, 2]
        assert {one["tenant"] for page in pages for one in page} == {"acme"}


async def test_a_page_of_schedules_asks_for_no_queue_beyond_it(
    client: Client, site: Site, eventually: Eventually, monkeypatch: pytest.MonkeyPatch
) -> None:
    await _make_schedules(site, eventually)
    asked: list[str] = []
    read: Callable[[str], Awaitable[Any]] = site.store.schedules

    async def noted(queue: str) -> Any:
        asked.append(queue)
        return await read(queue)

    monkeypatch.setattr(site.store, "schedules", noted)
    first = await client.get("/v1/schedules", limit=2)
    assert asked == ["a"]
    await client.get("/v1/schedules", limit=4, cursor=first["next_cursor"])
    assert asked == ["a", "a", "b"]


async def test_tenants_and_users_come_by_name(site: Site) -> None:
    for n in range(5):
        await site.records.tenants.create(f"tenant-{n}")
        await site.records.users.create(f"ann-{n}", "correct horse", role="admin", tenant=f"tenant-{n % 2}")
    async with client_of(site, await key_for(site, "admin")) as client:
        tenants = await _pages(client, "/v1/tenants", limit=2)
        assert [[one["id"] for one in page] for page in tenants] == [
            ["tenant-0", "tenant-1"],
            ["tenant-2", "tenant-3"],
            ["tenant-4"],
        ]
        users = await _pages(client, "/v1/users", limit=5)
        assert [[one["name"] for one in page] for page in users] == [[f"ann-{n}" for n in range(5)]]
    async with client_of(site, await key_for(site, "admin", tenant="tenant-0")) as own:
        users = await _pages(own, "/v1/users", limit=2)
        assert [[one["name"] for one in page] for page in users] == [["ann-0", "ann-2"], ["ann-4"]]


async def test_keys_come_the_newest_first(site: Site) -> None:
    """Also those that were made in the same millisecond come once each."""
    admin = await key_for(site, "admin")
    for n in range(6):
        new = NewKey(name=f"key-{n}", role="producer", tenant="acme" if n % 2 else None)
        await site.records.keys.create(new, created_by="system")
    async with client_of(site, admin) as client:
        pages = await _pages(client, "/v1/keys", limit=3)
        assert [len(page) for page in pages] == [3, 3, 1]
        found = [one for page in pages for one in page]
        assert len({one["id"] for one in found}) == 7
        made = [one["created_ms"] for one in found]
        assert made == sorted(made, reverse=True)
    async with client_of(site, await key_for(site, "admin", tenant="acme")) as own:
        pages = await _pages(own, "/v1/keys", limit=2)
        assert [len(page) for page in pages] == [2, 2]
        assert {one["tenant"] for page in pages for one in page} == {"acme"}


@pytest.mark.parametrize("path", _ALL)
async def test_a_page_has_a_most_and_a_cursor_is_one_that_a_page_gave(client: Client, path: str) -> None:
    for limit in (0, 501):
        assert (await client.get(path, limit=limit, status=422))["code"] == "bad-request"
    assert await client.get(path, limit=500) == {"items": [], "next_cursor": None}
    assert (await client.get(path, cursor="1~\0", status=422))["code"] == "bad-option"
