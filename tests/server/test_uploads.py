"""Input files over HTTP: taken as they come, given to runs, found by their tools, and removed while unused."""

import asyncio
from collections.abc import AsyncIterator
from pathlib import Path
from typing import Any

import pytest

from bullpen.agents.llm.scripted import CallTurn, Turn
from bullpen.agents.llm.words import Request, Role, Usage
from bullpen.agents.sandbox import PoolOptions, Registry, SandboxPool, SandboxSpec, driver_from
from bullpen.agents.surroundings import Sandboxed
from bullpen.agents.tools.files import file_read
from bullpen.server.site import Site
from tests.agents.runs.test_codes import needs_bubblewrap
from tests.agents.sandbox.conftest import SMALL
from tests.server.agents import models_known, over, paid, working_on
from tests.server.calling import Client, client_of, key_for, only_on_files
from tests.support.places import Place

__all__ = ["models_known"]
pytestmark = pytest.mark.usefixtures("models_known")

_MB = 1 << 20
_CSV = b"month,sum\nmay,7\n"


async def _upload(client: Client, name: str, data: Any, *, status: int = 201, tenant: str = "", **headers: str) -> Any:
    """With headers by their names, `content_type` for instance."""
    query = {"name": name} | ({"tenant": tenant} if tenant else {})
    told = {header.replace("_", "-"): value for header, value in headers.items()}
    return await client.call("POST", "/v1/files", status=status, params=query, content=data, headers=told)


async def test_a_file_is_taken_told_of_and_read(client: Client) -> None:
    given = await _upload(client, "sales ü.csv", _CSV)
    assert (given["kind"], given["mime"], given["size"], given["run_id"]) == ("input", "text/csv", 16, None)
    assert given["expires_ms"] == given["created_ms"] + 86_400_000
    assert await client.get(f"/v1/files/{given['id']}") == given
    assert (await client.http.get(f"/v1/files/{given['id']}/content")).content == _CSV
    told = await _upload(client, "data", b"{}", content_type="application/json; charset=utf-8")
    assert (told["mime"], told["type"]) == ("application/json; charset=utf-8", "code")
    listed = (await client.get("/v1/files", kind="input"))["items"]
    assert {one["id"] for one in listed} == {given["id"], told["id"]}
    assert (await client.get("/v1/files", kind="artifact"))["items"] == []
    first = await client.get("/v1/files", limit=1)
    rest = await client.get("/v1/files", limit=1, cursor=first["next_cursor"])
    assert {one["id"] for page in (first, rest) for one in page["items"]} == {given["id"], told["id"]}


@pytest.mark.parametrize(
    "name, mime, field",
    [
        ("a/b.csv", None, "name"),
        ("..", None, "name"),
        ("a\nb", None, "name"),
        ("", None, "name"),
        ("ü" * 200, None, "name"),
        ("a.csv", "nonsense", "mime"),
        ("a.csv", "multipart/form-data; boundary=x", "mime"),
    ],
)
@only_on_files
async def test_what_is_wrong_is_told_by_its_field(client: Client, name: str, mime: str | None, field: str) -> None:
    problem = await _upload(client, name, b"x", status=400, **({"content_type": mime} if mime else {}))
    assert (problem["field"], problem["agent_code"]) == (field, "E001")
    assert (await client.get("/v1/files"))["items"] == []


class _Parts:
    """A body of no told length, which knows how much of it was taken."""

    def __init__(self, parts: int) -> None:
        self.left = parts

    async def __aiter__(self) -> AsyncIterator[bytes]:
        while self.left:
            self.left -= 1
            yield bytes(_MB // 4)


@only_on_files
async def test_one_that_is_too_large_is_refused_with_the_limit(
    client: Client, site: Site, monkeypatch: pytest.MonkeyPatch
) -> None:
    """By its length where that was told, else as soon as too much came; nothing of it stays."""
    monkeypatch.setenv("BULLPEN_FILE_MB", "2")
    problem = await _upload(client, "big", bytes(2 * _MB + 1), status=413)
    assert problem["code"] == "payload-too-large"
    assert "2 MB, by BULLPEN_FILE_MB" in problem["detail"]
    endless = _Parts(1_000)
    problem = await _upload(client, "big", endless, status=413)
    assert "2 MB, by BULLPEN_FILE_MB" in problem["detail"]
    assert (await client.get("/v1/files"))["items"] == []
    assert [one async for one in site.records.files.blobs.all()] == []
    whole = await _upload(client, "whole", _Parts(8))
    assert whole["size"] == 2 * _MB


@only_on_files
async def test_one_that_told_its_length_is_refused_unread(client: Client, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("BULLPEN_FILE_MB", "1")
    unread = _Parts(8)
    await _upload(client, "big", unread, status=413, content_length=str(2 * _MB))
    assert unread.left == 8


async def test_the_same_key_is_one_file(client: Client) -> None:
    first = await _upload(client, "a.txt", b"abc", idempotency_key="one")
    assert await _upload(client, "a.txt", b"abc", idempotency_key="one") == first
    other = await _upload(client, "a.txt", b"abcd", status=409, idempotency_key="one")
    assert other["code"] == "idempotency-conflict"
    as_long = await _upload(client, "a.txt", b"xyz", status=409, idempotency_key="one")
    assert as_long["code"] == "idempotency-conflict"
    in_parts = _Parts(2)
    whole = await _upload(client, "parts", in_parts, idempotency_key="two")
    assert await _upload(client, "parts", bytes(_MB // 2), idempotency_key="two") == whole
    assert len((await client.get("/v1/files"))["items"]) == 2


async def test_what_no_run_has_is_limited_for_each_tenant(
    site: Site, client: Client, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("BULLPEN_UPLOADS_MB", "2")
    await paid(client, "acme")
    first = await _upload(client, "a", bytes(_MB), tenant="acme")
    unread = _Parts(8)
    refused = await _upload(client, "b", unread, status=429, tenant="acme", content_length=str(2 * _MB))
    assert (refused["code"], unread.left) == ("uploads-full", 8)
    assert "2 MB together, by BULLPEN_UPLOADS_MB" in refused["detail"]
    assert (await _upload(client, "b", _Parts(5), status=429, tenant="acme"))["code"] == "uploads-full"
    assert len((await client.get("/v1/files", tenant="acme"))["items"]) == 1
    second = await _upload(client, "c", bytes(_MB), tenant="acme")
    await _upload(client, "d", bytes(2 * _MB), tenant="other")
    await _upload(client, "e", b"x", status=429, tenant="acme")
    await client.post("/v1/tasks", {"prompt": "go", "tenant": "acme", "files": [first["id"]]}, status=202)
    await client.delete(f"/v1/files/{second['id']}", status=204)
    await _upload(client, "f", bytes(2 * _MB), tenant="acme")


async def test_nobody_is_told_to_come_back_in_a_moment_for_a_quota_that_is_full(
    client: Client, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("BULLPEN_UPLOADS_MB", "1")
    await _upload(client, "a", bytes(_MB))
    refused = await client.http.post("/v1/files", params={"name": "b"}, content=b"x")
    assert (refused.status_code, refused.json()["code"]) == (429, "uploads-full")
    assert "retry-after" not in refused.headers


async def test_a_plan_says_how_much_a_tenant_may_upload(client: Client) -> None:
    made = await client.post("/v1/tenants", {"id": "acme", "plan": {"uploads_mb": 1}}, status=201)
    assert made["plan"]["uploads_mb"] == 1
    await _upload(client, "a", bytes(_MB), tenant="acme")
    refused = await _upload(client, "b", b"x", status=429, tenant="acme")
    assert "1 MB together, by the tenant's plan" in refused["detail"]


async def test_those_who_upload_at_once_do_not_exceed_it_together(
    client: Client, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("BULLPEN_UPLOADS_MB", "2")
    send = [client.http.post("/v1/files", params={"name": "a"}, content=bytes(_MB)) for _ in range(6)]
    answers = [answer.status_code for answer in await asyncio.gather(*send)]
    assert sorted(answers) == [201, 201, 429, 429, 429, 429]


async def test_an_unused_one_is_removed_and_a_used_one_stays(client: Client) -> None:
    await paid(client)
    unused, used = await _upload(client, "a.txt", b"a"), await _upload(client, "b.txt", b"b")
    sent = await client.post("/v1/tasks", {"prompt": "go", "files": [used["id"]]}, status=202)
    await client.delete(f"/v1/files/{unused['id']}", status=204)
    await client.get(f"/v1/files/{unused['id']}", status=404)
    await client.delete(f"/v1/files/{unused['id']}", status=404)
    problem = await client.delete(f"/v1/files/{used['id']}", status=409)
    assert (problem["code"], sent["run_id"] in problem["detail"]) == ("wrong-state", True)
    [given] = (await client.get(f"/v1/runs/{sent['run_id']}/inputs"))["items"]
    assert given == {**used, "run_id": sent["run_id"], "expires_ms": None}
    assert (await client.get(f"/v1/runs/{sent['run_id']}/artifacts"))["items"] == []
    missing = await client.post("/v1/tasks", {"prompt": "go", "files": [unused["id"]]}, status=404)
    assert unused["id"] in missing["detail"]
    assert len((await client.get("/v1/runs"))["items"]) == 1


async def test_a_file_is_its_tenants_own(site: Site, client: Client) -> None:
    await paid(client, "acme")
    await paid(client, "other")
    admin = await key_for(site, "admin")
    async with client_of(site, await key_for(site, "producer", tenant="acme")) as caller:
        given = await _upload(caller, "a.txt", b"a")
        await _upload(caller, "a.txt", b"a", status=403, tenant="other")
    async with client_of(site, await key_for(site, "producer", tenant="other")) as caller:
        await caller.get(f"/v1/files/{given['id']}", status=404)
        await caller.delete(f"/v1/files/{given['id']}", status=404)
        await caller.post("/v1/tasks", {"prompt": "go", "files": [given["id"]]}, status=404)
    async with client_of(site, admin) as caller:
        theirs = await _upload(caller, "b.txt", b"b", tenant="acme")
        listed = (await caller.get("/v1/files", tenant="acme"))["items"]
        assert {one["id"] for one in listed} == {given["id"], theirs["id"]}
        audit = (await caller.get("/v1/audit", action="file.add", tenant="acme"))["items"]
        assert {entry["target"] for entry in audit if entry["outcome"] == "ok"} == {given["id"], theirs["id"]}
        await caller.post("/v1/tenants", {"id": "acme"}, status=201)
        await caller.put("/v1/tenants/acme", {"is_disabled": True})
        refused = await _upload(caller, "c.txt", b"c", status=403, tenant="acme")
        assert refused["code"] == "tenant-refused"


def _reads(request: Request) -> Turn:
    last = request.messages[-1]
    if last.role is Role.TOOL:
        return Turn(text=f"it said: {last.results[0].text}", usage=Usage(1, 1))
    return Turn(calls=(CallTurn("file_read", {"path": "/inputs/sales.csv"}, id="c1"),), usage=Usage(1, 1))


@needs_bubblewrap
async def test_the_tools_of_a_run_find_it(site: Site, client: Client, place: Place, tmp_path: Path) -> None:
    await paid(client)
    given = await _upload(client, "sales.csv", _CSV)
    body = {"prompt": "Sum up.", "files": [given["id"]], "tools": ["file_read"]}
    runs = [(await client.post("/v1/tasks", body, status=202))["run_id"] for _ in range(2)]
    pool = SandboxPool(
        driver_from("bubblewrap"),
        [SandboxSpec(limits=SMALL)],
        PoolOptions(warm=0, most=1),
        registry=Registry(tmp_path / "sandboxes"),
    )
    async with pool, working_on(site, place, _reads, [file_read()], surroundings=Sandboxed(pool)):
        for run_id in runs:  # the second one has a copy of its own
            [task] = (await over(client, run_id))["tasks"]
            assert "may,7" in task["result"]["output"]


async def test_e002_who_is_not_known_is_told_so(site: Site, client: Client) -> None:
    """By its code of agents, on their routes; nothing comes of the request."""
    await paid(client)
    await key_for(site, "admin")
    for headers in ({}, {"Authorization": "Bearer bp_no_such_key"}, {"Authorization": "Basic xyz"}):
        async with client_of(site, headers) as stranger:
            problem = await stranger.post("/v1/tasks", {"prompt": "go"}, status=401)
            assert (problem["code"], problem["agent_code"]) == ("unauthenticated", "E002")
            assert problem["retryable"] is False
            assert problem["user_facing_message"].endswith(".")
            assert "agent_code" not in await stranger.get("/v1/queues", status=401)
    assert (await site.records.runs.page(tenant="default")).runs == ()
