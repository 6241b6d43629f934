"""The audit log: who did what, when, to what, and how it ended. Nothing is ever changed in it."""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

import msgspec
from sqlalchemy import Row, delete, insert, select

from bullpen.errors import BadOption
from bullpen.records.database import Database
from bullpen.records.deleting_in_parts import TOGETHER, delete_by_parts
from bullpen.records.model.rows import clean
from bullpen.records.paging import number_in
from bullpen.records.tables.access import audit

_LIMIT = 500


class AuditEntry(msgspec.Struct, frozen=True, kw_only=True):
    number: int
    at_ms: int
    actor: str
    """`key:<prefix>`, `user:<name>`, `jwt:<subject>`, `cli:<user of the machine>`, `local` or `system`."""
    action: str
    """`job.retry`, `queue.pause`, `key.create`, …"""
    target: str
    tenant: str | None
    outcome: str
    """`ok`, or the code of the error."""
    details: dict[str, Any]


class AuditPage(msgspec.Struct, frozen=True):
    entries: tuple[AuditEntry, ...]
    next_cursor: str | None
    """Give it back for the next page; None at the end."""


@dataclass(frozen=True, slots=True, kw_only=True)
class AuditFilter:
    """Entries for which all of this is true; what is not given is not asked."""

    tenant: str | None = None
    actor: str | None = None
    action: str | None = None
    target: str | None = None
    since_ms: int | None = None
    until_ms: int | None = None


_ALL = AuditFilter()


class Audit:
    """Write and read the audit log."""

    def __init__(self, database: Database) -> None:
        self._database = database

    async def note(
        self,
        actor: str,
        action: str,
        target: str,
        *,
        tenant: str | None = None,
        outcome: str = "ok",
        details: Mapping[str, Any] | None = None,
    ) -> None:
        """Write one entry, of each text what the database can keep. Details are for people: no payloads, no secrets."""
        entry = {
            "at_ms": self._database.clock.now_ms(),
            "actor": clean(actor, 200),
            "action": action,
            "target": clean(target, 600),
            # One that is cut could be another tenant, who would be told.
            "tenant": tenant if tenant is None or clean(tenant, 200) == tenant else None,
            "outcome": clean(outcome, 100),
            "details": dict(details or {}),
        }
        async with self._database.writing(brief=True) as connection:
            await connection.execute(insert(audit), entry)

    async def list(self, wanted: AuditFilter = _ALL, *, limit: int = 100, cursor: str | None = None) -> AuditPage:
        """The newest first; a page stays the same whatever is written meanwhile."""
        if not 1 <= limit <= _LIMIT:
            raise BadOption(f"limit: from 1 to {_LIMIT}, not {limit}")
        query = select(audit).order_by(audit.c.number.desc()).limit(limit + 1)
        for name in ("tenant", "actor", "action", "target"):
            if (value := getattr(wanted, name)) is not None:
                query = query.where(audit.c[name] == value)
        if wanted.since_ms is not None:
            query = query.where(audit.c.at_ms >= wanted.since_ms)
        if wanted.until_ms is not None:
            query = query.where(audit.c.at_ms < wanted.until_ms)
        if cursor is not None:
            query = query.where(audit.c.number < number_in(cursor))
        async with self._database.reading() as connection:
            found = [_read(row) for row in await connection.execute(query)]
        more = len(found) > limit
        return AuditPage(tuple(found[:limit]), str(found[limit - 1].number) if more else None)

    async def forget(self, *, before_ms: int) -> int:
        """Drop what is older, some at a time so that others can write meanwhile; how many entries that were."""
        oldest = select(audit.c.number).where(audit.c.at_ms < before_ms).order_by(audit.c.at_ms).limit(TOGETHER)
        return await delete_by_parts(self._database, delete(audit).where(audit.c.number.in_(oldest)))


def _read(row: Row[Any]) -> AuditEntry:
    return AuditEntry(**row._mapping)  # noqa: SLF001 - its public name, in SQLAlchemy's way
