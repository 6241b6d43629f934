"""Keys, users, tenants, the audit log, what people set, and idempotency keys."""

import asyncio
import threading
from collections.abc import Callable
from contextlib import AbstractAsyncContextManager

import pytest
from sqlalchemy import select
from sqlalchemy.ext.asyncio import AsyncConnection

from bullpen import BadOption, IdempotencyConflict, RecordMissing, RecordTaken
from bullpen.job.limits import GroupLimits
from bullpen.records import passwords
from bullpen.records.audit import AuditFilter
from bullpen.records.idempotency import MEMORY_MS, Answer
from bullpen.records.keys import NewKey, Role
from bullpen.records.records import Records
from bullpen.records.tables.access import api_key, session, user
from bullpen.records.tenants import Plan
from bullpen.testing.clock import ManualClock

# ── keys ─────────────────────────────────────────────────────────────────────────────────


async def test_a_key_is_known_by_its_text(records: Records) -> None:
    new = NewKey(name="ci", role="worker", tenant="acme", queues=["mail"])
    key, text = await records.keys.create(new, created_by="user:ann")
    assert text.startswith(f"bp_{key.prefix}_")
    assert await records.keys.check(text) == key
    assert (key.role, key.tenant, key.queues) == (Role.WORKER, "acme", ("mail",))


async def test_the_text_of_a_key_is_kept_nowhere(records: Records) -> None:
    """Who reads the database can use no key."""
    _, text = await records.keys.create(NewKey(name="ci", role="admin"), created_by="system")
    async with records.database.reading() as connection:
        rows = (await connection.execute(select(api_key))).all()
    assert text.split("_", 2)[2] not in repr(rows)


@pytest.mark.parametrize("change", [lambda t: t[:-1] + ("A" if t[-1] != "A" else "B"), lambda _: "", lambda t: t + "x"])
async def test_another_text_is_no_key(records: Records, change: Callable[[str], str]) -> None:
    _, text = await records.keys.create(NewKey(name="ci", role="admin"), created_by="system")
    assert await records.keys.check(change(text)) is None


async def test_a_key_ends_by_its_time_or_when_it_is_revoked(records: Records, clock: ManualClock) -> None:
    until_ms = clock.now_ms() + 1_000
    _, brief = await records.keys.create(NewKey(name="brief", role="admin", expires_ms=until_ms), created_by="system")
    lasting, text = await records.keys.create(NewKey(name="lasting", role="admin"), created_by="system")
    clock.advance(1_000)
    assert await records.keys.check(brief) is None
    assert await records.keys.check(text) is not None
    assert not await records.keys.is_empty()
    first = await records.keys.revoke(lasting.id)
    clock.advance(1_000)
    assert await records.keys.revoke(lasting.id) == first
    assert await records.keys.check(text) is None
    assert await records.keys.is_empty()


async def test_the_last_use_of_a_key_is_noted(records: Records, clock: ManualClock) -> None:
    key, text = await records.keys.create(NewKey(name="ci", role="admin"), created_by="system")
    clock.advance(5_000)
    await records.keys.check(text)
    used_ms = clock.now_ms()
    clock.advance(1_000)
    await records.keys.check(text)
    assert (await records.keys.get(key.id)).last_used_ms == used_ms
    clock.advance(60_000)
    await records.keys.check(text)
    assert (await records.keys.get(key.id)).last_used_ms == clock.now_ms()


async def test_keys_are_listed_by_tenant(records: Records) -> None:
    for tenant in ("acme", "other"):
        await records.keys.create(NewKey(name=tenant, role="producer", tenant=tenant), created_by="system")
    assert [key.name for key in (await records.keys.list(tenant="acme")).items] == ["acme"]
    assert len((await records.keys.list()).items) == 2


def test_a_wrong_key_is_refused_before_it_is_made() -> None:
    with pytest.raises(BadOption, match="role"):
        NewKey(name="ci", role="king")
    with pytest.raises(BadOption, match="name"):
        NewKey(name="", role="admin")


async def test_what_is_not_there_is_told(records: Records) -> None:
    with pytest.raises(RecordMissing):
        await records.keys.revoke("none")
    with pytest.raises(RecordMissing):
        await records.users.disable("none")
    with pytest.raises(RecordMissing):
        await records.tenants.set_plan("none", Plan())
    with pytest.raises(RecordMissing):
        await records.views.remove("ann", "none")
    with pytest.raises(RecordMissing):
        await records.alerts.remove("none")


# ── users ────────────────────────────────────────────────────────────────────────────────


async def test_only_the_right_password_opens_a_session(records: Records) -> None:
    await records.users.create("ann", "correct horse", role="operator", tenant="acme")
    assert await records.users.log_in("ann", "wrong horse") is None
    assert await records.users.log_in("bob", "correct horse") is None
    logged_in = await records.users.log_in("ann", "correct horse")
    assert logged_in is not None
    opened, token = logged_in
    assert await records.users.session(token) == opened
    assert (opened.user.role, opened.user.tenant) == (Role.OPERATOR, "acme")
    async with records.database.reading() as connection:
        kept = repr([(await connection.execute(select(table))).all() for table in (user, session)])
    assert "correct horse" not in kept
    assert token not in kept


async def test_a_session_ends_by_its_time_by_logout_and_by_a_new_password(records: Records, clock: ManualClock) -> None:
    ann = await records.users.create("ann", "correct horse", role="admin")
    tokens = []
    for session_ms in (60_000, 60_000, 90_000):
        logged_in = await records.users.log_in("ann", "correct horse", session_ms=session_ms)
        assert logged_in is not None
        tokens.append(logged_in[1])
    await records.users.log_out(tokens[0])
    assert await records.users.session(tokens[0]) is None
    clock.advance(60_000)
    assert await records.users.session(tokens[1]) is None
    assert await records.users.session(tokens[2]) is not None
    await records.users.set_password(ann.id, "another horse")
    assert await records.users.session(tokens[2]) is None
    assert await records.users.log_in("ann", "correct horse") is None
    await records.users.disable(ann.id)
    assert await records.users.log_in("ann", "another horse") is None


async def test_no_session_begins_for_a_user_who_is_disabled_meanwhile(
    records: Records, monkeypatch: pytest.MonkeyPatch
) -> None:
    """While the password is checked, which takes its time; the session would have lived beyond the end of all."""
    ann = await records.users.create("ann", "correct horse", role="operator")

    async def disabling(password: str, kept: str) -> bool:
        await records.users.disable(ann.id)
        return True

    monkeypatch.setattr("bullpen.records.users.matches", disabling)
    assert await records.users.log_in("ann", "correct horse") is None


async def test_of_two_admins_who_go_at_once_one_stays(records: Records) -> None:
    admins = [await records.users.create(name, "correct horse", role="admin") for name in ("ann", "bob")]
    ended = await asyncio.gather(
        *(records.users.change(one.id, role="operator") for one in admins), return_exceptions=True
    )
    assert sorted(type(one).__name__ for one in ended) == ["LastAdmin", "User"]


async def test_a_name_is_taken_once(records: Records) -> None:
    await records.users.create("ann", "correct horse", role="admin")
    with pytest.raises(RecordTaken):
        await records.users.create("ann", "correct horse", role="admin")
    await records.tenants.create("acme")
    with pytest.raises(RecordTaken):
        await records.tenants.create("acme")


# ── tenants ──────────────────────────────────────────────────────────────────────────────


async def test_a_plan_is_kept_and_changed(records: Records) -> None:
    plan = Plan(limits=GroupLimits(concurrency=5), queues={"mail": GroupLimits(weight=3)}, highest_priority=2)
    await records.tenants.create("acme", name="Acme", plan=plan)
    assert (await records.tenants.get("acme")).plan == plan
    assert plan.limits_in("mail") == GroupLimits(weight=3, concurrency=5)
    await records.tenants.set_plan("acme", Plan())
    assert (await records.tenants.get("acme")).plan == Plan()


def test_a_plan_gives_a_priority_and_refuses_one_that_is_too_high() -> None:
    plan = Plan(default_priority=10, highest_priority=3)
    assert [plan.priority_for(asked) for asked in (None, 3, 20)] == [10, 3, 20]
    for asked in (2, 0):
        with pytest.raises(BadOption, match="highest"):
            plan.priority_for(asked)


# ── audit ────────────────────────────────────────────────────────────────────────────────


async def test_the_audit_log_is_read_in_pages_that_stay_as_they_were(records: Records) -> None:
    for n in range(5):
        await records.audit.note("key:abc", "job.retry", f"mail/{n}", tenant="acme", details={"n": n})
    first = await records.audit.list(limit=2)
    await records.audit.note("key:abc", "job.retry", "mail/new")
    second = await records.audit.list(limit=2, cursor=first.next_cursor)
    third = await records.audit.list(limit=2, cursor=second.next_cursor)
    seen = [entry.target for page in (first, second, third) for entry in page.entries]
    assert seen == [f"mail/{n}" for n in (4, 3, 2, 1, 0)]
    assert third.next_cursor is None
    assert first.entries[0].details == {"n": 4}


async def test_the_audit_log_is_filtered(records: Records, clock: ManualClock) -> None:
    await records.audit.note("key:abc", "job.retry", "mail/1", tenant="acme")
    clock.advance(1_000)
    await records.audit.note("user:ann", "queue.pause", "mail", tenant="other", outcome="queue-missing")
    for wanted in (
        AuditFilter(tenant="other"),
        AuditFilter(actor="user:ann"),
        AuditFilter(action="queue.pause"),
        AuditFilter(target="mail"),
        AuditFilter(since_ms=clock.now_ms()),
    ):
        (entry,) = (await records.audit.list(wanted)).entries
        assert (entry.actor, entry.outcome) == ("user:ann", "queue-missing")
    assert await records.audit.forget(before_ms=clock.now_ms()) == 1
    assert len((await records.audit.list()).entries) == 1


async def test_the_audit_log_is_forgotten_some_entries_at_a_time(
    records: Records, clock: ManualClock, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Whoever else wants to write does not wait for all of it."""
    monkeypatch.setattr("bullpen.records.audit.TOGETHER", 2)
    monkeypatch.setattr("bullpen.records.idempotency.TOGETHER", 2)
    monkeypatch.setattr("bullpen.records.deleting_in_parts.TOGETHER", 2)
    for n in range(5):
        await records.audit.note("key:abc", "job.retry", f"mail/{n}")
        await records.idempotency.begin("key:abc", f"{n}", "digest")
    clock.advance(86_400_000)
    await records.audit.note("key:abc", "job.retry", "mail/new")
    writes = 0
    writing = records.database.writing

    def counted(**how: bool) -> AbstractAsyncContextManager[AsyncConnection]:
        nonlocal writes
        writes += 1
        return writing(**how)

    monkeypatch.setattr(records.database, "writing", counted)
    assert await records.audit.forget(before_ms=clock.now_ms()) == 5
    assert writes == 3
    assert [entry.target for entry in (await records.audit.list()).entries] == ["mail/new"]
    assert await records.idempotency.forget() == 5
    assert writes == 6


# ── what people set ──────────────────────────────────────────────────────────────────────


async def test_a_view_is_the_owners_unless_it_is_shared(records: Records) -> None:
    own = await records.views.save("ann", "mine", page="jobs", query={"state": "failed"}, tenant="acme")
    shared = await records.views.save("ann", "ours", page="jobs", query={}, tenant="acme", is_shared=True)
    assert await records.views.list("ann", tenant="acme") == [own, shared]
    assert await records.views.list("bob", tenant="acme") == [shared]
    assert await records.views.list("eve", tenant="other") == []
    assert await records.views.list("ann", tenant="other") == [], "somebody else of the same name"
    assert await records.views.list("ann") == []
    for elsewhere in ("other", None):
        with pytest.raises(RecordMissing):
            await records.views.save("ann", "taken", page="jobs", query={}, tenant=elsewhere, view_id=own.id)
        with pytest.raises(RecordMissing):
            await records.views.remove("ann", own.id, tenant=elsewhere)
    with pytest.raises(RecordMissing):
        await records.views.save("bob", "stolen", page="jobs", query={}, view_id=own.id)
    changed = await records.views.save("ann", "mine", page="jobs", query={"n": 1}, tenant="acme", view_id=own.id)
    assert changed in await records.views.list("ann", tenant="acme")


async def test_an_alert_is_its_tenants(records: Records) -> None:
    alert = await records.alerts.save("dead", condition={"failed": 10}, channel={"webhook": "u"}, tenant="acme")
    assert await records.alerts.list(tenant="acme") == [alert]
    assert await records.alerts.list(tenant="other") == []
    with pytest.raises(RecordMissing):
        await records.alerts.remove(alert.id, tenant="other")
    await records.alerts.remove(alert.id, tenant="acme")
    assert await records.alerts.list() == []


# ── idempotency ──────────────────────────────────────────────────────────────────────────


async def test_the_same_request_gets_the_first_answer(records: Records, clock: ManualClock) -> None:
    keys = records.idempotency
    assert await keys.begin("key:abc", "one", "digest") is None
    with pytest.raises(IdempotencyConflict, match="under way"):
        await keys.begin("key:abc", "one", "digest")
    await keys.finish("key:abc", "one", Answer(201, b"{}"))
    assert await keys.begin("key:abc", "one", "digest") == Answer(201, b"{}")
    with pytest.raises(IdempotencyConflict, match="another request"):
        await keys.begin("key:abc", "one", "other digest")
    assert await keys.begin("key:eve", "one", "digest") is None, "another's keys are their own"
    clock.advance(MEMORY_MS)
    assert await keys.forget() == 2


async def test_a_request_that_died_or_gave_up_may_be_made_again(records: Records, clock: ManualClock) -> None:
    keys = records.idempotency
    await keys.begin("key:abc", "one", "digest")
    await keys.give_up("key:abc", "one")
    assert await keys.begin("key:abc", "one", "digest") is None
    clock.advance(60_000)
    assert await keys.begin("key:abc", "one", "digest") is None


async def test_a_request_that_takes_long_is_not_begun_a_second_time(records: Records, clock: ManualClock) -> None:
    keys = records.idempotency
    await keys.begin("key:abc", "one", "digest")
    for _ in range(3):
        clock.advance(50_000)
        await keys.hold("key:abc", "one")
    with pytest.raises(IdempotencyConflict, match="under way"):
        await keys.begin("key:abc", "one", "digest")
    await keys.finish("key:abc", "one", Answer(201, b"{}"))
    await keys.hold("key:abc", "one")
    clock.advance(MEMORY_MS - 1)
    assert await keys.begin("key:abc", "one", "digest") == Answer(201, b"{}"), "an answer is kept for its day"


async def test_few_passwords_are_looked_at_at_a_time(monkeypatch: pytest.MonkeyPatch) -> None:
    """Each takes a core and memory: others wait for their turn."""
    lock, meeting, running, most = threading.Lock(), threading.Barrier(2, timeout=60), 0, 0

    def scrypt(*_: object) -> bytes:
        nonlocal running, most
        with lock:
            running += 1
            most = max(most, running)
        meeting.wait()
        with lock:
            running -= 1
        return b"hash"

    monkeypatch.setattr(passwords, "_scrypt", scrypt)
    await asyncio.gather(*[passwords.hashed("a long password") for _ in range(8)])
    assert most == 2
