"""Webhooks: who is told of queue events over HTTP, and the secret that each delivery is signed with.

The secret has to be kept, since a digest cannot sign: encrypted, where there is a [key](sealing.py). It has its own
verb, so that no list, answer or log that tells of a webhook can tell its secret too.
"""

import secrets
import uuid
from collections.abc import Collection, Sequence
from dataclasses import dataclass
from typing import Any

import msgspec
from sqlalchemy import ColumnElement, Row, delete, insert, select, update

from bullpen.errors import BadOption, RecordMissing
from bullpen.job.events import EventKind
from bullpen.job.names import check_queue_name
from bullpen.records.database import Database
from bullpen.records.record_limits import check_room
from bullpen.records.sealing import Sealer
from bullpen.records.tables.webhooks import webhook

USUAL_KINDS = (EventKind.COMPLETED, EventKind.FAILED)
MAX_URL = 2_000
MAX_QUEUES = 1_000
MOST = 100
"""Of one tenant."""
_PREFIX = "whsec_"


class Webhook(msgspec.Struct, frozen=True, kw_only=True):
    """A subscription, without its secret."""

    id: str
    name: str
    tenant: str | None
    """Whose events it is told of; None: everyone's, and those of whole queues."""
    url: str
    queues: tuple[str, ...] | None
    """None: all."""
    kinds: tuple[EventKind, ...]
    with_result: bool
    """Whether a delivery has the job's result, or its progress, in it."""
    is_enabled: bool
    since_ms: int
    """From when on: it was made, enabled again, or given other queues."""
    created_by: str
    created_ms: int
    changed_ms: int


@dataclass(frozen=True, slots=True, kw_only=True)
class NewWebhook:
    """What a subscription is to be."""

    name: str
    url: str
    tenant: str | None = None
    queues: Sequence[str] | None = None
    kinds: Sequence[EventKind | str] = USUAL_KINDS
    with_result: bool = False
    is_enabled: bool = True

    def __post_init__(self) -> None:
        check_webhook(name=self.name, url=self.url, queues=self.queues, kinds=self.kinds)


def check_webhook(**given: Any) -> None:
    """BadOption names what cannot be."""
    if "name" in given and not 0 < len(given["name"]) <= 200:
        raise BadOption("name: a text of 1 to 200 characters")
    if "url" in given and not 0 < len(given["url"]) <= MAX_URL:
        raise BadOption(f"url: a text of 1 to {MAX_URL:,} characters")
    if given.get("queues") is not None:
        if not 0 < len(given["queues"]) <= MAX_QUEUES:
            raise BadOption(f"queues: from 1 to {MAX_QUEUES:,} of them, or none for all")
        for queue in given["queues"]:
            check_queue_name(queue)
    if "kinds" in given:
        if not given["kinds"]:
            raise BadOption("kinds: at least one kind of event")
        for kind in given["kinds"]:
            if kind not in tuple(EventKind):
                raise BadOption(f"kinds: {kind!r} is none; use {', '.join(EventKind)}")


class Webhooks:
    """Make, look at, change and remove subscriptions. With a tenant, all others are as if they were not."""

    def __init__(self, database: Database, sealer: Sealer | None = None) -> None:
        self._database = database
        self._sealer = sealer or Sealer()

    async def create(self, new: NewWebhook, *, created_by: str) -> tuple[Webhook, str]:
        """A new one, and its secret: this is the only time that anybody is shown it. RecordLimit if there are MOST."""
        now_ms = self._database.clock.now_ms()
        made = Webhook(
            id=uuid.uuid4().hex,
            name=new.name,
            tenant=new.tenant,
            url=new.url,
            queues=None if new.queues is None else _sorted(new.queues),
            kinds=tuple(EventKind(kind) for kind in _sorted(new.kinds)),
            with_result=new.with_result,
            is_enabled=new.is_enabled,
            since_ms=now_ms,
            created_by=created_by,
            created_ms=now_ms,
            changed_ms=now_ms,
        )
        secret = _new_secret()
        async with self._database.writing() as connection:
            await check_room(connection, self._database, webhook, new.tenant, most=MOST)
            await connection.execute(insert(webhook), {**_columns(made), "secret": self._sealer.seal(secret)})
        return made, secret

    async def get(self, webhook_id: str, *, tenant: str | None = None) -> Webhook:
        """RecordMissing if there is none."""
        async with self._database.reading(brief=True) as connection:
            row = (await connection.execute(select(webhook).where(_is(webhook_id, tenant)))).one_or_none()
        if row is None:
            raise _missing(webhook_id)
        return _read(row)

    async def list(self, *, tenant: str | None = None, only_enabled: bool = False) -> list[Webhook]:
        """All, or those of a tenant, by name."""
        query = select(webhook).order_by(webhook.c.name, webhook.c.id)
        if tenant is not None:
            query = query.where(webhook.c.tenant == tenant)
        if only_enabled:
            query = query.where(webhook.c.is_enabled)
        async with self._database.reading(brief=True) as connection:
            return [_read(row) for row in await connection.execute(query)]

    async def secret(self, webhook_id: str) -> str:
        """To sign with, and for nothing else. RecordMissing; SecretUnreadable without the key that it needs."""
        async with self._database.reading(brief=True) as connection:
            found = await connection.execute(select(webhook.c.secret).where(webhook.c.id == webhook_id))
            kept: str | None = found.scalar_one_or_none()
        if kept is None:
            raise _missing(webhook_id)
        if not self._sealer.is_settled(kept):
            await self._seal(webhook_id, kept)
        return self._sealer.unseal(kept)

    async def _seal(self, webhook_id: str, kept: str) -> None:
        """One from the time before there was a key, unless another took its place meanwhile."""
        is_it = (webhook.c.id == webhook_id) & (webhook.c.secret == kept)
        async with self._database.writing(brief=True) as connection:
            await connection.execute(update(webhook).where(is_it).values(secret=self._sealer.seal(kept)))

    async def change(self, webhook_id: str, *, tenant: str | None = None, **changes: Any) -> Webhook:
        """Other values for `name`, `url`, `queues`, `kinds`, `with_result` or `is_enabled`. RecordMissing.

        One that is enabled again, or is given other queues, is told of what happens from then on.
        """
        check_webhook(**changes)
        now_ms = self._database.clock.now_ms()
        values = {name: _plain(value) for name, value in changes.items()} | {"changed_ms": now_ms}
        is_it = _is(webhook_id, tenant)
        async with self._database.writing() as connection:
            if "queues" in changes:
                values["since_ms"] = now_ms
            elif changes.get("is_enabled"):
                was_off = is_it & ~webhook.c.is_enabled
                await connection.execute(update(webhook).where(was_off).values(since_ms=now_ms))
            if (await connection.execute(update(webhook).where(is_it).values(**values))).rowcount == 0:
                raise _missing(webhook_id)
        return await self.get(webhook_id, tenant=tenant)

    async def renew_secret(self, webhook_id: str, *, tenant: str | None = None) -> str:
        """Another secret from now on, shown this once. RecordMissing."""
        secret, now_ms = _new_secret(), self._database.clock.now_ms()
        values = {"secret": self._sealer.seal(secret), "changed_ms": now_ms}
        async with self._database.writing() as connection:
            done = await connection.execute(update(webhook).where(_is(webhook_id, tenant)).values(**values))
        if done.rowcount == 0:
            raise _missing(webhook_id)
        return secret

    async def remove(self, webhook_id: str, *, tenant: str | None = None) -> None:
        """Tell it nothing any more: deliveries that are under way end without a call. RecordMissing."""
        async with self._database.writing() as connection:
            if (await connection.execute(delete(webhook).where(_is(webhook_id, tenant)))).rowcount == 0:
                raise _missing(webhook_id)


def _is(webhook_id: str, tenant: str | None) -> ColumnElement[bool]:
    is_it: ColumnElement[bool] = webhook.c.id == webhook_id
    return is_it if tenant is None else is_it & (webhook.c.tenant == tenant)


def _missing(webhook_id: str) -> RecordMissing:
    return RecordMissing(f"no webhook {webhook_id!r}")


def _new_secret() -> str:
    return _PREFIX + secrets.token_urlsafe(32)


def _sorted(words: Collection[str]) -> tuple[str, ...]:
    return tuple(sorted({str(word) for word in words}))


def _plain(value: Any) -> Any:
    return list(_sorted(value)) if isinstance(value, list | tuple) else value


def _columns(made: Webhook) -> dict[str, Any]:
    return {name: _plain(value) for name, value in msgspec.structs.asdict(made).items()}


def _read(row: Row[Any]) -> Webhook:
    values = dict(row._mapping)  # noqa: SLF001 - its public name, in SQLAlchemy's way
    del values["secret"]
    values["queues"] = None if values["queues"] is None else tuple(values["queues"])
    values["kinds"] = tuple(EventKind(kind) for kind in values["kinds"])
    return Webhook(**values)
