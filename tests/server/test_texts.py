"""What no database can keep, or no call is to take at once, is refused or cut: PostgreSQL bounds texts, without NUL."""

from typing import Any

import pytest

from bullpen.job.record import JobRef
from bullpen.records.audit import Audit
from bullpen.records.keys import Role
from bullpen.server.access.caller import Caller, CallerKind, named
from bullpen.server.site import Site
from tests.server.calling import Client
from tests.server.conftest import Eventually

_NUL = "a\0b"
_JOB = {"name": "work"}


@pytest.mark.parametrize(
    "path, body",
    [
        ("/v1/login", {"name": _NUL, "password": "long enough"}),
        ("/v1/dead-letters/retry", {"filter": {"name": _NUL}}),
        ("/v1/queues/mail/jobs", _JOB | {"options": {"tenant": _NUL}}),
        ("/v1/queues/mail/jobs", _JOB | {"options": {"id": _NUL}}),
        ("/v1/keys", {"name": "worker", "role": "worker", "queues": [_NUL]}),
    ],
    ids=["login", "filter", "tenant", "id", "queues of a key"],
)
async def test_nul_is_refused_before_anything_is_done(client: Client, path: str, body: Any) -> None:
    """On PostgreSQL it was a 500; of a job with such an id, after it was added."""
    problem = await client.post(path, body, status=422)
    assert problem["code"] == "bad-request"


async def test_a_tenant_of_any_length_is_no_error_inside(client: Client, eventually: Eventually) -> None:
    """It would be one for all lists: what the minutes cannot keep, the read model would try for ever."""
    await client.post("/v1/queues/mail/jobs", _JOB | {"options": {"tenant": "t" * 300}}, status=201)

    async def is_listed() -> bool:
        return [job["tenant"] for job in (await client.get("/v1/jobs"))["items"]] == ["t" * 200]

    await eventually(is_listed)
    await client.post("/v1/queues/mail/jobs", _JOB | {"options": {"tenant": "t" * 301}}, status=422)


async def test_the_audit_log_keeps_what_it_can(site: Site) -> None:
    """A name that is too long, or that has a NUL, costs its end or that character, and not the entry."""
    await site.records.audit.note(f"jwt:{_NUL}", "job.add", f"mail/{_NUL}", tenant="t" * 300, outcome="o" * 300)
    (entry,) = (await site.records.audit.list()).entries
    assert (entry.actor, entry.target) == ("jwt:a\ufffdb", "mail/a\ufffdb")
    assert (entry.tenant, entry.outcome) == (None, "o" * 100), "a tenant's beginning may be another tenant"


async def test_what_is_done_is_answered_though_the_audit_log_cannot_be_written(
    site: Site, client: Client, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Also where the driver has an objection: an answer that says otherwise would be tried again."""
    note = Audit.note

    async def without_action(log: Audit, actor: str, action: str, target: str, **details: Any) -> None:
        await note(log, actor, None, target, **details)  # type: ignore[arg-type]  # what no database takes

    monkeypatch.setattr(Audit, "note", without_action)
    added = await client.post("/v1/queues/mail/jobs", _JOB, status=201)
    assert (await site.store.job(JobRef("mail", added["id"]))).name == "work"


async def test_who_calls_has_a_name_that_can_be_kept(site: Site) -> None:
    """Identity providers have subjects of 255 characters; two long ones that begin alike are two callers."""
    one, other = (named("jwt", "s" * 254 + end) for end in "ab")
    assert len(one) == len(other) == 200
    assert one != other
    assert named("user", "ann") == "user:ann"
    caller = Caller(name=one, role=Role.ADMIN, kind=CallerKind.JWT)
    view = await site.records.views.save(caller.name, "mine", page="jobs", query={})
    assert view.owner == one


async def test_dead_letters_are_taken_by_parts(client: Client) -> None:
    """What one call collects is bounded; its cursor goes on."""
    for verb in ("retry", "purge"):
        await client.post(f"/v1/dead-letters/{verb}", {"filter": {}, "limit": 10_000})
        await client.post(f"/v1/dead-letters/{verb}", {"filter": {}, "limit": 10_001}, status=422)
