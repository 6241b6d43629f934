"""API keys: shown once, kept as a digest, scoped, expiring, revocable.

A key is `bp_<prefix>_<secret>`. The prefix finds the row and may be shown; the secret has 256 random
bits, so that its plain SHA-256 cannot be guessed back and costs nothing to check on each request.
"""

import hashlib
import hmac
import re
import secrets
import uuid
from collections.abc import Sequence
from dataclasses import dataclass
from enum import StrEnum
from typing import Any

import msgspec
from sqlalchemy import Row, bindparam, insert, or_, select, tuple_, update

from bullpen.errors import BadOption, RecordMissing
from bullpen.job.names import check_queue_name
from bullpen.records.database import Database
from bullpen.records.paging import Page, check_limit, page_of, place_in
from bullpen.records.tables.access import api_key

_FORM = re.compile(r"bp_([0-9a-f]{12})_([A-Za-z0-9_-]{43})")
_TOUCH_MS = 60_000
"""`last_used_ms` is that exact: a write for each request would cost more than the request."""
_NOT_OVER = or_(api_key.c.expires_ms.is_(None), api_key.c.expires_ms > bindparam("now_ms"))
GOOD = select(api_key.c.id).where(api_key.c.revoked_ms.is_(None) & _NOT_OVER)
"""The keys that are good at `now_ms`."""


class Role(StrEnum):
    """What someone may do; the server's table says which calls that is."""

    ADMIN = "admin"
    OPERATOR = "operator"
    REVIEWER = "reviewer"
    PRODUCER = "producer"
    WORKER = "worker"


class ApiKey(msgspec.Struct, frozen=True, kw_only=True):
    """What is known of a key; never the key itself."""

    id: str
    prefix: str
    name: str
    role: Role
    tenant: str | None
    """All that it may see; None: all tenants."""
    queues: tuple[str, ...] | None
    """Of a worker: whose jobs it may claim; None: any queue's."""
    created_by: str
    created_ms: int
    expires_ms: int | None
    revoked_ms: int | None
    last_used_ms: int | None

    def is_good_at(self, now_ms: int) -> bool:
        return self.revoked_ms is None and (self.expires_ms is None or now_ms < self.expires_ms)


@dataclass(frozen=True, slots=True, kw_only=True)
class NewKey:
    """What a key is to be."""

    name: str
    role: Role | str
    tenant: str | None = None
    queues: Sequence[str] | None = None
    expires_ms: int | None = None
    """Wall time after which it is no longer good."""

    def __post_init__(self) -> None:
        if not self.name or len(self.name) > 200:
            raise BadOption("name: a text of 1 to 200 characters")
        if self.role not in tuple(Role):
            raise BadOption(f"role: one of {', '.join(Role)}, not {self.role!r}")
        for queue in self.queues or ():
            check_queue_name(queue)


class Keys:
    """Make, check, list and revoke API keys."""

    def __init__(self, database: Database) -> None:
        self._database = database

    async def create(self, new: NewKey, *, created_by: str) -> tuple[ApiKey, str]:
        """A new key, and its text: this is the only time that anybody sees it."""
        prefix, secret = secrets.token_hex(6), secrets.token_urlsafe(32)
        text = f"bp_{prefix}_{secret}"
        key = ApiKey(
            id=uuid.uuid4().hex,
            prefix=prefix,
            name=new.name,
            role=Role(new.role),
            tenant=new.tenant,
            queues=None if new.queues is None else tuple(new.queues),
            created_by=created_by,
            created_ms=self._database.clock.now_ms(),
            expires_ms=new.expires_ms,
            revoked_ms=None,
            last_used_ms=None,
        )
        async with self._database.writing() as connection:
            await connection.execute(insert(api_key), {**_columns(key), "digest": _digest(text)})
        return key, text

    async def check(self, text: str) -> ApiKey | None:
        """The key whose text this is, if it is good now; notes that it was used."""
        key = await self.find(text)
        now_ms = self._database.clock.now_ms()
        if key is None or not key.is_good_at(now_ms):
            return None
        await self._touch(key, now_ms)
        return key

    async def find(self, text: str) -> ApiKey | None:
        """The key whose text this is, also if it is not good any more."""
        form = _FORM.fullmatch(text)
        if form is None:
            return None
        async with self._database.reading(brief=True) as connection:
            row = (await connection.execute(select(api_key).where(api_key.c.prefix == form[1]))).one_or_none()
        if row is None or not hmac.compare_digest(row.digest, _digest(text)):
            return None
        return _read(row)

    async def get(self, key_id: str) -> ApiKey:
        """RecordMissing if there is none."""
        async with self._database.reading(brief=True) as connection:
            row = (await connection.execute(select(api_key).where(api_key.c.id == key_id))).one_or_none()
        if row is None:
            raise RecordMissing(f"no API key {key_id!r}")
        return _read(row)

    async def list(self, *, tenant: str | None = None, limit: int = 100, cursor: str | None = None) -> Page[ApiKey]:
        """All keys, or those of a tenant, the newest first; also those that are revoked."""
        place = (api_key.c.created_ms, api_key.c.id)
        query = select(api_key).order_by(*(column.desc() for column in place)).limit(check_limit(limit) + 1)
        if tenant is not None:
            query = query.where(api_key.c.tenant == tenant)
        if cursor is not None:
            query = query.where(tuple_(*place) < tuple_(*place_in(cursor)))
        async with self._database.reading(brief=True) as connection:
            found = [_read(row) for row in await connection.execute(query)]
        return page_of(found, limit, lambda key: f"{key.created_ms}~{key.id}")

    async def is_empty(self) -> bool:
        """Whether there is no good key at all: then nothing but loopback may be served."""
        now_ms = self._database.clock.now_ms()
        async with self._database.reading(brief=True) as connection:
            return (await connection.execute(GOOD.limit(1), {"now_ms": now_ms})).first() is None

    async def revoke(self, key_id: str) -> ApiKey:
        """Let it be good no more, from this moment on; once revoked it stays as it is. RecordMissing."""
        now_ms = self._database.clock.now_ms()
        is_it = (api_key.c.id == key_id) & api_key.c.revoked_ms.is_(None)
        async with self._database.writing() as connection:
            await connection.execute(update(api_key).where(is_it).values(revoked_ms=now_ms))
        return await self.get(key_id)

    async def _touch(self, key: ApiKey, now_ms: int) -> None:
        if key.last_used_ms is not None and now_ms - key.last_used_ms < _TOUCH_MS:
            return
        async with self._database.writing() as connection:
            await connection.execute(update(api_key).where(api_key.c.id == key.id).values(last_used_ms=now_ms))


def _digest(text: str) -> str:
    return hashlib.sha256(text.encode()).hexdigest()


def _columns(key: ApiKey) -> dict[str, Any]:
    return msgspec.structs.asdict(key) | {"queues": None if key.queues is None else list(key.queues)}


def _read(row: Row[Any]) -> ApiKey:
    values = dict(row._mapping)  # noqa: SLF001 - its public name, in SQLAlchemy's way
    del values["digest"]
    values["role"] = Role(values["role"])
    values["queues"] = None if values["queues"] is None else tuple(values["queues"])
    return ApiKey(**values)
