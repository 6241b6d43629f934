"""Who is let in: open mode, keys, sessions, and what keeps foreign pages out."""

import asyncio
from typing import Any

import httpx
import pytest

from bullpen import BadOption
from bullpen.errors import RecordsUnavailable
from bullpen.job.record import JobRef
from bullpen.records.audit import AuditFilter
from bullpen.records.idempotency import Idempotency
from bullpen.records.keys import NewKey
from bullpen.records.records import Records
from bullpen.server.app import create_app
from bullpen.server.settings import ServerSettings
from bullpen.server.site import Site, opened_site
from tests.server.calling import OWN, Client, client_of, key_for, only_on_files
from tests.support.places import Place

pytestmark = only_on_files


async def test_without_access_only_this_machine_is_served(site: Site) -> None:
    transport = httpx.ASGITransport(app=create_app(site=site, settings=site.settings))
    for name, status in (("localhost", 200), ("127.0.0.1", 200), ("[::1]", 200), ("evil.example", 403)):
        async with httpx.AsyncClient(transport=transport, base_url=f"http://{name}:8787") as http:
            assert (await http.get("/v1/me")).status_code == status, name
            for header in ("X-Forwarded-For", "X-Forwarded-Proto", "Forwarded", "Via", "X-Real-IP"):
                forwarded = await http.get("/v1/me", headers={header: "203.0.113.7"})
                assert forwarded.status_code == 403, "through a proxy everybody looks local"


@pytest.mark.parametrize("peer, status", [("127.0.0.2", 200), ("::1", 200), ("203.0.113.7", 403), ("", 403)])
async def test_without_access_the_address_counts_not_what_the_caller_calls_us(
    site: Site, peer: str, status: int
) -> None:
    app = create_app(site=site, settings=site.settings)
    transport = httpx.ASGITransport(app=app, client=(peer, 40_000))
    async with httpx.AsyncClient(transport=transport, base_url="http://localhost:8787") as http:
        assert (await http.get("/v1/me")).status_code == status


async def test_without_access_a_foreign_page_cannot_write(site: Site) -> None:
    """What a form or a simple request of a page can send is refused."""
    async with client_of(site, headers={}) as client:
        for kind in ("text/plain", "application/x-www-form-urlencoded", "multipart/form-data"):
            sent = {"content": '{"name": "work"}', "headers": {"Content-Type": kind}}
            assert (await client.call("POST", "/v1/queues/mail/jobs", status=403, **sent))["code"] == "csrf"
        assert (await client.call("POST", "/v1/queues/mail/pause", status=403))["code"] == "csrf"
        await client.post("/v1/queues/mail/jobs", {"name": "work"}, status=201)
        await client.call("POST", "/v1/queues/mail/pause", headers=OWN)


async def test_open_mode_ends_with_the_first_key_and_does_not_come_back(site: Site) -> None:
    async with client_of(site) as client:
        await client.get("/v1/me")
        key, text = await site.records.keys.create(NewKey(name="ci", role="admin"), created_by="test")
        assert (await client.get("/v1/me", status=401))["code"] == "unauthenticated"
        client.http.headers["Authorization"] = f"Bearer {text}"
        assert (await client.get("/v1/me"))["kind"] == "key"
        await site.records.keys.revoke(key.id)
        assert (await client.get("/v1/me", status=401))["code"] == "unauthenticated"
        del client.http.headers["Authorization"]
        await client.get("/v1/me", status=401)


@pytest.mark.parametrize("who", ["key", "user"])
async def test_open_mode_does_not_come_back_with_a_restart(place: Place, address: str, who: str) -> None:
    """Who takes back the only key, or the only user, lets nobody in; the answer says how to get in again."""
    async with await Records.open(address) as records:
        if who == "key":
            key, _ = await records.keys.create(NewKey(name="ci", role="admin"), created_by="test")
            await records.keys.revoke(key.id)
        else:
            await records.users.disable((await records.users.create("ann", "a long password", role="admin")).id)
    async with opened_site(place.store(), address, ServerSettings(port=0)) as site, client_of(site) as client:
        assert not await site.access.is_open()
        assert "bullpen keys create" in (await client.get("/v1/me", status=401))["detail"]


@pytest.mark.parametrize(
    "header", ["Basic abc", "Bearer", "Bearer  ", "Bearer bp_000000000000_" + "x" * 43, "Bearer nonsense", "bp_1"]
)
async def test_what_is_no_key_opens_nothing(client: Client, header: str) -> None:
    """Also in open mode: who tries to say who they are and cannot is not taken for somebody else."""
    answer = await client.http.get("/v1/me", headers={"Authorization": header})
    assert answer.status_code == 401
    assert answer.headers["www-authenticate"] == "Bearer"


async def test_others_are_not_served_until_access_is_set_up(place: Place, address: str) -> None:
    settings = ServerSettings(host="0.0.0.0", port=0)
    with pytest.raises(BadOption, match="bullpen keys create"):
        async with opened_site(place.store(), address, settings):
            pass
    async with await Records.open(address) as records:
        await records.users.create("ann", "a long password", role="admin")
    async with opened_site(place.store(), address, settings) as site:
        assert not await site.access.is_open()


async def test_a_session_needs_its_csrf_token_to_write(site: Site) -> None:
    await site.records.users.create("ann", "a long password", role="operator", tenant=None)
    async with client_of(site, headers={}) as client:
        answer = await client.http.post("/v1/login", json={"name": "ann", "password": "a long password"})
        cookie = answer.headers["set-cookie"]
        assert "HttpOnly" in cookie
        assert "samesite=strict" in cookie.lower()
        assert "secure" not in cookie.lower(), "a browser would not send it over HTTP"
        me = await client.get("/v1/me")
        assert (me["name"], me["kind"], me["role"]) == ("user:ann", "session", "operator")
        assert (await client.post("/v1/queues/mail/pause", status=403))["code"] == "csrf"
        await client.post("/v1/queues/mail/pause", **{"X-CSRF-Token": "wrong" + me["csrf"]}, status=403)
        await client.post("/v1/queues/mail/pause", **{"X-CSRF-Token": me["csrf"]})
        await client.post("/v1/logout", **{"X-CSRF-Token": me["csrf"]}, status=204)
        client.http.cookies.set("bullpen_session", cookie.partition("=")[2].partition(";")[0])
        await client.get("/v1/me", status=401)


@pytest.mark.parametrize(
    "url, proxy, is_https",
    [
        ("https://jobs.example", None, True),
        ("https://localhost", None, True),
        ("http://localhost", "https", True),
        ("http://localhost", "http", False),
        ("http://jobs.example", None, False),
    ],
)
async def test_over_https_browsers_are_told_to_stay_there(
    site: Site, url: str, proxy: str | None, is_https: bool
) -> None:
    """The cookie is for HTTPS only, and so is the whole site; what the server is called says nothing."""
    await site.records.users.create("ann", "a long password", role="operator")
    transport = httpx.ASGITransport(app=create_app(site=site, settings=site.settings))
    headers = {} if proxy is None else {"X-Forwarded-Proto": proxy}
    async with httpx.AsyncClient(transport=transport, base_url=url, headers=headers) as http:
        answer = await http.post("/v1/login", json={"name": "ann", "password": "a long password"})
    assert ("; secure" in answer.headers["set-cookie"].lower()) == is_https
    assert ("strict-transport-security" in answer.headers) == is_https


async def test_passwords_cannot_be_tried_one_after_the_other(site: Site) -> None:
    await site.records.users.create("ann", "a long password", role="admin")
    async with client_of(site) as client:
        for _ in range(site.settings.attempts):
            problem = await client.post("/v1/login", {"name": "ann", "password": "wrong"}, status=401)
            assert problem["detail"] == "wrong name or password"
        answer = await client.http.post("/v1/login", json={"name": "ann", "password": "a long password"})
        assert (answer.status_code, answer.json()["code"]) == (429, "too-many-attempts")
        assert int(answer.headers["retry-after"]) > 0
    entries = (await site.records.audit.list()).entries
    assert {entry.outcome for entry in entries} == {"unauthenticated"}


async def test_passwords_cannot_be_tried_all_at_once(site: Site) -> None:
    """Each counts before it is looked at, which takes its time."""
    await site.records.users.create("ann", "a long password", role="admin")
    async with client_of(site) as client:
        wrong = {"name": "ann", "password": "wrong"}
        answers = await asyncio.gather(*[client.http.post("/v1/login", json=wrong) for _ in range(40)])
    said = [answer.status_code for answer in answers]
    assert (said.count(401), said.count(429)) == (site.settings.attempts, 40 - site.settings.attempts)


async def test_who_knows_one_password_gets_no_more_attempts_at_others(site: Site) -> None:
    await site.records.users.create("ann", "a long password", role="producer")
    async with client_of(site) as client:
        for turn in range(2):
            for _ in range(site.settings.attempts // 2):
                await client.post("/v1/login", {"name": "bob", "password": "wrong"}, status=401)
                await client.post("/v1/login", {"name": "ann", "password": "a long password"})
            await client.post("/v1/login", {"name": "ann", "password": f"wrong {turn}"}, status=401)
        await client.post("/v1/login", {"name": "bob", "password": "wrong"}, status=429)
        await client.post("/v1/login", {"name": "ann", "password": "a long password"})


async def test_wrong_keys_and_tokens_are_counted_by_address(site: Site) -> None:
    good = (await key_for(site, "operator"))["Authorization"]
    late = (await key_for(site, "operator"))["Authorization"]
    app = create_app(site=site, settings=site.settings)

    async def said(address: str, header: str) -> httpx.Response:
        transport = httpx.ASGITransport(app=app, client=(address, 1))
        async with httpx.AsyncClient(transport=transport, base_url="http://localhost") as http:
            return await http.get("/v1/me", headers={"Authorization": header})

    assert (await said("203.0.113.7", good)).status_code == 200
    for number in range(site.settings.attempts * 10):
        header = f"Bearer bp_{number:012}_{'x' * 43}" if number % 2 else f"Bearer token-{number}"
        assert (await said("203.0.113.7", header)).status_code == 401
    wrong = "Bearer wrong"
    for header in (wrong, late):
        answer = await said("203.0.113.7", header)
        assert (answer.status_code, answer.json()["code"]) == (429, "too-many-attempts")
        assert int(answer.headers["retry-after"]) > 0
    assert (await said("203.0.113.7", good)).status_code == 200, "others there have done nothing"
    assert (await said("203.0.113.8", late)).status_code == 200
    assert (await said("203.0.113.8", wrong)).status_code == 401


@pytest.mark.parametrize("end", ["expired", "revoked"])
async def test_a_key_that_was_good_once_is_no_guess(site: Site, end: str) -> None:
    """A client that goes on with one does not lock out who else comes from its address."""
    expires_ms = 1 if end == "expired" else None
    key, text = await site.records.keys.create(
        NewKey(name="old", role="operator", expires_ms=expires_ms), created_by="test"
    )
    if end == "revoked":
        await site.records.keys.revoke(key.id)
    async with client_of(site, {"Authorization": f"Bearer {text}"}) as client:
        for _ in range(200):
            await client.get("/v1/me", status=401)
    async with client_of(site, await key_for(site, "operator")) as client:
        await client.get("/v1/me")


async def test_every_answer_keeps_browsers_from_harm(client: Client) -> None:
    for path in ("/", "/v1/me", "/v1/nothing", "/health/live", "/some/page"):
        headers = (await client.http.get(path)).headers
        assert "frame-ancestors 'none'" in headers["content-security-policy"]
        assert headers["content-security-policy"].startswith("default-src 'self'")
        assert (headers["x-content-type-options"], headers["referrer-policy"]) == ("nosniff", "no-referrer")
        assert headers["x-request-id"]


async def test_a_key_of_some_queues_sees_no_other(site: Site) -> None:
    await site.queue("mail").add("work", id="one")
    await site.queue("secret").add("work", id="two")
    async with client_of(site, await key_for(site, "operator", queues=["mail"])) as client:
        await client.get("/v1/queues/mail/jobs/one")
        assert (await client.get("/v1/queues/secret/jobs/two", status=404))["code"] == "queue-missing"
        await client.post("/v1/queues/secret/pause", status=404)
        await client.post("/v1/queues/secret/jobs", {"name": "work"}, status=404)
        flow = {"queue": "mail", "name": "top", "children": [{"queue": "secret", "name": "below"}]}
        await client.post("/v1/flows", flow, status=404)
        refs = [{"queue": "mail", "id": "one"}, {"queue": "secret", "id": "two"}]
        done = await client.post("/v1/jobs/actions", {"action": "remove", "jobs": refs})
        assert [one["outcome"] for one in done["items"]] == ["done", "job-missing"]
        await client.call("GET", "/v1/events/poll", params={"queue": "secret"}, status=404)


async def test_a_caller_who_leaves_in_the_middle_of_a_body_is_no_error(
    site: Site, caplog: pytest.LogCaptureFixture
) -> None:
    app = create_app(site=site, settings=site.settings)
    sent: list[Any] = []

    async def receive() -> dict[str, str]:
        return {"type": "http.disconnect"}

    async def send(message: Any) -> None:
        sent.append(message)

    near = {"client": ("127.0.0.1", 1), "server": ("127.0.0.1", 8787)}
    headers = [(b"host", b"127.0.0.1:8787"), (b"content-type", b"application/json"), (b"content-length", b"9")]
    path = "/v1/remote/wait"
    scope = {"type": "http", "method": "POST", "path": path, "query_string": b"", "headers": headers}
    await app(scope | near | {"scheme": "http", "raw_path": path.encode()}, receive, send)
    assert [message["status"] for message in sent if "status" in message] == [499]
    assert "internal" not in caplog.text


async def test_the_audit_log_says_whose_keys_and_users_were_changed(site: Site) -> None:
    """Also by a caller of no tenant: a tenant's admins are to see who locked their people out."""
    admin = await key_for(site, "admin")
    async with client_of(site, admin) as client:
        key = await client.post("/v1/keys", {"name": "ci", "role": "producer", "tenant": "acme"}, status=201)
        user = {"name": "ann", "password": "long enough", "role": "operator", "tenant": "acme"}
        ann = await client.post("/v1/users", user, status=201)
        await client.delete(f"/v1/keys/{key['id']}", status=204)
        await client.post(f"/v1/users/{ann['id']}/password", {"password": "another one"})
        await client.post(f"/v1/users/{ann['id']}/disable")
        change = {"role": "reviewer", "is_disabled": False}
        await client.call("PATCH", f"/v1/users/{ann['id']}", json=change)
    entries = (await site.records.audit.list(AuditFilter(tenant="acme"))).entries
    assert [entry.action for entry in reversed(entries)] == [
        "key.create", "user.create", "key.revoke", "user.password", "user.disable", "user.change"
    ]  # fmt: skip
    assert entries[0].details.items() >= {"role": "reviewer", "is_disabled": False}.items()


async def test_a_key_is_held_while_its_request_is_carried_out(site: Site, monkeypatch: pytest.MonkeyPatch) -> None:
    """However long that takes: after a minute it would have begun a second time, beside the first."""
    held = asyncio.Event()
    hold, add = Idempotency.hold, site.store.add

    async def told(keys: Idempotency, scope: str, key: str) -> None:
        await hold(keys, scope, key)
        held.set()

    async def slow(*given: Any, **more: Any) -> Any:
        async with asyncio.timeout(30):
            await held.wait()
        return await add(*given, **more)

    monkeypatch.setattr(Idempotency, "hold", told)
    monkeypatch.setattr("bullpen.server.guarding._HOLD_EVERY_S", 0.01)
    monkeypatch.setattr(site.store, "add", slow)
    async with client_of(site) as client:
        await client.post("/v1/queues/mail/jobs", {"name": "work"}, status=201, **{"Idempotency-Key": "k"})


async def test_what_was_done_is_answered_though_the_answer_cannot_be_kept(
    site: Site, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Who is told of an outage asks again, and has a second job. What was refused is told as well."""

    async def away(*_given: Any, **_more: Any) -> None:
        raise RecordsUnavailable("no answer")

    monkeypatch.setattr(Idempotency, "finish", away)
    monkeypatch.setattr(Idempotency, "give_up", away)
    async with client_of(site) as client:
        added = await client.post("/v1/queues/mail/jobs", {"name": "work"}, status=201, **{"Idempotency-Key": "k"})
        assert (await site.store.job(JobRef("mail", added["id"]))).name == "work"
        await client.post("/v1/queues/mail/jobs/none/promote", status=404, **{"Idempotency-Key": "other"})
