"""What people set in the dashboard: saved views, and alerts."""

import uuid
from collections.abc import Mapping
from typing import Any

import msgspec
from sqlalchemy import Row, Table, delete, insert, or_, select, update
from sqlalchemy.ext.asyncio import AsyncConnection

from bullpen.errors import BadOption, RecordMissing, SecretUnreadable
from bullpen.records.database import Database
from bullpen.records.record_limits import check_room, of_tenant, take_turn
from bullpen.records.sealing import SEALED, Sealer
from bullpen.records.tables.access import alert as alert_table
from bullpen.records.tables.access import view as view_table

MOST_VIEWS = 500
MOST_ALERTS = 100
"""Of one tenant."""
SLACK = "slack"
"""The channel whose address is a secret."""


class View(msgspec.Struct, frozen=True, kw_only=True):
    """A page of the dashboard with its filters, under a name."""

    id: str
    owner: str
    tenant: str | None
    name: str
    page: str
    query: dict[str, Any]
    is_shared: bool
    """Whether others than the owner see it, within its tenant if it has one."""
    changed_ms: int


class AlertSetting(msgspec.Struct, frozen=True, kw_only=True):
    """When somebody is to be told, and how."""

    id: str
    name: str
    tenant: str | None
    condition: dict[str, Any]
    channel: dict[str, Any]
    """By which way it is told."""
    is_enabled: bool
    changed_ms: int


class Views:
    """Saved views of people."""

    def __init__(self, database: Database) -> None:
        self._database = database

    async def save(
        self,
        owner: str,
        name: str,
        *,
        page: str,
        query: Mapping[str, Any],
        tenant: str | None = None,
        is_shared: bool = False,
        view_id: str | None = None,
    ) -> View:
        """Keep a view under this name, in the place of one's own of the same name; or with its id change one's own.

        RecordMissing if there is none of the owner's with this id; RecordLimit if the tenant has MOST_VIEWS.
        """
        view = View(
            id=view_id or uuid.uuid4().hex,
            owner=owner,
            tenant=tenant,
            name=_checked(name),
            page=page,
            query=dict(query),
            is_shared=is_shared,
            changed_ms=self._database.clock.now_ms(),
        )
        async with self._database.writing() as connection:
            if view_id is None:
                # From here on nobody else adds one of this name.
                await take_turn(connection, self._database, view_table, tenant)
                named = select(view_table.c.id).where(_own(owner, tenant) & (view_table.c.name == name))
                there = (await connection.execute(named.order_by(view_table.c.id).limit(1))).scalar_one_or_none()
                view = msgspec.structs.replace(view, id=there or view.id)
                view_id = there
            values = msgspec.structs.asdict(view)
            if view_id is None:
                await check_room(connection, self._database, view_table, tenant, most=MOST_VIEWS)
                await connection.execute(insert(view_table), values)
            else:
                await _change(connection, view_table, values, _own(owner, tenant))
        return view

    async def list(self, owner: str, *, tenant: str | None = None) -> list[View]:
        """One's own within the tenant, and what others share there, by name."""
        mine_or_shared = or_(view_table.c.owner == owner, view_table.c.is_shared)
        query = select(view_table).where(mine_or_shared & of_tenant(view_table, tenant))
        async with self._database.reading(brief=True) as connection:
            rows = await connection.execute(query.order_by(view_table.c.name, view_table.c.id))
            return [View(**row._mapping) for row in rows]  # noqa: SLF001 - its public name

    async def remove(self, owner: str, view_id: str, *, tenant: str | None = None) -> None:
        """One's own; RecordMissing."""
        await _remove(self._database, view_table, view_id, _own(owner, tenant))


class Alerts:
    """Settings of alerts; None as the tenant is for operators only.

    Who knows the address of a Slack channel may write there: it is kept as secrets of webhooks are.
    """

    def __init__(self, database: Database, sealer: Sealer | None = None) -> None:
        self._database = database
        self._sealer = sealer or Sealer()

    async def save(
        self,
        name: str,
        *,
        condition: Mapping[str, Any],
        channel: Mapping[str, Any],
        tenant: str | None = None,
        is_enabled: bool = True,
        alert_id: str | None = None,
    ) -> AlertSetting:
        """Keep a setting, or with its id change it. RecordMissing if the tenant has none of this id.

        RecordLimit if it has MOST_ALERTS.
        """
        alert = AlertSetting(
            id=alert_id or uuid.uuid4().hex,
            name=_checked(name),
            tenant=tenant,
            condition=dict(condition),
            channel=dict(channel),
            is_enabled=is_enabled,
            changed_ms=self._database.clock.now_ms(),
        )
        values = msgspec.structs.asdict(alert) | {"channel": self._sealed(alert.channel)}
        async with self._database.writing() as connection:
            if alert_id is None:
                await check_room(connection, self._database, alert_table, tenant, most=MOST_ALERTS)
                await connection.execute(insert(alert_table), values)
            else:
                await _change(connection, alert_table, values, of_tenant(alert_table, tenant))
        return alert

    async def list(self, *, tenant: str | None = None) -> list[AlertSetting]:
        """All settings, or those of a tenant, by name; a channel that is encrypted with another key stays as it is."""
        query = select(alert_table).order_by(alert_table.c.name, alert_table.c.id)
        if tenant is not None:
            query = query.where(alert_table.c.tenant == tenant)
        async with self._database.reading(brief=True) as connection:
            found = [_alert(row) for row in await connection.execute(query)]
        return [self._readable(alert) for alert in found]

    async def get(self, alert_id: str) -> AlertSetting:
        """RecordMissing if there is none; SecretUnreadable without the key that its channel needs."""
        async with self._database.reading(brief=True) as connection:
            row = (await connection.execute(select(alert_table).where(alert_table.c.id == alert_id))).one_or_none()
        if row is None:
            raise RecordMissing(f"no alert {alert_id!r}")
        kept = _alert(row)
        sealed = self._sealed(kept.channel)
        if sealed != kept.channel:
            # One from the time before there was a key, unless it was changed meanwhile.
            is_it = (alert_table.c.id == alert_id) & (alert_table.c.changed_ms == kept.changed_ms)
            async with self._database.writing(brief=True) as connection:
                await connection.execute(update(alert_table).where(is_it).values(channel=sealed))
        return self._unsealed(kept)

    def _sealed(self, channel: Mapping[str, Any]) -> dict[str, Any]:
        url = channel.get(SLACK)
        if not isinstance(url, str) or url.startswith(SEALED):
            return dict(channel)
        return dict(channel) | {SLACK: self._sealer.seal(url)}

    def _unsealed(self, alert: AlertSetting) -> AlertSetting:
        url = alert.channel.get(SLACK)
        if not isinstance(url, str):
            return alert
        return msgspec.structs.replace(alert, channel=alert.channel | {SLACK: self._sealer.unseal(url)})

    def _readable(self, alert: AlertSetting) -> AlertSetting:
        try:
            return self._unsealed(alert)
        except SecretUnreadable:
            return alert

    async def remove(self, alert_id: str, *, tenant: str | None = None) -> None:
        """RecordMissing if the tenant has none of this id."""
        await _remove(self._database, alert_table, alert_id, of_tenant(alert_table, tenant))


def _own(owner: str, tenant: str | None) -> Any:
    """An owner's within a tenant: two tenants may know somebody of the same name."""
    return (view_table.c.owner == owner) & of_tenant(view_table, tenant)


def _checked(name: str) -> str:
    if not name or len(name) > 200:
        raise BadOption("name: a text of 1 to 200 characters")
    return name


def _alert(row: Row[Any]) -> AlertSetting:
    return AlertSetting(**row._mapping)  # noqa: SLF001 - its public name


async def _change(connection: AsyncConnection, table: Table, values: dict[str, Any], own: Any) -> None:
    changed = await connection.execute(update(table).where((table.c.id == values["id"]) & own).values(**values))
    if changed.rowcount == 0:
        raise RecordMissing(f"there is no {values['id']!r} to change")


async def _remove(database: Database, table: Table, record_id: str, own: Any) -> None:
    async with database.writing() as connection:
        if (await connection.execute(delete(table).where((table.c.id == record_id) & own))).rowcount == 0:
            raise RecordMissing(f"there is no {record_id!r} to remove")
