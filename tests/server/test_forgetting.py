"""What a server drops by itself: entries of the audit log, and answers that nobody asks for again."""

import pytest
from sqlalchemy import func, select, update

from bullpen.errors import BadOption
from bullpen.records.idempotency import Answer
from bullpen.records.tables.access import audit, idempotency
from bullpen.server.settings import ServerSettings
from bullpen.server.site import Site

_DAY_MS = 86_400_000


async def test_what_was_kept_long_enough_is_forgotten(site: Site) -> None:
    records, now_ms = site.records, site.clock.now_ms()
    for n in range(2):
        await records.audit.note("user:ann", "queue.pause", f"mail-{n}")
        await records.idempotency.begin("user:ann", f"key-{n}", "digest")
        await records.idempotency.finish("user:ann", f"key-{n}", Answer(200, b"{}"))
    async with records.database.writing() as connection:
        old = update(audit).where(audit.c.target == "mail-0")
        await connection.execute(old.values(at_ms=now_ms - 365 * _DAY_MS - 1))
        over = update(idempotency).where(idempotency.c.key == "key-0")
        await connection.execute(over.values(expires_ms=now_ms))
    (chore,) = site.chores._chores
    await chore.do()
    assert [entry.target for entry in (await records.audit.list()).entries] == ["mail-1"]
    async with records.database.reading() as connection:
        assert (await connection.execute(select(func.count()).select_from(idempotency))).scalar_one() == 1


def test_for_how_long_is_told_by_the_environment(monkeypatch: pytest.MonkeyPatch) -> None:
    assert ServerSettings.from_environment().audit_days == 365
    monkeypatch.setenv("BULLPEN_AUDIT_DAYS", "30")
    assert ServerSettings.from_environment().audit_days == 30
    for wrong in ("0", "-1", "all"):
        monkeypatch.setenv("BULLPEN_AUDIT_DAYS", wrong)
        with pytest.raises(BadOption):
            ServerSettings.from_environment()
